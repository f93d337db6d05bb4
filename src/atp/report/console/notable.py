"""The cases of a run that are worth a look although they may have passed: the slowest, and the flakiest."""

from atp.base.durations import elapsed
from atp.base.secrets import Hide
from atp.base.text import Line, one_line
from atp.suite.result import CaseResult

MOST = 3
"""How many of each are named."""
SLOW_MS = 1000.0
"""Nobody minds a case that is faster."""


class Notable:
    """Keeps the few that stand out."""

    def __init__(self) -> None:
        self._cases = 0
        self._slow: list[tuple[float, str, str, bool]] = []
        self._flaky: list[tuple[float, str, str, str]] = []

    def add(self, case: CaseResult) -> None:
        """One more case."""
        self._cases += 1
        longest, passed, runs = 0.0, 0, 0
        for trial in case.trials:
            longest = trial.duration_ms if trial.duration_ms > longest else longest
            if trial.status != "cancelled":
                runs += 1
                passed += trial.status == "passed"
        if longest >= SLOW_MS:
            self._slow = sorted([*self._slow, (-longest, case.case, case.agent, len(case.trials) > 1)])[:MOST]
        if 0 < passed < runs:
            uneven = abs(passed / runs - 0.5)  # a coin that falls on either side alike is the flakiest
            self._flaky = sorted([*self._flaky, (uneven, case.case, case.agent, f"{passed}/{runs}")])[:MOST]

    def lines(self, hide: Hide, *, name_agent: bool = False) -> list[Line]:
        """What there is to say of them; of three cases one need not be told which is the slowest."""

        def named(case: str, agent: str) -> str:
            return one_line(hide(case), 40) + (f" – {one_line(hide(agent), 40)}" if name_agent else "")

        found: list[Line] = []
        if self._slow and self._cases > MOST:
            slow = ", ".join(
                f"{named(case, agent)} ({f'up to {elapsed(-took)} a trial' if several else elapsed(-took)})"
                for took, case, agent, several in self._slow
            )
            found.append((f"  Slowest: {slow}", ""))
        if self._flaky:
            flaky = ", ".join(f"{named(case, agent)} ({rate} passed)" for _, case, agent, rate in self._flaky)
            found.append((f"  Flaky:   {flaky}", "error"))
        return found
