"""Keeping what an agent prints, up to a bound: the beginning and the end, with a word about what is missing between."""

from collections import deque
from collections.abc import Callable

from atp.base.text import cut

HEAD = 500
TAIL = 500
LONGEST = 2000
"""Characters of a line that are kept."""


class KeptLines:
    """Lines on their way to a log."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._count = 0
        self._tail: deque[str] = deque(maxlen=TAIL)

    def add(self, line: str) -> None:
        """Keep a line."""
        self._count += 1
        if len(line) > LONGEST:
            line = f"{cut(line, LONGEST)} ({len(line)} characters)"
        if self._count <= HEAD:
            self._log(line)
        else:
            self._tail.append(line)

    def finish(self) -> None:
        """Nothing more will come."""
        left_out = self._count - HEAD - len(self._tail)
        if left_out > 0:
            self._log(f"… {left_out} lines left out …")
        for line in self._tail:
            self._log(line)
        self._tail.clear()
        self._count = min(self._count, HEAD)
