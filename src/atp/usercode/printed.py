"""What agents in our own process print: it belongs to their trial's log, not into our output.

Whoever prints is told apart by a context variable, which tasks inherit and our threads are given, so trials that run at
the same time don't mix.
"""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TextIO, cast

from atp.usercode.lines import KeptLines

_PRINTED: ContextVar["Printed | None"] = ContextVar("printed", default=None)


class Printed:
    """What one turn prints. Taken in wherever it is printed, told to the trial by whoever runs the turn."""

    __slots__ = ("_kept", "_lines", "_over", "_part")

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._kept: KeptLines | None = None  # most agents print nothing
        self._part = ""
        self._over = False

    def catch(self) -> None:
        """From now on, all that is printed in this context is this turn's."""
        _PRINTED.set(self)

    @staticmethod
    def aside(function: Callable[[Any], None], value: Any) -> None:
        """Call a function of ours from the agent's context: what that prints is not the agent's."""
        before = _PRINTED.set(None)
        try:
            function(value)
        finally:
            _PRINTED.reset(before)

    def write(self, text: str) -> None:
        """Take in what is printed; code that runs on after its turn has no one to tell."""
        if self._over:
            return
        if self._kept is None:
            self._kept = KeptLines(self._lines.append)
        *lines, self._part = (self._part + text).split("\n")
        for line in lines:
            self._kept.add(line.rstrip("\r"))

    def finish(self) -> list[str]:
        """The lines that were printed."""
        self._over = True
        if self._kept is not None:
            if self._part:
                self._kept.add(self._part)
            self._kept.finish()
        return self._lines


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
        """The process's output isn't the agent's to close."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Capture:
    """Has the process's output pass by the turns, as long as anybody needs it."""

    def __init__(self) -> None:
        self._users = 0

    def begin(self) -> None:
        """Somebody needs it."""
        self._users += 1
        if self._users == 1:
            sys.stdout = cast("TextIO", _Stream(sys.stdout))
            sys.stderr = cast("TextIO", _Stream(sys.stderr))

    def end(self) -> None:
        """They don't any more."""
        self._users -= 1
        if self._users == 0:
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                if isinstance(stream, _Stream):  # else somebody else has put theirs in its place, and will take it away
                    setattr(sys, name, stream.real)


CAPTURE = Capture()
