"""A file of JSON lines that are only appended, by any number of processes.

Each line is written whole, under the file's lock. The next writer removes a line that a crash cut off.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from atp.base.files import write_file
from atp.base.json.text import UNREADABLE


class StoredLine(NamedTuple):
    """Where a line is stored."""

    file: int
    """The descriptor of the file, which stays valid when the file is replaced."""
    offset: int
    """Where the line begins."""
    length: int
    """How many bytes the line has."""

    def read(self) -> bytes:
        """Read the line."""
        return os.pread(self.file, self.length, self.offset)


class LineFile:
    """A file to which lines are appended, by any number of processes."""

    def __init__(self, path: Path, write: bool = True) -> None:
        """Without `write` the file is only read, and must exist."""
        self.path = path
        self._flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
        self._open: list[int] = []

    def lines(self, start: int = 0) -> Iterator[tuple[StoredLine, bytes]]:
        """The lines from an offset on. A last line without a line break was cut off, or is being written."""
        descriptor = self._newest()
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(start)
            for line in file:
                yield StoredLine(descriptor, start, len(line)), line
                start += len(line)

    def append(self, lines: bytes | Callable[[], bytes]) -> StoredLine:
        """Append lines, each with its line break. Raises `OSError` and then leaves the file as it was.

        A callable is called under the lock, so that it may read what other processes have added.
        """
        with self._locked() as file:
            end = _end_of_last_line(file)
            line = lines() if callable(lines) else lines
            try:
                written = 0
                while written < len(line):
                    written += os.write(file, line[written:])
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, end)
                raise
        return StoredLine(file, end, len(line))

    def rewrite(self, content: Callable[[], bytes]) -> None:
        """Replace the file's content under its lock. Readers get the old content or the new one."""
        with self._locked():
            new = content()
            if new != self.path.read_bytes():
                write_file(self.path, new.decode())

    def contains(self, line: StoredLine) -> bool:
        """True if a line is in this file."""
        return line.file in self._open

    def close(self) -> None:
        """Sync and close the file. Its lines can't be read any more."""
        for file in self._open:
            with contextlib.suppress(OSError):
                os.fsync(file)
            os.close(file)
        self._open.clear()

    def _newest(self) -> int:
        if not self._open:
            self._open.append(os.open(self.path, self._flags, 0o644))
        return self._open[-1]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        while True:
            file = self._newest()
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                if self._is_current(file):
                    yield file
                    return
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)
            # Another process has replaced the file. Known lines can still be read from the old one.
            self._open.append(os.open(self.path, self._flags, 0o644))

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False


def _end_of_last_line(file: int) -> int:
    """Remove what a crash left of a last line, and return where the next line begins."""
    size = os.fstat(file).st_size
    if size == 0 or os.pread(file, 1, size - 1) == b"\n":
        return size
    text = os.pread(file, size, 0)
    begin = text.rfind(b"\n") + 1
    try:
        msgspec.json.decode(text[begin:])
    except UNREADABLE:
        os.ftruncate(file, begin)
        return begin
    os.write(file, b"\n")  # an editor saved the file without its last line break
    return size + 1
