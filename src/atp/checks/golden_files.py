"""Golden files: what an agent answered when it was right, kept in `__snapshots__/` beside the suite's file.

Each golden value has a file of its own, with the value and nothing else in it: git then shows the difference of two
answers as it is, two branches that change different cases never conflict, and a suite of many cases reads only what it
checks. The name is made of the case's id, the agent's name if the suite names its agents, the connector if a run has
columns for several, the variation and the check.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atp.base.errors import Error
from atp.base.files import in_place_of, open_untrusted
from atp.base.secrets import current_secrets
from atp.checks.before_run import compiled_expectations
from atp.suite.assertion import each_assertion
from atp.suite.case import Case
from atp.suite.suite import Suite

if TYPE_CHECKING:
    from atp.checks.snapshot import SnapshotAssertion

FOLDER = "__snapshots__"
"""The folder of golden files, beside the suite's file. It has a folder for each suite's file, by the file's name."""
LARGEST = 2**20
"""Bytes of a golden file. A longer answer is not kept: nobody would read the difference."""
_LONGEST_NAME = 60
_PLAIN = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{_LONGEST_NAME - 1}}}")
_ENDINGS = (".txt", ".json")
_SUITES = (".yaml", ".yml", ".jsonl", ".json", ".md")
"""What the names of suites end in. Snapshot tools for Python code keep their files in `__snapshots__/`, too."""


class GoldenError(Error):
    """A golden file that can't be read or written."""


class GoldenFile(NamedTuple):
    """The file of one golden value."""

    path: Path
    """Where the file is, or would be."""

    @property
    def name(self) -> str:
        """The path from the suite's folder, for messages."""
        return f"{FOLDER}/{self.path.parent.name}/{self.path.name}"

    def read(self) -> str | None:
        """The text of the file, without the line end that closes it; None if there is no file. Raises `GoldenError`."""
        try:
            with open_untrusted(self.path) as file:
                data = file.read(LARGEST + 2)
            if len(data) > LARGEST + 1:
                raise GoldenError(f"{self.name} is longer than {LARGEST:,} bytes")
            return data.decode(errors="surrogatepass").removesuffix("\n")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise GoldenError(f"{self.name} is not written in UTF-8") from error
        except OSError as error:
            raise GoldenError(f"{self.name} can't be read: {error.strerror}") from error

    def write(self, text: str) -> None:
        """Write a text, in which secrets are masked, whole or not at all. Raises `GoldenError`."""
        data = text.encode(errors="surrogatepass") + b"\n"
        if len(data) > LARGEST + 1:
            raise GoldenError(f"{self.name} is not written: the value is longer than {LARGEST:,} bytes")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with in_place_of(self.path) as file:
                file.write(data)
        except OSError as error:
            raise GoldenError(f"{self.name} can't be written: {error.strerror}") from error


def snapshots_of(case: Case) -> list["SnapshotAssertion"]:
    """The snapshot assertions of a case, those in groups and in words included."""
    exact = case.asserted
    if case.expectations and any("snapshot" in words.lower() for words in case.expectations):
        exact = [*exact, *compiled_expectations(case)[0].values()]
    found = [one for one in each_assertion(exact) if one.type == "snapshot"]
    if not found:
        return []
    from atp.checks.snapshot import SnapshotAssertion  # imported late: only some suites need it

    return [one for one in found if isinstance(one, SnapshotAssertion)]


class GoldenAgent(NamedTuple):
    """What golden files are named after, beside the case."""

    name: str | None
    """The agent; None for any that the suite does not name itself."""
    connector: str | None = None
    """The connector, where a run has a column for each of several."""

    @property
    def part(self) -> str:
        """The part of a file's name. Connectors have no dots there, so that the part's end is seen."""
        name = f"@{_safe(self.name)}" if self.name is not None else ""
        return name if self.connector is None else f"{name or '@'}@{_safe(self.connector, dots=False)}"


_WITH_CONNECTOR = re.compile(r"([^@]+(?:@[^@]+)?)@?@[\w~-]+(?=[+.])")
"""The beginning of a golden file's name that has a connector: `case@agent@connector` or `case@@connector`."""


def golden_names(case: Case, agent: GoldenAgent, variation: int) -> dict[tuple[object, ...], str]:
    """The names of a case's golden files, by what tells a snapshot assertion from others of the case.

    Counted among the snapshots of one kind, so that another check may be put before them. Two that look at the same
    thing in the same way share a file.
    """
    names: dict[tuple[object, ...], str] = {}
    taken: dict[str, int] = {}
    of_trial = _safe(case.id) + agent.part + (f"+{variation}" if variation else "")
    for one in snapshots_of(case):
        if one.identity in names:
            continue
        label = _safe(one.name or one.match, dots=False)
        taken[label] = number = taken.get(label, 0) + 1
        numbered = label if number == 1 else f"{label}+{number}"
        names[one.identity] = f"{of_trial}.{numbered}{one.ending}"
    return names


def golden_agent(suite: Suite, name: str, connector: str | None) -> GoldenAgent:
    """What golden files are named after: an agent that the suite names itself, or a column of its matrix.

    Any other, whether a flag names it or a folder has it, is the agent of the suite, whatever its address is today.
    """
    is_named = any(name == one.name or name in one.column_names for one in suite.agents)
    return GoldenAgent(name if is_named else None, connector)


def golden_names_of(suite: Suite, case: Case, variations: int) -> Iterator[str]:
    """The names of all golden files that a case may use, whichever agents it is run with, but for connectors."""
    if not snapshots_of(case):
        return
    wanted = None if case.agents is None else set(case.agents)
    agents = [
        name
        for one in suite.agents
        for name in (one.name, *one.column_names)
        if wanted is None or one.name in wanted or name in wanted
    ]
    for variation in range(variations):
        for agent in (None, *agents):
            yield from golden_names(case, GoldenAgent(agent), variation).values()


def _safe(text: str, *, dots: bool = True) -> str:
    """A part of a file's name: the text itself if that is harmless everywhere, else what is harmless of it and a hash.

    `@`, `+` and `~` are in no harmless text, so that no two things have the same name.
    """
    text = current_secrets().mask_text(text)
    if _PLAIN.fullmatch(text) and (dots or "." not in text):
        return text
    kept = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:40]
    hashed = blake2b(text.encode(errors="surrogatepass"), digest_size=5).hexdigest()
    return f"{kept or 'case'}~{hashed}"


class TrialGoldenFiles:
    """The golden files that one trial is compared with."""

    def __init__(self, folder: Path, names: Mapping[tuple[object, ...], str], trial: str, updates: "Updates") -> None:
        """`trial` says which trial it is, for messages of others."""
        self._folder = folder
        self._names = names
        self.trial = trial
        self.updates = updates
        """What the run may write, and has written."""

    def file_of(self, snapshot: "SnapshotAssertion") -> GoldenFile | None:
        """The golden file of an assertion; None if the assertion is none of the case's."""
        name = self._names.get(snapshot.identity)
        return GoldenFile(self._folder / name) if name is not None else None

    def settle(self) -> None:
        """Note that the trial has written the files, or found them right: other trials must equal them."""
        for name in self._names.values():
            self.updates.settled.setdefault(self._folder / name, self.trial)

    def digest(self) -> str:
        """A hash of what the golden files have now, whoever wrote them."""
        found = blake2b(digest_size=16)
        for name in self._names.values():
            with suppress(OSError), open_untrusted(self._folder / name) as file:
                found.update(blake2b(file.read(LARGEST + 2), digest_size=16).digest())
                continue
            found.update(b"-")
        return found.hexdigest()


class Updates:
    """What a run does with golden files beside reading them."""

    def __init__(self, *, wanted: bool = False, refused: str | None = None) -> None:
        """`refused` says why nothing is written although that is `wanted`."""
        self.wanted = wanted and refused is None
        """True if golden files that differ are written anew."""
        self.refused = refused
        """Why nothing is written, if that was asked for."""
        self.settled: dict[Path, str] = {}
        """The files that a trial of this run has written or found right, with the trial: others must equal them."""
        self.written: list[GoldenFile] = []
        """The files that the run has written."""

    def write(self, file: GoldenFile, text: str) -> None:
        """Write a golden file. Raises `GoldenError`."""
        file.write(text)
        self.written.append(file)


def golden_folder(suite: str | None) -> Path | None:
    """The folder of a suite's golden files; None for a suite that has no file.

    Asked for before anything runs: a path from a working directory that the agent deletes leads nowhere.
    """
    if suite is None:
        return None
    path = Path(suite).resolve()
    return path.parent / FOLDER / path.name


def obsolete_files(folder: Path, used: Callable[[], Iterable[str]]) -> Iterator[GoldenFile]:
    """The golden files beside a suite's file that no check uses: of the suite, and of suites that are gone.

    `folder` has the golden files of the suite. `used` gives the names that the suite's cases use; it is called only if
    there are golden files at all. Which connectors a suite is tested with is not known: files of any are used.
    """
    if not folder.parent.is_dir():
        return
    with suppress(OSError):
        for other in sorted(folder.parent.iterdir()):
            if other.suffix.lower() in _SUITES and not (folder.parent.parent / other.name).exists():
                yield from _files_in(other)
    known = _files_in(folder)
    names = set(used()) if known else set()
    yield from (one for one in known if one.path.name not in names and _without_connector(one.path.name) not in names)


def _without_connector(name: str) -> str:
    """The name of the golden file that the same check has in a run with one connector."""
    found = _WITH_CONNECTOR.match(name) if name.count("@") == 2 else None
    return name if found is None else found[1] + name[found.end() :]


def _files_in(folder: Path) -> list[GoldenFile]:
    """The golden files in a folder. Files with other endings are none of ATP's."""
    if not folder.is_dir() or folder.is_symlink():
        return []
    with suppress(OSError):
        return [GoldenFile(one) for one in sorted(folder.iterdir()) if one.suffix in _ENDINGS and not one.is_dir()]
    return []


def remove_golden_file(file: GoldenFile) -> None:
    """Remove a golden file, and its folder when that is empty. Raises `GoldenError`."""
    try:
        file.path.unlink(missing_ok=True)
    except OSError as error:
        raise GoldenError(f"{file.name} can't be removed: {error.strerror}") from error
    for folder in (file.path.parent, file.path.parent.parent):
        with suppress(OSError):
            folder.rmdir()
