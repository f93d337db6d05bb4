"""What an MCP server writes to stderr: it goes to the log of whoever calls it just then, else of whoever is next."""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.usercode.printed import LONGEST, KeptLines

_WAITING = 200
"""Lines that are kept until somebody calls."""
_TAIL = 10
_PIECE = 64 * 1024
_PIECES = 16
_LONGEST_PART = 4 * LONGEST


class ServerLog:
    """The lines of a server, over all its lives."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listeners: list[KeptLines] = []
        self._waiting: deque[str] = deque(maxlen=_WAITING)
        self._tail: deque[str] = deque(maxlen=_TAIL)

    @property
    def tail(self) -> str:
        """The last lines, for a message."""
        return cut("\n".join(self._tail)[-1000:], RAW_LENGTH)

    def begin_life(self) -> None:
        """The server is started: what its last life wrote explains nothing any more."""
        self._tail.clear()

    def add(self, line: str) -> None:
        """A line was written."""
        self._tail.append(cut(line, LONGEST))
        if not self._listeners:
            self._waiting.append(line)
        for kept in self._listeners:
            kept.add(f"{self._name}: {line}")

    @contextmanager
    def to(self, log: Callable[[str], None]) -> Iterator[None]:
        """From here on lines go to this log, those that nobody has had before them."""
        kept = KeptLines(log)
        while self._waiting:
            kept.add(f"{self._name}: {self._waiting.popleft()}")
        self._listeners.append(kept)
        try:
            yield
        finally:
            self._listeners.remove(kept)
            kept.finish()


class StderrPipe:
    """A process's stderr, read as it is written."""

    def __init__(self, stream: IO[bytes], log: ServerLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._part = b""
        self._stream: IO[bytes] | None = stream
        os.set_blocking(stream.fileno(), False)
        self._loop.add_reader(stream.fileno(), self.read)

    def read(self) -> None:
        """Take in what is there now."""
        for _ in range(_PIECES):  # one that prints without end must not keep us here
            if self._stream is None:
                return
            try:
                piece = os.read(self._stream.fileno(), _PIECE)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._drop()
                return
            *lines, self._part = (self._part + piece).split(b"\n")
            if len(self._part) > _LONGEST_PART:
                lines.append(self._part)
                self._part = b""
            for line in lines:
                self._log.add(line.decode(errors="replace").rstrip("\r"))

    def close(self) -> None:
        """Nothing more is expected."""
        self.read()
        self._drop()

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        self._loop.remove_reader(stream.fileno())
        stream.close()
        if self._part:
            self._log.add(self._part.decode(errors="replace"))
            self._part = b""
