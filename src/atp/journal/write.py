"""Writes a journal: lines are appended as things happen.

A line is in the hands of the operating system before the next trial begins, so a kill -9 loses no finished trial; it is
on the disk at most a second later, so a power cut loses little.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from atp.base.errors import Error
from atp.base.json.text import whole_text
from atp.base.secrets import MASK, Secrets
from atp.journal.records import NAME, Before, Line, Trial
from atp.suite.result import Transcript, TrialResult

SYNC_EVERY = 1.0
"""Seconds between two fsyncs."""
_ENCODER = msgspec.json.Encoder()
_MASK = MASK.encode()
_UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""Raised for a value that JSON can't express. Agents' values are checked when they come; others' may slip by."""


class JournalError(Error):
    """The journal can't be written: the run can't go on."""


class Journal:
    """A journal that is being written."""

    def __init__(self, folder: Path, secrets: Secrets | None = None) -> None:
        """`secrets` are masked in every line."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        self._secrets = secrets if secrets is not None else Secrets()
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._synced = time.monotonic()
        self._buffer = bytearray()

    def write(self, line: Line) -> None:
        """Append a line. The line survives the end of this process from here on. Raises `JournalError`.

        A result that can't be written becomes an error, as a trial that can't be judged does: no other is lost for it.
        """
        try:
            self._encode(line)
        except _UNWRITABLE as error:
            self._encode_emptied(line, error)
        self._buffer += b"\n"
        self._check_size()
        try:
            self._append(self._buffer)
            if time.monotonic() - self._synced > SYNC_EVERY:
                self.sync()
        except OSError as error:
            self._remove_torn_line()
            raise JournalError(f"{self.path} can't be written: {error.strerror or error}") from error
        self._size += len(self._buffer)

    def _remove_torn_line(self) -> None:
        """Cut off a line that was written in part: it would spoil the next one."""
        with suppress(OSError):
            if os.fstat(self._fd).st_size > self._size:
                os.ftruncate(self._fd, self._size)

    def _check_size(self) -> os.stat_result:
        """Raise `JournalError` if what was written is gone: nobody else may write to the journal of a run.

        This is checked before every line: a line behind half of another would be lost with it.
        """
        about = os.fstat(self._fd)
        if about.st_nlink == 0:
            raise JournalError(f"{self.path} was deleted or replaced while the run was writing to it")
        if about.st_size != self._size:
            change = "cut" if about.st_size < self._size else "written to by another process"
            raise JournalError(f"{self.path} was {change} while the run was writing to it")
        return about

    def check(self) -> None:
        """Raise `JournalError` if the journal does not have all that was written, or is no longer at its path."""
        about = self._check_size()
        try:
            there = os.path.samestat(about, os.stat(self.path))
        except OSError:
            there = False
        if not there:
            raise JournalError(f"{self.path} was deleted or replaced while the run was writing to it")

    def _encode(self, line: Line) -> None:
        self._encode_unmasked(line)
        may_mask = self._secrets.may_be_in(self._buffer)  # much faster than walking through the record
        if isinstance(line, Trial | Before) and (may_mask or _MASK in self._buffer):
            # Whoever judges the result again has to know what the agent wrote. Of a result that was read, it is known.
            line.result.masked = bool(line.result.masked) or may_mask
            self._encode_unmasked(line)
        if may_mask:
            masked = _without_surrogates(msgspec.to_builtins(self._secrets.mask(line, numbers=False)))
            self._buffer.clear()
            _ENCODER.encode_into(masked, self._buffer)

    def _encode_unmasked(self, line: Line) -> None:
        try:
            self._buffer.clear()
            _ENCODER.encode_into(line, self._buffer)
        except UnicodeEncodeError:  # what an agent prints or raises may have half a surrogate pair in it
            self._buffer.clear()
            _ENCODER.encode_into(_without_surrogates(msgspec.to_builtins(line)), self._buffer)

    def _encode_emptied(self, line: Line, why: Exception) -> None:
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
        with suppress(OSError):  # a disk that failed was reported when a line was written
            self.sync()
        os.close(self._fd)


def _empty(result: TrialResult, why: str) -> None:
    """Remove everything from a result that came from other code: listeners that get it later can't write it either."""
    result.status, result.blame, result.error = "error", "internal", why
    result.transcript, result.verdicts, result.role_usage = Transcript(), [], None
    result.score, result.dimensions, result.left_out = None, {}, {}
    result.retries, result.warnings = [], []


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def cut_torn_line(path: Path) -> int:
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
