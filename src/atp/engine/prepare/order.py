"""`--order`: which cases run first, by what earlier runs of the same input came to.

Only the sequence changes: keys of trials, counts and reports are the same in any order. All cases are in memory for it,
which a run in the order of its files never needs.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from atp.base.diagnostics import LoadError
from atp.base.secrets import current_secrets, hider
from atp.engine.prepare.resume import earlier_runs, ran_everything
from atp.history.figures import CaseFigures, run_figures
from atp.stats.intervals import case_interval

OrderName = Literal["failed-first", "slowest-first", "uncertain-first"]
"""The values of `--order`."""
MOST_RUNS = 20
"""Earlier runs that are read."""
Rank = tuple[float, ...]
"""Cases with a lower rank run first; those of the same rank in the order of their files."""


@dataclass(slots=True)
class _Known:
    """What is known of a case from earlier runs."""

    has_passed: bool
    """Whether the case passed when it last ran."""
    duration_ms: float
    """The median duration of the runs when the case last ran."""
    passed: int = 0
    """Runs that passed, of all runs that were read."""
    judged: int = 0
    """Runs that say something of the agent."""
    errors: int = 0
    """Runs that ended in an error that is not the agent's."""

    def add(self, figures: CaseFigures) -> None:
        self.passed += figures.passed
        self.judged += figures.judged
        self.errors += figures.errors


class Order:
    """Ranks the cases of a run."""

    def __init__(self, name: OrderName, root: Path, identity: list[str]) -> None:
        """`identity` is that of the input. Reads the journals of its earlier runs."""
        self._root = os.path.realpath(root)
        self._rank: Callable[[_Known], Rank] = _RANKS[name]
        self._unknown: Rank = _UNKNOWN[name]
        self._known: dict[tuple[str, str, str], _Known] = {}
        for number, run in enumerate(earlier_runs(root, identity)):
            if number == MOST_RUNS:
                break
            self._read(run.folder)
            if name != "uncertain-first" and ran_everything(run):
                break

    def _read(self, run: Path) -> None:
        try:
            cases = run_figures(run, hider(current_secrets())).cases
        except LoadError:
            return  # a journal that was damaged since, or that another process is about to write
        for one in cases:
            place = one.file, one.agent, one.id
            if place not in self._known:
                took = one.figures.get("duration_ms")
                self._known[place] = _Known(one.status in ("passed", "skipped"), took.median if took else 0.0)
            self._known[place].add(one)

    def rank(self, file: str | None, agent: str, case: str) -> Rank:
        """The rank of a case against an agent."""
        path = os.path.relpath(os.path.realpath(file), self._root) if file else ""
        mask = current_secrets().mask_text
        known = self._known.get((mask(path), mask(agent), mask(case)))
        return self._unknown if known is None else self._rank(known)


def _by_failure(known: _Known) -> Rank:
    return (2.0 if known.has_passed else 0.0,)


def _by_duration(known: _Known) -> Rank:
    return (-known.duration_ms,)


def _by_doubt(known: _Known) -> Rank:
    """The wider the interval of the pass rate, the less is known of it."""
    low, high = case_interval(known.passed, known.judged, known.errors)
    return (low - high,)


_RANKS: dict[OrderName, Callable[[_Known], Rank]] = {
    "failed-first": _by_failure,
    "slowest-first": _by_duration,
    "uncertain-first": _by_doubt,
}
_UNKNOWN: dict[OrderName, Rank] = {
    "failed-first": (1.0,),
    "slowest-first": (float("-inf"),),
    "uncertain-first": (float("-inf"),),
}
"""The ranks of cases that never ran: after the failed ones, else first, as they may be the slowest and are in doubt."""
