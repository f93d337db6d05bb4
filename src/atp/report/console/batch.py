"""Writing in larger pieces, soon but not at once: a call of the system for every line costs more than the line."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

DELAY = 0.1
"""Seconds that something may wait to be written."""
MOST = 500
"""Items that may wait."""

Item = TypeVar("Item")


class Batch(Generic[Item]):
    """Collects items and hands them on together."""

    def __init__(self, write: Callable[[list[Item]], None]) -> None:
        self._write = write
        self._items: list[Item] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, items: Sequence[Item]) -> None:
        """Take items; they are on their way after `DELAY` at the latest."""
        self._items.extend(items)
        if len(self._items) > MOST:
            self.flush()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(DELAY, self.flush)
            except RuntimeError:  # no loop, nobody to call us back
                self.flush()

    def flush(self) -> None:
        """Hand on what there is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        items, self._items = self._items, []
        if items:
            self._write(items)
