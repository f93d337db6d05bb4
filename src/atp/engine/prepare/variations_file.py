"""The file beside `x.test.md` that keeps generated variations: `x.variations.jsonl`, made to be committed.

Lines are only ever added. A line belongs to a case and to a digest of what was varied: editing the prompts or the
intent makes new variations, and those of the old text lie idle. The same number always gives the same text, so raising
`iterations` keeps what has run before. What rules made is passed over when a client is there to do it better; what a
client made also serves where there is none, in CI for example.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from atp.base.diagnostics import Diagnostics, LoadError, Place
from atp.engine.prepare.keys import digest
from atp.roles.ask import RoleClient
from atp.roles.generate.variator import RULES, Variation, VariationRequest, Variations, vary
from atp.suite.case import Case

ENDING = ".variations.jsonl"
"""What the file's name ends with, where the test file's ends with `.test.md`."""


class Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One generated variation."""

    case: str
    """The case's id."""
    digest: str
    """Of the intent and the listed prompts."""
    number: int
    """Which variation of the case it is, from 0, the listed ones counted."""
    chain: list[str]
    """The prompts."""
    by: str
    """Who made it: a client's name, or `rules`."""


_DECODER = msgspec.json.Decoder(Line)


def sidecar_path(path: str | Path) -> Path:
    """The file beside a test file."""
    file = Path(path)
    stem = file.name[: -len(".test.md")] if file.name.lower().endswith(".test.md") else file.stem
    return file.with_name(stem + ENDING)


def varied_digest(case: Case) -> str:
    """What of a case decides its variations."""
    return digest(case.intent, case.chains)[:16]


class Sidecar:
    """The variations of one test file."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is kept: there is no file to put it beside."""
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._lines: list[Line] = []

    @classmethod
    def beside(cls, path: str | None) -> "Sidecar":
        """That of a test file; that of nothing keeps nothing."""
        return cls(sidecar_path(path) if path else None)

    def read(self, case_id: str, digest: str, *, rules: bool = True) -> dict[int, Variation]:
        """The variations that are kept of a case, by number.

        Of two with the same number the older one counts, but a client's before the rules', which are left out without
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
        """Keep generated variations. Returns those that are in force for their numbers.

        Another process may have been quicker: then its variations are the ones. Raises `OSError` if the file can't be
        written, `LoadError` if it can't be read.
        """
        if self.path is None:
            return dict(made)
        with _locked(self.path) as handle:
            _mend(handle)
            there = self.read(case_id, digest, rules=any(one.by == RULES for one in made.values()))
            new = {number: one for number, one in made.items() if number not in there}
            lines = [
                Line(case=case_id, digest=digest, number=number, chain=one.chain, by=one.by or RULES)
                for number, one in new.items()
            ]
            _write(handle, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        return {number: there.get(number, one) for number, one in made.items()}

    def _read(self) -> list[Line]:
        """All lines; a last one that a crash tore is passed over."""
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
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if number == len(raws) and not isinstance(error, msgspec.ValidationError):
                continue  # half a line, of a process that was killed
            message = f"this line is no variation: {error}"
            notes.error("variations-file", message, Place(number, 1), "remove the line; a new variation is then made")
    if notes:
        raise LoadError(notes)
    return lines


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _mend(handle: int) -> None:
    """End the last line, or cut off what a crash left of it, so that the next one stands alone."""
    size = os.fstat(handle).st_size
    tail = b""
    at = size
    while at > 0 and b"\n" not in tail:
        step = min(at, 65536)
        at -= step
        tail = os.pread(handle, step, at) + tail
    last = tail[tail.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        _DECODER.decode(last)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        os.ftruncate(handle, size - len(last))
    else:
        _write(handle, b"\n")


def _write(handle: int, data: bytes) -> None:
    """All of it or nothing: half a line would be in the next one's way."""
    size = os.fstat(handle).st_size
    try:
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


async def variations_for(
    case: Case, count: int, sidecar: Sidecar, client: RoleClient | None, file: str | None = None
) -> Variations:
    """The variations of a case: the listed ones, those that are kept, and new ones, which are then kept too.

    Raises `LoadError` if the sidecar can't be read.
    """
    wanted = VariationRequest(
        chains=case.chains,
        count=count,
        intent=case.intent,
        name=case.name or case.id,
        place=case.place,
        file=file,
    )
    if count <= len(case.chains):
        return await vary(wanted, client)
    hashed = varied_digest(case)
    known = sidecar.read(case.id, hashed, rules=client is None)
    made = await vary(wanted, client, known)
    # What rules made because a client failed is not kept: the client shall do it when it works again.
    new = {
        number: one
        for number, one in enumerate(made)
        if one.origin == "generated" and number not in known and (client is None or one.by != RULES)
    }
    try:
        kept = sidecar.append(case.id, hashed, new) if new else {}
    except OSError as error:
        message = f"the variations can't be kept in {sidecar.path}: {error.strerror or error}"
        made.warn(wanted, "variations-not-kept", message, "let the folder be written to, or commit the file")
        return made
    for number, one in kept.items():
        made[number] = one
    return made
