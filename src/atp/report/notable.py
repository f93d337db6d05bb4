"""The cases of a run that are worth a look although they may have passed: the slowest, and the flakiest."""

from atp.report.hiding import Hide
from atp.report.shown import Line, one_line
from atp.run.durations import elapsed
from atp.suite.result import CaseResult

MOST = 3
"""How many of each are named."""
SLOW_MS = 1000.0
"""Nobody minds a case that is faster."""


class Notable:
    """Keeps the few that stand out."""

    def __init__(self) -> None:
        self._cases = 0
        self._slow: list[tuple[float, str]] = []
        self._flaky: list[tuple[float, str, str]] = []

    def add(self, case: CaseResult) -> None:
        """One more case."""
        self._cases += 1
        longest = max((trial.duration_ms for trial in case.trials), default=0.0)
        if longest >= SLOW_MS:
            self._slow = sorted([*self._slow, (-longest, case.case)])[:MOST]
        passed, runs = sum(trial.status == "passed" for trial in case.trials), len(case.trials)
        if 0 < passed < runs:
            uneven = abs(passed / runs - 0.5)  # a coin that falls on either side alike is the flakiest
            self._flaky = sorted([*self._flaky, (uneven, case.case, f"{passed}/{runs}")])[:MOST]

    def lines(self, hide: Hide) -> list[Line]:
        """What there is to say of them; of three cases one need not be told which is the slowest."""
        found: list[Line] = []
        if self._slow and self._cases > MOST:
            slow = ", ".join(f"{one_line(hide(case), 40)} ({elapsed(-took)})" for took, case in self._slow)
            found.append((f"  Slowest: {slow}", ""))
        if self._flaky:
            flaky = ", ".join(f"{one_line(hide(case), 40)} ({rate} passed)" for _, case, rate in self._flaky)
            found.append((f"  Flaky:   {flaky}", "error"))
        return found
