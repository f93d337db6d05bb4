"""Captures what the user's code prints in our own process: it belongs to its trial's log, not into our output.

A context variable tells who prints. Tasks inherit it, and threads of the user's code are given it, so trials that run
at the same time don't mix.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO, cast

from atp.base.text import cut

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = 500
TAIL = 500
LONGEST = 2000
"""Characters of a line that are kept."""
MOST_DROPS = 1000
"""A thread that prints more often in a second, after its call has ended, does so without end."""

_PRINTED: ContextVar[Printed | None] = ContextVar("printed", default=None)


class KeptLines:
    """Passes lines on to a log up to a bound: the first and the last ones, and how many were left out between."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._count = 0
        self._tail: deque[str] = deque(maxlen=TAIL)

    def add(self, line: str, length: int | None = None) -> None:
        """Keep a line; `length` is the whole line's, if this is only its beginning."""
        self._count += 1
        length = len(line) if length is None else length
        if length > LONGEST:
            line = f"{cut(line, LONGEST)} ({length} characters)"
        if self._count <= HEAD:
            self._log(line)
        else:
            self._tail.append(line)

    def finish(self) -> None:
        """Log the last lines: no more will come."""
        left_out = self._count - HEAD - len(self._tail)
        if left_out > 0:
            self._log(f"… {left_out} lines left out …")
        for line in self._tail:
            self._log(line)
        self._tail.clear()
        self._count = min(self._count, HEAD)


class Abandoned(SystemExit):
    """Raised where code prints that was given up, so that a thread which prints without end comes to one."""


class Printed:
    """What one call prints, in whatever thread. Its cost grows with what is printed, not with the length of a line."""

    __slots__ = ("_begun", "_drops", "_drops_since", "_kept", "_length", "_lines", "_over", "abandoned")

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._kept: KeptLines | None = None  # most code prints nothing
        self._begun: list[str] = []
        """The pieces of the line that has no end yet, as far as they will be kept."""
        self._length = 0
        """The length of that line."""
        self._over = False
        self._drops = 0
        self._drops_since = 0.0
        self.abandoned = False
        """The call was given up while it ran."""

    def capture(self) -> None:
        """Take all that is printed in this context from now on."""
        _PRINTED.set(self)

    def write(self, text: str) -> None:
        """Take a piece of text. What code prints after its call has ended is dropped."""
        if self._over:
            self._drop()
            return
        *lines, rest = text.split("\n")
        for line in lines:
            self._add(line)
            self._end_line()
        self._add(rest)

    def finish(self) -> list[str]:
        """Return the lines that were printed, and drop what comes later."""
        self._over = True
        if self._length:
            self._end_line()
        if self._kept is not None:
            self._kept.finish()
        return self._lines

    def _drop(self) -> None:
        """Drop a text that was printed too late; end a thread that was given up, or that does nothing but print."""
        now = time.monotonic()
        if now - self._drops_since > 1.0:
            self._drops_since, self._drops = now, 0
        self._drops += 1
        if self.abandoned or self._drops > MOST_DROPS:
            raise Abandoned

    def _add(self, piece: str) -> None:
        if piece and self._length <= LONGEST:
            self._begun.append(piece)
        self._length += len(piece)

    def _end_line(self) -> None:
        line, length = "".join(self._begun), self._length
        self._begun, self._length = [], 0
        if self._kept is None:
            self._kept = KeptLines(self._lines.append)
        if length == len(line):
            line = line.rstrip("\r")
            length = len(line)
        self._kept.add(line, length)


class _Stream:
    """Stands in for `sys.stdout` or `sys.stderr`."""

    def __init__(self, real: TextIO) -> None:
        self.real = real

    def write(self, text: str) -> int:
        printed = _PRINTED.get()
        if printed is None:
            return self.real.write(text)
        printed.write(text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if _PRINTED.get() is None:
            self.real.flush()

    def close(self) -> None:
        """Do nothing: the process's output isn't the agent's to close."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


_STANDARD = ("stdin", "stdout", "stderr")


class _Capture:
    """Counts who needs the output captured, and replaces the process's streams as long as anybody does."""

    def __init__(self) -> None:
        self._users = 0
        self._copies: list[tuple[int, int]] = []
        """The descriptors of the standard streams, each with a copy to open it from again."""

    def begin(self) -> None:
        self._users += 1
        if self._users == 1:
            for number in range(3):
                with suppress(OSError):  # started without it
                    self._copies.append((number, os.dup(number)))
            sys.stdout = cast("TextIO", _Stream(sys.stdout))
            sys.stderr = cast("TextIO", _Stream(sys.stderr))

    def end(self) -> None:
        self._users -= 1
        if self._users == 0:
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                if isinstance(stream, _Stream):  # else somebody put their own in its place, and will take it away
                    setattr(sys, name, stream.real)
            for _, copy in self._copies:
                with suppress(OSError):
                    os.close(copy)
            self._copies.clear()

    def restore(self) -> list[str]:
        closed = []
        for number, copy in self._copies:
            try:
                os.fstat(number)
            except OSError:
                with suppress(OSError):
                    os.dup2(copy, number)
                closed.append(_STANDARD[number])
        return closed


CAPTURE = _Capture()


def restore_streams() -> list[str]:
    """Open the standard streams again that were closed while the output is captured, and return their names."""
    return CAPTURE.restore()
