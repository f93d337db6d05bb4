"""`quarantine.yaml` at the project's root: cases that are known to fail, who looks after each, and until when.

A quarantined case runs and is reported like any other. Its failures are taken out of the exit code until the entry
expires; from then on the entry is an error, so that no failure is excused for ever.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, Place, has_errors
from atp.base.project import QUARANTINE
from atp.loader.source import read_source
from atp.loader.validate import Locator, validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.record import Record, Text
from atp.suite.result import Quarantined

_EXAMPLE = '- {case: refund, owner: ada, reason: "why it fails", expires: 2026-12-31}'


def _read_day(given: Any) -> date:
    """The day that a text names. pydantic would take a number for seconds since 1970."""
    try:
        if isinstance(given, str) and len(given) == len("2026-12-31"):
            return date.fromisoformat(given)
    except ValueError:
        pass
    hint = "write it as year-month-day, for example 2026-12-31"
    raise PydanticCustomError("quarantine_date", "not a day", {"hint": hint})


class Entry(Record):
    """A case that is in quarantine."""

    case: Text
    """The case's id."""
    file: Text | None = None
    """The test file of the case, as a path from the project's root; left out: any file."""
    owner: Text
    """Who looks after it."""
    reason: Text
    """Why it is known to fail."""
    expires: Annotated[date, BeforeValidator(_read_day)] = Field(validation_alias=AliasChoices("expires", "expiry"))
    """The last day on which its failures are excused."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """An entry, and where it stands in its file."""

    entry: Entry
    case_place: Place
    """Where the case's id stands."""
    day_place: Place
    """Where the last day stands."""
    file: Path | None
    """The test file that the entry names."""


@dataclass(slots=True)
class Quarantine:
    """The entries of a project's file; none if there is no file."""

    path: str = QUARANTINE
    """The file, for messages."""
    by_case: dict[str, list[_Placed]] = field(default_factory=dict)
    """The entries by the id of their case."""

    def of(self, file: str | None, case: str) -> Quarantined | None:
        """What the file says of a case; None if the case is not in quarantine."""
        for one in self.by_case.get(case, ()):
            if one.file is None or (file is not None and _real(file) == one.file):
                entry = one.entry
                return Quarantined(owner=entry.owner, reason=entry.reason, expires=entry.expires.isoformat())
        return None

    def unused(self, files: Mapping[str, Iterable[str]], *, whole_project: bool) -> Iterator[Diagnostic]:
        """Warnings of entries for which there is no case; `files` has the ids of the cases that each test file has.

        Of an entry without a file that is known only if the `whole_project` is run.
        """
        known = {_real(file): set(ids) for file, ids in files.items()} if self.by_case else {}
        notes = Diagnostics(self.path)
        for case, entries in self.by_case.items():
            for one in entries:
                if one.file is None:
                    is_unused = whole_project and not any(case in ids for ids in known.values())
                else:
                    is_unused = case not in known[one.file] if one.file in known else not one.file.exists()
                if is_unused:
                    where = f" in {one.entry.file}" if one.entry.file else ""
                    message = f"there is no case `{case}`{where}, so nothing is in quarantine"
                    notes.warn("quarantine-unused", message, one.case_place, "remove the entry, or correct its `case`")
        yield from notes


@lru_cache(maxsize=256)
def _real(file: str) -> Path:
    return Path(os.path.realpath(file))


def load_quarantine(root: Path, today: date | None = None) -> Quarantine:
    """The quarantine of a project. Raises `LoadError` for a file that can't be used, and for expired entries.

    `today` is the day on which entries are looked at; None means today.
    """
    path = root / QUARANTINE
    if not os.path.lexists(path):
        return Quarantine()
    shown = os.path.relpath(path)
    notes = Diagnostics(shown if not shown.startswith("..") else str(path))
    source = read_source(path, notes)
    parsed = parse_yaml(source.text, notes) if source is not None and _has_content(source.text) else None
    found = Quarantine(str(notes.file))
    if parsed is not None:
        base, raw = _entries(parsed.data, notes)
        for number, one in enumerate(raw):
            _add(found, one, (*base, number), root, notes, parsed.locator)
        _check_expired(found, today or datetime.now().astimezone().date(), notes)
    if has_errors(notes):
        raise LoadError(notes.in_order())
    return found


def _has_content(text: str) -> bool:
    """False for an empty file and for one of comments: there is nothing in quarantine."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _entries(data: Any, notes: Diagnostics) -> tuple[tuple[str, ...], Sequence[Any]]:
    """The list of entries, and its path in the file: the whole file, or what is under `quarantine`."""
    base: tuple[str, ...] = ()
    if isinstance(data, dict) and list(data) == ["quarantine"]:
        data, base = data["quarantine"], ("quarantine",)
    if data is None:
        return base, []
    if not isinstance(data, list):
        notes.error("wrong-type", f"{QUARANTINE} must be a list of entries", Place(1, 1), f"write {_EXAMPLE}")
        return base, []
    return base, data


def _add(
    found: Quarantine, raw: Any, path: tuple[str | int, ...], root: Path, notes: Diagnostics, locate: Locator
) -> None:
    place = locate.value(path)
    if not isinstance(raw, dict):
        notes.error("wrong-type", "an entry must be a mapping", place, f"write {_EXAMPLE}")
        return
    before = len(notes)
    entry = validate(Entry, raw, notes, locate, path)
    if entry is None or has_errors(list(notes)[before:]):
        return
    file = _real(str(root / entry.file)) if entry.file is not None else None
    same = found.by_case.setdefault(entry.case, [])
    if any(one.file == file for one in same):
        message = f"`{entry.case}` is in quarantine twice"
        notes.error("quarantine-duplicate", message, place, "keep one of the entries")
        return
    day = "expires" if "expires" in raw else "expiry"
    same.append(_Placed(entry, locate.value((*path, "case")), locate.value((*path, day)), file))
    same.sort(key=lambda one: one.file is None)  # what names its file goes first


def _check_expired(found: Quarantine, today: date, notes: Diagnostics) -> None:
    for one in (one for entries in found.by_case.values() for one in entries):
        entry = one.entry
        if entry.expires < today:
            message = f"the quarantine of `{entry.case}` expired on {entry.expires} (owner: {entry.owner})"
            hint = "fix the case and remove the entry, or agree with its owner on a later day"
            notes.error("quarantine-expired", message, one.day_place, hint)
