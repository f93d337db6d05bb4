"""The console on a terminal: colours, and a progress line at the bottom.

Only this module uses rich, and it is imported only when there is a terminal to draw on.
"""

import asyncio
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice, takewhile
from typing import Any, TextIO

from rich.console import Console as Terminal
from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from atp.base.durations import elapsed
from atp.base.text import INFO, Line, one_line
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.console.console import Console, ConsoleOptions
from atp.report.console.page import Batch, lost
from atp.report.differences import ALIKE
from atp.report.facts import agent_usage, dollars
from atp.report.files import let_go
from atp.suite.result import CaseResult, TrialRef, TrialResult

EVERY = 0.2
"""Seconds between two refreshes of the progress line."""
BAR = 20
_STYLES = {
    "title": "bold",
    "rule": "dim",
    "info": "cyan",
    "passed": "bold green",
    "failed": "bold red",
    "error": "bold yellow",
    "other": "dim",
    "detail": "dim",
    "removed": "red",
    "added": "green",
}
_WORD = re.compile(r"\w+(?:[.,:-]\w+)*|\s+|[^\w\s]")
Span = tuple[int, int]
"""Where some letters of a line begin and end."""
_MARKED = frozenset(f"✓✗!?-{INFO}")
"""Signs at the beginning of a line: only the sign is coloured, not its line."""


class LiveConsole(Console):
    """A console with a progress line."""

    counts_up = False

    def __init__(self, stream: TextIO, look: ConsoleOptions, **terminal: Any) -> None:
        self._progress = Progress()
        self._most_runs = 1
        self._screen = LivePage(stream, self._progress, **terminal)
        super().__init__(self._screen, look)

    def start(self, info: RunInfo) -> None:
        """Print the head, and show the progress line."""
        super().start(info)
        self._progress.total = info.trials
        self._most_runs = info.runs
        self._progress.began_at = time.monotonic()
        self._screen.open()

    def began(self, trial: TrialRef) -> None:
        """Count a running trial."""
        self._progress.running[trial.key] = one_line(self._hide(trial.case.id), 40)

    def ended(self, trial: TrialRef, result: TrialResult) -> None:
        """Count a trial that ended."""
        self._progress.end(trial.key, result)

    def case(self, result: CaseResult) -> None:
        """Print a case that ended, and expect no more trials of it, where the number of its runs was not fixed."""
        if result.min_runs:
            self._progress.total -= max(0, self._most_runs * result.variations - len(result.trials))
        super().case(result)

    def end(self, end: RunEnd) -> None:
        """Replace the progress line by the summary."""
        self._screen.settle()
        super().end(end)


class Progress:
    """Counts the trials of a run for the progress line."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.ran = 0
        """Trials that this run ran, not taken over from an earlier one. The time left is estimated from these."""
        self.failed = 0
        self.cost = 0.0
        self.began_at = 0.0
        self.running: dict[str, str] = {}
        """The names of the running trials by key, the oldest first."""

    def end(self, key: str, result: TrialResult) -> None:
        """Count a trial that ended or was taken over from an earlier run."""
        if self.running.pop(key, None) is not None:
            self.ran += 1
        self.done += 1
        self.failed += result.status not in ("passed", "skipped")
        self.cost += agent_usage(result).cost_usd or 0.0
        self.cost += (result.role_usage.cost_usd or 0.0) if result.role_usage else 0.0

    @property
    def text(self) -> str:
        """The progress line."""
        parts = [f"{self.done}/{self.total}", f"{len(self.running)} running"]
        if self.failed:
            parts.append(f"{self.failed} not passed")
        if self.cost:
            parts.append(dollars(self.cost))
        took = (time.monotonic() - self.began_at) * 1000
        parts.append(elapsed(took))
        if self.ran and self.done < self.total:
            parts.append(f"{elapsed(took / self.ran * (self.total - self.done))} left")
        if self.running:
            parts.append(next(iter(self.running.values())))
        return ", ".join(parts)


class LivePage:
    """A terminal with a line that stays at the bottom."""

    def __init__(self, stream: TextIO, progress: Progress, **terminal: Any) -> None:
        self.problems: list[str] = []
        self._stream = stream
        self._progress = progress
        self._batch: Batch[Line] = Batch(self._print)
        size = {"width": _size("COLUMNS", stream), "height": _size("LINES", stream), **terminal}
        self._terminal = Terminal(file=stream, highlight=False, markup=False, emoji=False, **size)
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._gone = False

    def open(self) -> None:
        """Show the progress line from now on."""
        self._batch.flush()
        self._live = Live(
            get_renderable=self._line,
            console=self._terminal,
            transient=True,
            auto_refresh=False,  # a refreshing thread could write, or fail, at any moment
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._try(self._start)
        self._tick()

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines above the progress line."""
        self._batch.add(lines)

    def settle(self) -> None:
        """Remove the progress line."""
        if self._timer is not None:
            self._timer.cancel()
        self._batch.flush()
        if self._live is not None:
            self._try(self._live.stop)
            self._live = None

    def close(self) -> None:
        """Print the rest."""
        self._batch.flush()

    def _start(self) -> None:
        assert self._live is not None
        self._live.start()
        self._terminal.show_cursor(True)  # a killed process must not leave the cursor hidden

    def _tick(self) -> None:
        if self._live is None or self._gone:
            return
        self._try(self._live.refresh)
        with suppress(RuntimeError):  # without a loop the line is refreshed when lines are printed
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._tick)

    def _print(self, lines: list[Line]) -> None:
        shown = Group(*_drawn_lines(lines, self._terminal.width))
        self._try(lambda: self._terminal.print(shown))

    def _line(self) -> RenderableType:
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=BAR)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        progress = self._progress
        style = "red" if progress.failed else "green"
        bar = ProgressBar(total=max(progress.total, 1), completed=progress.done, width=BAR, complete_style=style)
        table.add_row(bar, Text(progress.text))
        return table

    def _try(self, draw: Any) -> None:
        if self._gone:
            return
        try:
            draw()
        except OSError as error:
            self._gone = True
            self.problems.extend(lost(error))
            let_go(self._stream)


def _size(variable: str, stream: TextIO) -> int | None:
    """The terminal's size where a variable is 0, which some set for unknown; rich would draw nothing then."""
    value = os.environ.get(variable, "")
    if not value.isdigit() or int(value):
        return None  # rich finds the size
    usual = 80 if variable == "COLUMNS" else 25
    try:
        return getattr(os.get_terminal_size(stream.fileno()), variable.lower()) or usual
    except (OSError, ValueError):
        return usual


def _drawn_lines(lines: Sequence[Line], width: int) -> Iterator[RenderableType]:
    """The lines with their colours. Of removed lines and the added ones after them, the words that differ stand out."""
    place = 0
    while place < len(lines):
        removed = _run_of(lines, place, "removed")
        added = _run_of(lines, place + len(removed), "added")
        differing = [_differing(one, other) for one, other in zip(removed, added, strict=False)]
        apart: dict[int, Sequence[Span]] = {}
        for number, (before, after) in enumerate(differing):
            apart[place + number], apart[place + len(removed) + number] = before, after
        end = place + max(1, len(removed) + len(added))
        for at in range(place, end):
            text, look = lines[at]
            yield _drawn(text[:width] if look == "rule" else text, look, apart.get(at, ()))
        place = end


def _run_of(lines: Sequence[Line], start: int, look: str) -> list[str]:
    return [text for text, _ in takewhile(lambda line: line[1] == look, islice(lines, start, None))]


def _differing(removed: str, added: str) -> tuple[list[Span], list[Span]]:
    """Where the words stand that differ between a removed line and an added one. None if few words are the same."""
    marks = [len(one) - len(one.lstrip(" ")) + 2 for one in (removed, added)]  # after `- ` and `+ `
    before, after = ([*_WORD.finditer(one, mark)] for one, mark in zip((removed, added), marks, strict=True))
    matcher = SequenceMatcher(None, [one[0] for one in before], [one[0] for one in after], autojunk=False)
    if matcher.ratio() < ALIKE:
        return [], []
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        [(before[start].start(), before[end - 1].end()) for _, start, end, _, _ in changed if start < end],
        [(after[start].start(), after[end - 1].end()) for _, _, _, start, end in changed if start < end],
    )


def _drawn(text: str, look: str, apart: Sequence[Span] = ()) -> RenderableType:
    """A line with its colours. What doesn't fit continues below, with the same indent."""
    bare = text.lstrip(" ")
    style = _STYLES.get(look, "")
    marked = bare[:1] in _MARKED and look not in ("rule", "removed")
    drawn = Text.assemble((bare[0], style), bare[1:]) if marked else Text(bare, style)
    indent = len(text) - len(bare)
    for start, end in apart:  # in any colours, and without: they are underlined, too
        drawn.stylize("bold underline", start - indent, end - indent)
    return Padding(drawn, (0, 0, 0, indent), expand=False) if indent else drawn
