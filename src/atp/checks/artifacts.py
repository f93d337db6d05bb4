"""`artifact_exists`: whether files and artifacts that the agent made are there, and what is in them.

What can't be read safely (`agent_files`) is unjudged, or at least never counts in the agent's favour.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, Field

from atp.base.json.found import MISSING
from atp.base.numbers import counted
from atp.base.text import cut
from atp.checks.agent_files import LARGEST_SHOWN, AgentFile, NoFile, NotShown, Unreadable
from atp.checks.evidence import Evidence, NotKept, NotKeptFile
from atp.checks.matching.globs import is_glob, matches_glob, normal_path
from atp.checks.matching.patterns import TooSlow, time_limit
from atp.checks.output import has, has_match
from atp.checks.run_check import in_background
from atp.checks.verdicts import failed, favourable_outcome, passed, unjudged
from atp.roles.record import Unshown
from atp.suite.assertion import Assertion
from atp.suite.paths import ArtifactPath, JsonSchemaObject
from atp.suite.record import Regex, Whole, check_sought
from atp.suite.result import Artifact, Verdict

MOST_CANDIDATES = 1_000
"""Files that are read for one assertion."""
MOST_NAMED = 10
"""Files that a message lists."""
MOST_SHOWN = 8 * LARGEST_SHOWN
"""Bytes of all files that a judge is shown; of the others, it is told only the size."""


Content = TypeVar("Content", bound="str | Unshown")


class ArtifactExists(Assertion):
    """The agent made a file or artifact."""

    type: Literal["artifact_exists"]
    """Always `artifact_exists`."""
    path: ArtifactPath
    """Its path in the workspace or its name; may be a glob."""
    contains: Annotated[str, AfterValidator(check_sought)] | None = None
    """Text that stands in it."""
    matches: Regex | None = None
    """A regular expression found in it."""
    json_schema: JsonSchemaObject | None = None
    """A JSON Schema its content fits."""
    min_bytes: Whole | None = None
    """It is at least this long."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    """The digest of its content."""
    untouched: bool = False
    """Files count that were there from the beginning, too, although the agent did not make or change them."""

    async def check(self, evidence: Evidence) -> Verdict:
        absent_is_good = favourable_outcome(self) == "failed"
        if evidence.workspace is not None and (self.untouched or evidence.workspace.exists):
            return await in_background(partial(_exists, self, absent_is_good), evidence)
        try:
            return _exists(self, absent_is_good, evidence)
        except TooSlow:
            return await in_background(partial(_exists, self, absent_is_good), evidence)


def _exists(assertion: ArtifactExists, absent_is_good: bool, evidence: Evidence) -> Verdict:
    """The verdict on the first candidate that is as wanted; of several, one is enough."""
    if assertion.untouched and evidence.workspace is not None:
        evidence.workspace.path()  # made and filled, if the agent never asked for it
    unlike: Verdict | None = None
    open_question: Verdict | None = None
    for number, file in enumerate(files_at(assertion.path, evidence, untouched=assertion.untouched)):
        if number == MOST_CANDIDATES:
            return open_question or unjudged(f"more than {MOST_CANDIDATES} files fit `{assertion.path}`")
        verdict = _is_as_wanted(assertion, absent_is_good, file)
        if verdict.passed:
            return verdict
        if verdict.outcome == "unjudged":
            open_question = open_question or verdict
        unlike = unlike or verdict
    if absent_is_good and open_question is None and (listed := _only_listed(assertion.path, evidence)):
        open_question = unjudged(f"the agent listed `{listed}` as an artifact, and its content is not there to be read")
    if absent_is_good and open_question is None and unlike is None and _is_folder(assertion, evidence):
        open_question = unjudged(f"`{assertion.path}` is a folder: `{normal_path(assertion.path)}/` asks for its files")
    return open_question or unlike or _not_made(assertion.path, evidence)


def _is_folder(assertion: ArtifactExists, evidence: Evidence) -> bool:
    """Whether a path is that of a folder of the agent's. One without files may be: nobody knows who made it."""
    wanted = normal_path(assertion.path)
    if is_glob(wanted):
        return False
    below, workspace = f"{wanted}/", evidence.workspace
    names = [*evidence.changed_files, *(normal_path(one.name) for one in evidence.artifacts)]
    if any(name.startswith(below) for name in names):
        return True
    there = _path_in_workspace(wanted, evidence)
    if workspace is None or there is None or not there.is_dir():
        return False
    return assertion.untouched or not any(name.startswith(below) for name in workspace.files())


def _only_listed(path: str, evidence: Evidence) -> str | None:
    """The name of an artifact at this path or glob that the agent listed without its content or file."""
    is_wanted = _name_filter(path)
    names = (normal_path(one.name) for one in evidence.artifacts if not _has_content(one))
    return next((cut(name, 100) for name in names if is_wanted(name) and name not in evidence.changed_files), None)


def _is_as_wanted(assertion: ArtifactExists, absent_is_good: bool, file: AgentFile) -> Verdict:
    """The verdict on one candidate. `absent_is_good` says that it would be in the agent's favour if it were no file."""
    where = f"artifact {cut(file.name, 100)}"
    try:
        file.must_be_a_file()
        for rule in _rules(assertion, absent_is_good, file, where):
            verdict = rule()
            if not verdict.passed:
                return verdict
    except NoFile as error:
        if absent_is_good:
            return unjudged(f"`{file.name}` was not read: {error}", where=where)
        return failed(f"expected a file `{assertion.path}`, but {error}", expected=assertion.path, where=where)
    except Unreadable as error:
        return unjudged(f"`{file.name}` could not be read: {error}", where=where)
    except NotKept as error:
        return unjudged(str(error), where=where)
    return passed(f"`{cut(file.name, 100)}` was made", expected=assertion.path, found=file.name, where=where)


def _rules(
    assertion: ArtifactExists, absent_is_good: bool, file: AgentFile, where: str
) -> Iterator[Callable[[], Verdict]]:
    """The rules for the content, the cheap ones first."""
    least, digest, schema = assertion.min_bytes, assertion.sha256, assertion.json_schema
    text, pattern = assertion.contains, assertion.matches
    if least is not None:
        yield lambda: _long_enough(least, file, where)
    if digest is not None:
        yield lambda: _has_digest(digest, file, where)
    if text is not None:
        yield lambda: _contains(text, file, where)
    if pattern is not None:
        yield lambda: has_match(pattern, file.subject())
    if schema is not None:
        yield lambda: _fits(schema, absent_is_good, file, where)


def _long_enough(least: int, file: AgentFile, where: str) -> Verdict:
    size = file.size()
    if size >= least:
        return passed(where=where)
    return failed(f"expected at least {counted(least, 'byte')}, found {size}", expected=least, found=size, where=where)


def _contains(text: str, file: AgentFile, where: str) -> Verdict:
    """The verdict on a file that should contain a text, which may be found even if the rest is no text."""
    try:
        return has(text, file.subject())
    except Unreadable:
        if text.encode(errors="surrogatepass") in file.content():
            return passed(where=where)
        raise


def _has_digest(wanted: str, file: AgentFile, where: str) -> Verdict:
    found = file.sha256()
    if found == wanted.lower():
        return passed(where=where)
    return failed(f"expected the sha256 {wanted.lower()}, found {found}", expected=wanted, found=found, where=where)


def _fits(schema: dict[str, Any], absent_is_good: bool, file: AgentFile, where: str) -> Verdict:
    from atp.checks.matching.schema import fits_schema

    data = file.data()
    if data is MISSING:
        text = file.content().decode(errors="replace")
        if absent_is_good and (why := file.unread_json()):
            raise Unreadable(f"it has {why}")
        return failed("expected JSON that fits the schema, but the content is not JSON", found=text, where=where)
    return fits_schema(schema, data, where)


def _not_made(path: str, evidence: Evidence) -> Verdict:
    names = [*evidence.changed_files, *(artifact.name for artifact in evidence.artifacts)]
    shown = ", ".join(cut(name, 60) for name in list(dict.fromkeys(names))[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    found = f"{shown}{more}" if names else "nothing"
    wanted = normal_path(path)
    why = ""
    if any(normal_path(artifact.name) == wanted for artifact in evidence.artifacts):
        why = " (the agent listed it as an artifact, but it is not in the workspace)"
    elif not is_glob(wanted) and (there := _path_in_workspace(wanted, evidence)) is not None:
        is_folder = f" (it is a folder: `{wanted}/` asks for a file in it)"
        why = is_folder if there.is_dir() else " (it is there, but the agent did not make or change it)"
    return failed(f"expected the artifact `{path}`{why}, found {found}", expected=path, found=names, where="artifacts")


def _path_in_workspace(path: str, evidence: Evidence) -> Path | None:
    workspace = evidence.workspace
    if workspace is None or not workspace.exists:
        return None
    try:
        there = workspace.path() / path
    except NotKept:
        return None
    return there if there.exists() else None


def files_at(path: str, evidence: Evidence, *, untouched: bool = False) -> Iterator[AgentFile]:
    """The files and artifacts of the agent at this path or glob. A mere reference counts only with its file.

    With `untouched`, files count that the agent did not make or change.
    A link to a folder out of the workspace counts, too, if the file might be behind it: nobody looks there.
    """
    wanted = normal_path(path)
    glob = is_glob(wanted)
    is_wanted = _name_filter(path)
    everything = untouched and evidence.workspace is not None
    files = evidence.workspace.files() if everything and evidence.workspace else evidence.changed_files
    for name, file in files.items():
        if is_wanted(name):
            yield AgentFile(name, file)
        elif isinstance(file, NotKeptFile):
            if file.is_link and _may_be_behind(wanted, name):
                yield AgentFile(name, file)
        elif _may_be_behind(wanted, name) and file.is_symlink():
            if not glob and (file / wanted[len(name) + 1 :]).exists():
                yield AgentFile(wanted, file / wanted[len(name) + 1 :])
            elif glob and file.is_dir() and not file.resolve().is_relative_to(file.parents[name.count("/")].resolve()):
                yield AgentFile(name, file)
    for artifact in evidence.artifacts:
        if _has_content(artifact) and is_wanted(name := normal_path(artifact.name)):
            yield AgentFile(name, artifact)


def _name_filter(path: str) -> Callable[[str], bool]:
    """Whether a name is at this path or glob, as a function."""
    wanted = normal_path(path)
    glob = is_glob(wanted)

    def is_wanted(name: str) -> bool:
        if name == wanted or not glob:
            return name == wanted
        with time_limit():
            return matches_glob(wanted, name)

    return is_wanted


def _has_content(artifact: Artifact) -> bool:
    """Whether the agent handed over what is in an artifact, and not just its name."""
    return artifact.kind == "structured" or artifact.text is not None or artifact.base64 is not None


def _may_be_behind(wanted: str, link: str) -> bool:
    """Whether a wanted file may be in the folder that a link leads to."""
    if not is_glob(wanted):
        return wanted.startswith(f"{link}/")
    return "**" in wanted or wanted.count("/") > link.count("/")


def files_of(evidence: Evidence) -> dict[str, str | Unshown]:
    """The text of all files that the agent made, for a judge, or why one is not shown.

    The workspace goes before artifacts of the same name. Those with another content are shown, too.
    """
    files = [AgentFile(name, path) for name, path in evidence.changed_files.items()]
    files += [AgentFile(normal_path(one.name), one) for one in evidence.artifacts if one.kind != "reference"]
    room, shown = MOST_SHOWN, Versions[str | Unshown]()
    for file in files:
        content: str | Unshown
        try:
            content = file.text_to_show(min(room, LARGEST_SHOWN))
        except NotShown as error:
            content = error.unshown
        if shown.add(file.name, content) and isinstance(content, str):
            room -= len(content)
    for artifact in evidence.artifacts:
        if artifact.kind == "reference":
            shown.files.setdefault(normal_path(artifact.name), Unshown("the agent named it and did not send it"))
    return shown.files


class Versions(Generic[Content]):
    """Contents of files by their names. Another content of the same name gets a number."""

    def __init__(self) -> None:
        self.files: dict[str, Content] = {}
        self._known: set[tuple[str, Content]] = set()
        self._numbers: dict[str, int] = {}

    def add(self, name: str, content: Content) -> bool:
        """Add a file. False if the same is there already."""
        if (name, content) in self._known:
            return False
        self._known.add((name, content))
        key = name
        while key in self.files:
            self._numbers[name] = number = self._numbers.get(name, 1) + 1
            key = f"{name} (version {number})"
        self.files[key] = content
        return True
