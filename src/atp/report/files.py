"""Writes reports: line by line, or whole at the end from parts that wait in temporary files."""

import errno
import os
import shutil
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol, TextIO

from atp.base.files import replacing
from atp.base.streams import own_streams
from atp.suite.result import CaseResult


class Sink(Protocol):
    """Writes whole lines. Raises `OSError` if a line can't be written."""

    def write(self, line: bytes) -> None:
        """Write a line at once."""

    def close(self) -> None:
        """End the lines."""


class LineFile:
    """A file that is written line by line; others can read each line at once."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Truncate an existing file; with `fresh`, raise `FileExistsError` instead."""
        kind = os.O_EXCL if fresh else os.O_TRUNC
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | kind, 0o644)
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append a line. When the disk is full, no part of the line stays: half a line is no JSON."""
        try:
            rest = line
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class LineStream:
    """The bytes below a text stream: JSON is UTF-8, whatever the terminal's encoding is."""

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._stream = stream
        self._bytes = getattr(stream, "buffer", None)

    def write(self, line: bytes) -> None:
        """Write and flush."""
        try:
            if self._bytes is None:
                self._stream.write(line.decode())
            else:
                self._bytes.write(line)
                self._bytes.flush()
        except OSError:
            let_go(self._stream)
            raise

    def close(self) -> None:
        """Do nothing: stdout stays open."""


def open_stdout() -> TextIO:
    """Stdout. Raises `OSError` if stdout was closed before ATP started: Python has None in its place."""
    stdout, _ = own_streams()
    if getattr(stdout, "real", stdout) is None:
        raise OSError(errno.EBADF, "it is closed")
    return stdout


def let_go(stream: TextIO) -> None:
    """Point a stream without a reader to /dev/null, so that Python's last flush does not fail at exit."""
    with suppress(OSError, ValueError):
        if stream in own_streams():
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


@contextmanager
def whole_file(path: Path | None) -> Iterator[IO[bytes]]:
    """A file that replaces the report at `path` once all is written. Without a path, all is printed to stdout then."""
    if path is None:
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            _print(whole)
        return
    if must_stay(path):
        with path.open("wb") as file:
            yield file
        return
    with replacing(path) as file:
        yield file


def must_stay(path: Path) -> bool:
    """True for what no temporary file can replace: `/dev/null`, or a file in a folder without write permission."""
    return path.exists() and not (path.is_file() and os.access(path.resolve().parent, os.W_OK))


def _print(whole: IO[bytes]) -> None:
    stdout = open_stdout()
    stdout.flush()
    try:
        shutil.copyfileobj(whole, stdout.buffer)
        stdout.flush()
    except OSError:
        let_go(stdout)
        raise


def spool_folder(path: Path | None) -> Path | None:
    """The folder for the temporary files of a report: that of the report, so that both are on one disk."""
    return path.resolve().parent if path and not must_stay(path) else None


class Writes(Protocol):
    """Anything with a `write` for bytes."""

    def write(self, data: bytes, /) -> object:
        """Write the bytes."""


class Order:
    """The place of each result in a report: by file, then by index in the file, then by agent, as one number."""

    def __init__(self, agents: Sequence[str], files: Sequence[str] = ()) -> None:
        self._files = {name: number for number, name in enumerate(files)}
        self._agents = {name: number for number, name in enumerate(agents)}

    def file_number(self, file: str | None) -> int:
        """The number of a file. Files that the run didn't name are numbered as they come up."""
        return self._files.setdefault(file or "", len(self._files))

    def place(self, result: CaseResult) -> int:
        """The place of a result, in 64 bits."""
        return self.file_number(result.file) << 48 | min(result.index, 2**32 - 1) << 16 | self._agent(result.agent)

    def by_agent(self, result: CaseResult) -> int:
        """The place that groups the results of an agent: by file, then by agent, then by index in the file."""
        return self.file_number(result.file) << 48 | self._agent(result.agent) << 32 | min(result.index, 2**32 - 1)

    def _agent(self, name: str) -> int:
        return min(self._agents.setdefault(name, len(self._agents)), 2**16 - 1)


class Spool:
    """Parts of a report, in a temporary file until the run ends. Memory has 16 bytes for each: its place and offset."""

    def __init__(self, folder: Path | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (lives as long as the run)
        self._places = array("Q")
        self._offsets = array("Q", [0])

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: int, item: bytes) -> None:
        """Keep an item."""
        self._file.write(item)
        self._places.append(place)
        self._offsets.append(self._offsets[-1] + len(item))

    def __iter__(self) -> Iterator[bytes]:
        """All items, in the order of their places."""
        return (item for _, item in self.placed())

    def placed(self) -> Iterator[tuple[int, bytes]]:
        """All items with their places, in that order."""
        self._file.flush()
        for number in sorted(range(len(self)), key=self._places.__getitem__):
            self._file.seek(self._offsets[number])
            yield self._places[number], self._file.read(self._offsets[number + 1] - self._offsets[number])

    def write_list(self, into: Writes) -> None:
        """Write the items as a JSON list, one a line."""
        between = b"[\n"
        for item in self:
            into.write(between)
            into.write(item)
            between = b",\n"
        into.write(b"\n]" if len(self) else b"[]")

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()
