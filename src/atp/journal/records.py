"""The journal: one JSON object a line, appended as things happen. It is the only store.

A line is in the hands of the operating system before the next trial begins, so a kill -9 loses no finished trial; it is
on the disk at most a second later, so a power cut loses little.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from atp.base.secrets import mask
from atp.suite.result import Transcript, TrialResult

NAME = "journal.jsonl"
SYNC_EVERY = 1.0
"""Seconds between two writes to the disk proper."""


class Line(msgspec.Struct, tag_field="type", tag=str.lower):
    """A line of the journal."""


class Start(Line, omit_defaults=True, kw_only=True):
    """The run begins, or goes on after a break."""

    run: str
    """The run's id."""
    at: float
    """Seconds since 1970."""
    version: str
    """ATP's version."""
    input: list[str]
    """What was given to test, as absolute paths or texts."""
    agents: list[str] = []
    """The agents under test."""
    options: dict[str, Any] = {}
    """How it runs."""
    flags: list[str] | None = None
    """Which of the options the command line, or the caller in code, gave; nothing if that isn't known."""
    cases: int = 0
    """How many cases there are, per agent counted once each."""
    trials: int = 0
    """How many trials are planned."""
    resumed: bool = False
    """It goes on with what is above."""
    given: list[str] = []
    """What was given to test, as it was written."""
    files: list[str] = []
    """The test files, in order."""
    runs: int = 1
    """Runs per case."""
    environment: dict[str, Any] = {}
    """The test environment."""
    connector: str | None = None
    """The connector that was named."""
    parallel: int = 1
    """Trials at a time."""
    varied: bool = False
    """Some case runs with more than one prompt."""
    kept: int = 0
    """Trials taken over from above."""
    notes: list[str] = []
    """What a person was told before it started."""


class Skipped(Line, omit_defaults=True, kw_only=True):
    """A case is left out, as its file asks."""

    case: str
    """The case's id."""
    name: str = ""
    """The case's name."""
    file: str = ""
    """The file it stands in."""
    line: int = 0
    """The line it begins on."""
    tags: list[str] = []
    """Its tags."""
    reason: str | None = None
    """Why, if that is known."""


class About(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What reports say of a case beside its trials. It stands on the line of the first of them."""

    name: str = ""
    """The case's name."""
    line: int = 0
    """The line it begins on."""
    tags: list[str] = []
    """Its tags."""
    input: Any = None
    """What is said to the agent."""
    input_data: dict[str, Any] | None = None
    """What its task hands to the agent beside that."""
    expected: Any = None
    """The expected output, if the case gives one."""
    pass_rate: float | None = None
    """The share of trials that must pass, if not all."""
    min_score: float | None = None
    """The least score that passes."""
    trials: int = 1
    """How many trials the case has against an agent."""
    runs: int = 1
    """How many of them each variation has."""


class Trial(Line, omit_defaults=True, kw_only=True):
    """A trial ended."""

    result: TrialResult
    """Everything about it."""
    file: str = ""
    """The file its case stands in."""
    about: About | None = None
    """Its case."""


class Kept(Line, omit_defaults=True, kw_only=True):
    """A trial that stands above, before the run went on, is taken over."""

    key: str
    """Its key."""
    index: int = 0
    """Where its case stands in its file by now."""
    file: str = ""
    """The file its case stands in."""
    about: About | None = None
    """Its case."""


class Before(Line, kw_only=True):
    """A case was replayed for others to go on from; its own trials are lines of their own."""

    result: TrialResult
    """Everything about it."""
    file: str = ""
    """The file its case stands in."""


class Summary(Line, kw_only=True):
    """The run ended."""

    at: float
    """Seconds since 1970."""
    complete: bool
    """Nothing is left to do."""
    reason: str | None = None
    """Why it ended early."""
    counts: dict[str, Any] = {}
    """What came of it."""
    exit_code: int = 0
    """What the run itself asks the process to end with."""
    exhausted: str | None = None
    """The budget that has to be raised before it is any use to go on."""


_DECODER = msgspec.json.Decoder(Start | Skipped | Trial | Kept | Before | Summary)
_ENCODER = msgspec.json.Encoder()
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What is raised for a value that JSON has no words for. Agents' are refused when they come; others' may slip by."""
_OF_TRIALS = (b'{"type":"trial"', b'{"type":"kept"')


class JournalError(Exception):
    """The journal can't be written: the run can't go on."""


class Journal:
    """A journal that is being written."""

    def __init__(self, folder: Path, secrets: Iterable[str] = ()) -> None:
        """`secrets` are what no line may show."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self._secrets = frozenset(secrets)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._synced = time.monotonic()
        self._buffer = bytearray()

    def write(self, line: Line) -> None:
        """Append a line. It survives the end of this process from here on. Raises `JournalError`.

        A result that can't be written becomes an error, as a trial that can't be judged does: no other is lost for it.
        """
        try:
            self._encode(line)
        except _UNWRITABLE as error:
            self._encode_rest(line, error)
        self._buffer += b"\n"
        try:
            self._append(self._buffer)
            if time.monotonic() - self._synced > SYNC_EVERY:
                self.sync()
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)  # half a line would spoil the next one
            raise JournalError(f"{self.path} can't be written: {error.strerror or error}") from error
        self._size += len(self._buffer)

    def _encode(self, line: Line) -> None:
        shown = mask(msgspec.to_builtins(line), self._secrets, numbers=False) if self._secrets else line
        try:
            self._buffer.clear()
            _ENCODER.encode_into(shown, self._buffer)
        except UnicodeEncodeError:  # what an agent prints or raises may have half a surrogate pair in it
            self._buffer.clear()
            _ENCODER.encode_into(_whole(msgspec.to_builtins(shown)), self._buffer)

    def _encode_rest(self, line: Line, why: Exception) -> None:
        reason = f"{type(why).__name__}: {why}"
        try:
            if not isinstance(line, Trial | Before):
                raise JournalError(f"{self.path}: a line can't be written: {reason}") from why
            _empty(line.result, f"the result can't be written: {reason}")
            self._encode(line)
        except _UNWRITABLE as error:
            raise JournalError(f"{self.path}: a line can't be written: {type(error).__name__}: {error}") from error

    def _append(self, data: bytearray) -> None:
        while data:
            data = data[os.write(self._fd, data) :]

    def sync(self) -> None:
        """Have the disk keep what was written."""
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Sync and close."""
        with suppress(OSError):  # a disk that failed has been told of
            self.sync()
        os.close(self._fd)


def _empty(result: TrialResult, why: str) -> None:
    """Take all out of a result that isn't ours, and say so: whoever is told of it after the journal can't write it."""
    result.status, result.blame, result.error = "error", "internal", why
    result.transcript, result.verdicts, result.role_usage = Transcript(), [], None
    result.score, result.dimensions, result.left_out = None, {}, {}
    result.retries, result.warnings = [], []


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def mend(path: Path) -> int:
    """Cut off a last line that was torn by a crash. Returns how many bytes were cut."""
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            begin = max(0, end - 65536)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                end = begin + newline + 1
                break
            end = begin
        file.truncate(end)
        return size - end


def read_lines(
    path: Path, *, trials: bool = True, begin: int = 0, damaged: list[int] | None = None
) -> Iterator[tuple[int, Line]]:
    """The lines of a journal, each with its offset; a torn or damaged one is passed over, and noted in `damaged`."""
    offset = begin
    with path.open("rb") as file:
        file.seek(begin)
        for raw in file:
            if trials or not raw.startswith(_OF_TRIALS):
                try:
                    line = _DECODER.decode(raw) if raw.endswith(b"\n") else None
                except msgspec.MsgspecError:
                    line = None
                if line is not None:
                    yield offset, line
                elif damaged is not None:
                    damaged.append(offset)
            offset += len(raw)


def decode_trial(raw: bytes) -> Trial:
    """A trial's line."""
    line = _DECODER.decode(raw)
    assert isinstance(line, Trial)
    return line
