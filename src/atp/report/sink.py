"""Where lines go: a file or stdout."""

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TextIO


class Sink(Protocol):
    """Takes whole lines. Raises `OSError` when it can't."""

    def write(self, line: bytes) -> None:
        """Pass a line on at once."""

    def close(self) -> None:
        """No more lines."""


class LineFile:
    """A file that is written line by line, each readable for others at once."""

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        """Truncate an earlier file; with `fresh`, raise `FileExistsError` rather than that."""
        kind = os.O_EXCL if fresh else os.O_TRUNC
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | kind | getattr(os, "O_BINARY", 0), 0o644)
        self._size = 0

    def write(self, line: bytes) -> None:
        """Append a line. When the disk is full, nothing of it stays: half a line is no JSON."""
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
        """Close it."""
        os.close(self._fd)


class LineStream:
    """The bytes below a text stream: JSON is UTF-8, whatever the terminal's encoding."""

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
        """The stream isn't ours to close."""


def open_stdout() -> TextIO:
    """Stdout. Raises `OSError` when it was closed before we began: Python has none then, nor has what stands for it."""
    stream: TextIO | None = sys.stdout
    while stream is not None and hasattr(stream, "real"):
        stream = stream.real
    if stream is None:
        raise OSError(errno.EBADF, "it is closed")
    return sys.stdout


def let_go(stream: TextIO) -> None:
    """Nobody reads the stream any more: what Python has left to write there at its end goes nowhere, silently."""
    with suppress(OSError, ValueError):
        if stream in (sys.stdout, sys.stderr):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
