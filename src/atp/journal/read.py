"""Reads a journal: its lines, how its run started and ended, how long it took."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atp.base.diagnostics import load_error
from atp.base.json.text import UNREADABLE
from atp.base.project import unreadable
from atp.journal.records import FORMAT, NAME, Before, Case, Kept, Line, RunInfo, Skipped, Summary, Trial

_DECODER = msgspec.json.Decoder(RunInfo | Skipped | Trial | Kept | Case | Before | Summary)
_START = b'{"type":"start"'
_TRIALS = (b'{"type":"trial"', b'{"type":"kept"')


class _Format(msgspec.Struct):
    format: int = 0


def read_lines(
    path: Path, *, trials: bool = True, begin: int = 0, damaged: list[int] | None = None
) -> Iterator[tuple[int, Line]]:
    """The lines of a journal, each with its offset; a torn or damaged one is passed over, and noted in `damaged`.

    Raises `LoadError` for a journal of a newer format: it can't be known what its lines mean.
    """
    offset = begin
    with path.open("rb") as file:
        file.seek(begin)
        for raw in file:
            if trials or not raw.startswith(_TRIALS):
                line = decode_line(raw, path) if raw.endswith(b"\n") else None
                if line is not None:
                    yield offset, line
                elif damaged is not None:
                    damaged.append(offset)
            offset += len(raw)


def decode_line(raw: bytes, path: Path) -> Line | None:
    """The record of a line of the journal at `path`; None for a damaged line. Raises `LoadError`, as `read_lines`."""
    if raw.startswith(_START):
        _check_format(raw, path)
    try:
        line: Line = _DECODER.decode(raw)
    except UNREADABLE:
        return None
    return line


def _check_format(raw: bytes, path: Path) -> None:
    try:
        found = msgspec.json.decode(raw, type=_Format).format
    except UNREADABLE:
        return  # a damaged line
    if found > FORMAT:
        message = f"{path} has format {found}, and this version of ATP reads journals up to format {FORMAT}"
        raise load_error("newer-format", message, "update ATP, or read it with the version that wrote it")


def decode_trial(raw: bytes) -> Trial:
    """The record of a trial's line. Raises one of `UNREADABLE` for any other line."""
    line = _DECODER.decode(raw)
    if not isinstance(line, Trial):
        raise msgspec.ValidationError("not the line of a trial")
    return line


def decode_trial_line(raw: bytes) -> Trial | Kept:
    """The record of a trial's line, or of one that takes a trial over. Raises one of `UNREADABLE` for others."""
    line = _DECODER.decode(raw)
    if not isinstance(line, Trial | Kept):
        raise msgspec.ValidationError("not the line of a trial")
    return line


def decode_result(raw: bytes) -> Trial | Before:
    """The record of a line with the result of a trial or a before. Raises one of `UNREADABLE` for any other line."""
    line = _DECODER.decode(raw)
    if not isinstance(line, Trial | Before):
        raise msgspec.ValidationError("not a line with a result")
    return line


def bounds(run: Path) -> tuple[RunInfo | None, Summary | None]:
    """How a run started, with what was planned when it last went on, and how it ended if it did."""
    start: RunInfo | None = None
    summary: Summary | None = None
    try:
        for _, line in read_lines(run / NAME, trials=False):
            if isinstance(line, RunInfo):
                start, summary = line if start is None else replace(line, first_started_at=start.started_at), None
            elif isinstance(line, Summary):
                summary = line
    except OSError as error:
        raise unreadable(run / NAME, error) from error
    return start, summary


class RunTimes:
    """When a run first started and how long it took, from its lines. Each time that it went on has a start line."""

    def __init__(self) -> None:
        self.first_started_at: float | None = None
        """Seconds since 1970."""
        self._earlier_ms = 0.0
        self._start = 0.0
        self._last = 0.0

    def add(self, line: Line) -> None:
        """Take in the next line. A run that was killed wrote no summary: its last trial tells when it ended."""
        if isinstance(line, RunInfo):
            self._earlier_ms = self.duration_ms
            self._start = self._last = line.at
            if self.first_started_at is None:
                self.first_started_at = line.at
        elif isinstance(line, Trial):
            self._last = max(self._last, line.result.started_at + line.result.duration_ms / 1000)
        elif isinstance(line, Summary):
            self._last = line.at

    @property
    def duration_ms(self) -> float:
        """How long the run took, the breaks left out."""
        return self._earlier_ms + (self._last - self._start) * 1000
