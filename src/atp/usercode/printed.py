"""Captures what the user's code prints in our own process, for the log of its trial.

A context variable names the call that prints. Tasks inherit the variable, and `exits` copies it to threads of the
user's code, so the output of concurrent trials is not mixed.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TextIO

from atp.base.text import cut
from atp.usercode.exits import LIVE_THREADS, ForeignCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = 500
"""Lines that are kept from the start of the output."""
TAIL = 500
"""Lines that are kept from the end of the output."""
LONGEST = 2000
"""Characters of a line that are kept."""
_KEPT = 4 * LONGEST
"""Characters of a line that are collected: a secret at the end of those that are kept must be whole to be masked."""
MOST_DROPS = 1000
"""A thread that prints more often per second after its call has ended is taken for an endless loop, and ended."""

_PRINTED: ContextVar[Printed | None] = ContextVar("printed", default=None)


class KeptLines:
    """Passes the first and the last lines on to a log, with the number of lines left out between."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._count = 0
        self._tail: deque[str] = deque(maxlen=TAIL)

    def add(self, line: str, length: int | None = None) -> None:
        """Add a line. `length` is the length of the whole line if `line` is only its beginning."""
        self._count += 1
        length = len(line) if length is None else length
        if length > LONGEST:
            line = f"{cut(line, LONGEST)} ({length} characters)"
        if self._count <= HEAD:
            self._log(line)
        else:
            self._tail.append(line)

    def finish(self) -> None:
        """Log the last lines."""
        left_out = self._count - HEAD - len(self._tail)
        if left_out > 0:
            self._log(f"… {left_out} lines left out …")
        for line in self._tail:
            self._log(line)
        self._tail.clear()
        self._count = min(self._count, HEAD)


class Abandoned(SystemExit):
    """Raised in abandoned code when it prints, so that a thread that prints in an endless loop ends."""


class Printed:
    """Collects what one call prints, in any thread. A line printed in many pieces costs no more than in one."""

    __slots__ = ("_drops", "_drops_since", "_finished", "_kept", "_length", "_lines", "_pieces", "abandoned")

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._kept: KeptLines | None = None  # most code prints nothing
        self._pieces: list[str] = []
        """The pieces of the unfinished line, up to `_KEPT` characters."""
        self._length = 0
        """The length of the unfinished line."""
        self._finished = False
        self._drops = 0
        self._drops_since = 0.0
        self.abandoned = False
        """True if the call was cancelled while it ran."""

    def capture(self) -> None:
        """Capture all that is printed in this context from now on."""
        _PRINTED.set(self)

    def write(self, text: str) -> None:
        """Add a piece of text. What code prints after its call has ended is dropped."""
        if self._finished:
            self._drop()
            return
        *lines, rest = text.split("\n")
        for line in lines:
            self._add(line)
            self._end_line()
        self._add(rest)

    def finish(self) -> list[str]:
        """Return the printed lines. What is printed later is dropped."""
        self._finished = True
        if self._length:
            self._end_line()
        if self._kept is not None:
            self._kept.finish()
        return self._lines

    def _drop(self) -> None:
        """Count a late text. Raises `Abandoned` in an abandoned call, or if there are too many late texts."""
        now = time.monotonic()
        if now - self._drops_since > 1.0:
            self._drops_since, self._drops = now, 0
        self._drops += 1
        if self.abandoned or self._drops > MOST_DROPS:
            raise Abandoned

    def _add(self, piece: str) -> None:
        if piece and self._length <= _KEPT:
            self._pieces.append(piece)
        self._length += len(piece)

    def _end_line(self) -> None:
        line, length = "".join(self._pieces), self._length
        self._pieces, self._length = [], 0
        if self._kept is None:
            self._kept = KeptLines(self._lines.append)
        if length == len(line):
            line = line.rstrip("\r")
            length = len(line)
        self._kept.add(line, length)


_STANDARD = ("stdin", "stdout", "stderr")


def _filter(stream: TextIO) -> None:
    """Have a stream pass what code that is not ours writes to the code's `Printed`.

    The functions use no globals: Python flushes the streams once more after it has cleared all modules.
    """
    printing = _PRINTED.get
    # An object that the user's code has put in a stream's place may have no more than `write`.
    write, flush, close = (getattr(stream, name, None) for name in _FILTERED)

    def filtered_write(text: str) -> int:
        printed = printing()
        if printed is None:
            return int(write(text) or 0) if write is not None else 0
        printed.write(text)
        return len(text)

    def filtered_flush() -> None:
        if printing() is None and flush is not None:
            flush()

    def filtered_close() -> None:
        if printing() is None and close is not None:  # the user's code must not close the output of the process
            close()

    with suppress(AttributeError):  # the host has replaced the stream by an object that can't be changed
        for name, method in zip(_FILTERED, (filtered_write, filtered_flush, filtered_close), strict=True):
            setattr(stream, name, method)


_FILTERED = ("write", "flush", "close")


class _Capture:
    """Filters the streams of the process while at least one user of the capture is active.

    `sys.stdout` stays the object that it is. To replace it would not do: pytest sets it in each phase of a test, and a
    thread which the user's code left behind would write to pytest's stream while pytest itself does. Python 3.11
    crashes then.
    """

    def __init__(self) -> None:
        self._users = 0
        self._keepers = 0
        self._current: tuple[TextIO | None, ...] = ()
        """`sys.stdout` and `sys.stderr` when the filters were last looked at."""
        self._filtered: list[TextIO] = []
        self._copies: list[tuple[int, int]] = []
        """The descriptors of the standard streams, each with a duplicate to restore it from."""
        self._poll = select.poll()
        """Reports closed descriptors: one system call for all three."""

    def begin(self) -> None:
        self._users += 1
        if self._users == 1:
            for number in range(3):
                with suppress(OSError):  # the process was started without this stream
                    self._copies.append((number, os.dup(number)))
                    self._poll.register(number, 0)
        if self._current != (sys.stdout, sys.stderr):
            self._current = (sys.stdout, sys.stderr)
            self._filter_new()

    def end(self) -> None:
        self._users -= 1
        if self._users == 0:
            for number, copy in self._copies:
                self._poll.unregister(number)
                with suppress(OSError):
                    os.close(copy)
            self._copies.clear()
            self._remove_filters()

    @contextmanager
    def keep_filters(self) -> Iterator[None]:
        """Keep the filters between calls, for a process in which tasks of the user's code may go on."""
        self._keepers += 1
        try:
            yield
        finally:
            self._keepers -= 1
            self._remove_filters()

    def _filter_new(self) -> None:
        # What pytest has put in the place of the original streams, it takes away again between two phases.
        for stream in (*self._current, sys.__stdout__, sys.__stderr__):
            if stream is not None and not any(stream is one for one in self._filtered):
                self._filtered.append(stream)
                _filter(stream)

    def _remove_filters(self) -> None:
        """Remove the filters, unless code that is not ours may still print: a thread, or a task of a running loop."""
        if self._users or self._keepers or LIVE_THREADS:
            return
        for stream in self._filtered:
            for name in _FILTERED:
                with suppress(AttributeError):
                    delattr(stream, name)
        self._filtered.clear()
        self._current = ()

    def restore(self) -> list[str]:
        try:
            found = self._poll.poll(0)
        except RuntimeError:  # another thread is polling
            return []
        if not found:
            return []
        closed = [number for number, event in found if event & select.POLLNVAL]
        for number, copy in self._copies:
            if number in closed:
                with suppress(OSError):
                    os.dup2(copy, number)
        return [_STANDARD[number] for number in closed]


CAPTURE = _Capture()


def restore_streams() -> list[str]:
    """Reopen the standard streams that were closed since the capture began, and return their names."""
    return CAPTURE.restore()


@contextmanager
def capture_threads(code: ForeignCode, to: Callable[[], TextIO]) -> Iterator[None]:
    """Capture what the threads of code that is not ours print, but not what the code itself prints.

    At the end, what they have printed is written to a stream, and streams that were closed are opened again. What the
    threads print later is dropped.
    """
    printed = Printed()
    code.on_thread_start = printed.capture
    CAPTURE.begin()
    try:
        yield
    finally:
        CAPTURE.restore()
        for line in printed.finish():
            print(line, file=to())
        CAPTURE.end()
