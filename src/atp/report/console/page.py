"""Writes the console's lines to a file, a pipe or a log: no colours, no movements of the cursor."""

import asyncio
import errno
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TextIO, TypeVar

from atp.base.text import INFO, Line, without_commands
from atp.report.files import let_go

DELAY = 0.1
"""Seconds that an item may wait to be written: a system call for every line costs more than the line."""
MOST = 500
"""Items that may wait."""

Item = TypeVar("Item")
_SIMPLE = str.maketrans({"═": "=", "─": "-", "✓": "+", "✗": "x", INFO: "i", "…": "...", "–": "-", "→": "->", "×": "x"})


class Page(Protocol):
    """Shows the console's lines."""

    problems: list[str]

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines, within `DELAY` seconds."""

    def close(self) -> None:
        """Show what is still waiting."""


class PlainPage:
    """A stream of text."""

    def __init__(self, stream: TextIO) -> None:
        self.problems: list[str] = []
        self._stream = stream
        self._batch = Batch(self._write)
        self._simple = not _can_show(stream, f"═─✓✗{INFO}…–→×")
        self._gone = False

    def show(self, lines: Sequence[Line]) -> None:
        """Write lines as they are."""
        self._batch.add(["\n".join([text for text, _ in lines])])

    def close(self) -> None:
        """Write the rest."""
        self._batch.flush()

    def _write(self, blocks: list[str]) -> None:
        if self._gone:
            return
        text = without_commands("\n".join(blocks) + "\n")
        try:
            self._stream.write(text.translate(_SIMPLE) if self._simple else text)
            self._stream.flush()
        except OSError as error:
            self._gone = True
            self.problems.extend(lost(error))
            let_go(self._stream)


def lost(error: OSError) -> list[str]:
    """The problem that the console can't be written; none if its reader has ended (`| head`)."""
    return [] if error.errno == errno.EPIPE else [f"the console: {error.strerror or error}"]


def _can_show(stream: TextIO, signs: str) -> bool:
    try:
        signs.encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class Batch(Generic[Item]):
    """Collects items, and writes them together."""

    def __init__(self, write: Callable[[list[Item]], None]) -> None:
        self._write = write
        self._items: list[Item] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, items: Sequence[Item]) -> None:
        """Add items. They are written within `DELAY` seconds."""
        self._items.extend(items)
        if len(self._items) > MOST:
            self.flush()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(DELAY, self.flush)
            except RuntimeError:  # no event loop runs
                self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        items, self._items = self._items, []
        if items:
            self._write(items)
