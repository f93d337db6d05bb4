"""The file beside `x.test.md` that keeps generated variations: `x.variations.jsonl`, made to be committed.

Lines are only added. A line belongs to a case and to a digest of its prompts and intent: after an edit, new variations
are generated, and the old lines are ignored. The same number always gives the same text, so raising `iterations` keeps
what has run before. Variations by rules are ignored when there is a client; those of a client are also used without
one, in CI for example.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from atp.base.diagnostics import Diagnostics, LoadError, Place
from atp.base.json.text import UNREADABLE
from atp.base.line_file import LineFile
from atp.engine.keys import digest
from atp.roles.ask import RoleClient
from atp.roles.generate.variator import RULES, Variation, VariationRequest, Variations, vary
from atp.suite.case import Case

ENDING = ".variations.jsonl"
"""The ending of the file's name, in place of `.test.md`."""


class Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One generated variation."""

    case: str
    """The case's id."""
    digest: str
    """The digest of the intent and the listed prompts."""
    number: int
    """The number of the variation, from 0, the listed ones included."""
    chain: list[str]
    """The prompts."""
    by: str
    """What generated the variation: a client's name, or `rules`."""


_DECODER = msgspec.json.Decoder(Line)


def variations_path(path: str | Path) -> Path:
    """The path of the variations beside a test file."""
    file = Path(path)
    stem = file.name[: -len(".test.md")] if file.name.lower().endswith(".test.md") else file.stem
    return file.with_name(stem + ENDING)


def varied_digest(case: Case) -> str:
    """The digest of what decides a case's variations."""
    return digest(case.intent, case.chains)[:16]


class VariationsFile:
    """The variations of one test file."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is kept."""
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._lines: list[Line] = []

    @classmethod
    def beside(cls, path: str | None) -> "VariationsFile":
        """The file beside a test file; without a test file, one that keeps nothing."""
        return cls(variations_path(path) if path else None)

    def read(self, case_id: str, digest: str, *, rules: bool = True) -> dict[int, Variation]:
        """The kept variations of a case, by number.

        Of two with the same number, the older one counts, but a client's before the rules', which are left out without
        `rules`. Raises `LoadError` for a line that can't be read.
        """
        found: dict[int, Variation] = {}
        for line in self._read():
            if line.case == case_id and line.digest == digest and (rules or line.by != RULES):
                there = found.get(line.number)
                if there is None or (there.by == RULES and line.by != RULES):
                    found[line.number] = Variation(chain=line.chain, origin="generated", by=line.by)
        return found

    def append(self, case_id: str, digest: str, made: Mapping[int, Variation]) -> dict[int, Variation]:
        """Keep generated variations. Returns those that count for their numbers: another process may have been first.

        Raises `OSError` if the file can't be written, `LoadError` if it can't be read.
        """
        if self.path is None:
            return dict(made)
        kept: dict[int, Variation] = {}

        def new_lines() -> bytes:
            kept.update(self.read(case_id, digest, rules=any(one.by == RULES for one in made.values())))
            lines = [
                Line(case=case_id, digest=digest, number=number, chain=one.chain, by=one.by or RULES)
                for number, one in made.items()
                if number not in kept
            ]
            return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)

        with closing(LineFile(self.path)) as file:
            file.append(new_lines)
        return {number: kept.get(number, one) for number, one in made.items()}

    def _read(self) -> list[Line]:
        """All lines, without a last one that a crash cut off."""
        if self.path is None:
            return []
        try:
            about = self.path.stat()
            seen = (about.st_ino, about.st_size, about.st_mtime_ns)
            if seen != self._seen:
                self._lines, self._seen = _parse(self.path, self.path.read_bytes()), seen
        except FileNotFoundError:
            self._lines, self._seen = [], None
        except OSError as error:
            notes = Diagnostics(str(self.path))
            notes.error("unreadable", f"{self.path} cannot be read: {error.strerror}", hint="check its permissions")
            raise LoadError(notes) from error
        return self._lines


def _parse(path: Path, data: bytes) -> list[Line]:
    notes = Diagnostics(str(path))
    lines: list[Line] = []
    raws = data.split(b"\n")
    for number, raw in enumerate(raws, 1):
        if not raw.strip():
            continue
        try:
            line = _DECODER.decode(raw)
            if not line.chain or line.number < 0:
                raise msgspec.ValidationError("a variation has at least one prompt and a number from 0")
            lines.append(line)
        except UNREADABLE as error:
            if number == len(raws) and not isinstance(error, msgspec.ValidationError):
                continue  # a process was killed while it wrote the line
            message = f"this line is no variation: {error}"
            notes.error("variations-file", message, Place(number, 1), "remove the line; a new variation is then made")
    if notes:
        raise LoadError(notes)
    return lines


async def variations_for(
    case: Case, count: int, file: VariationsFile, client: RoleClient | None, path: str | None = None
) -> Variations:
    """The variations of a case: the listed ones, the kept ones, and new ones, which are then kept.

    Raises `LoadError` if the file can't be read.
    """
    request = VariationRequest(
        chains=case.chains,
        count=count,
        intent=case.intent,
        name=case.name or case.id,
        place=case.place,
        file=path,
    )
    if count <= len(case.chains):
        return await vary(request, client)
    hashed = varied_digest(case)
    known = file.read(case.id, hashed, rules=client is None)
    made = await vary(request, client, known)
    # Variations by rules in place of a failed client are not kept: the client is asked again in the next run.
    new = {
        number: one
        for number, one in enumerate(made)
        if one.origin == "generated" and number not in known and (client is None or one.by != RULES)
    }
    try:
        kept = file.append(case.id, hashed, new) if new else {}
    except OSError as error:
        message = f"the variations can't be kept in {file.path}: {error.strerror or error}"
        made.warn(request, "variations-not-kept", message, "let the folder be written to, or commit the file")
        return made
    for number, one in kept.items():
        made[number] = one
    return made
