"""Adds up the cases of each agent of a run."""

from atp.base.numbers import counted
from atp.report.facts import agent_usage, dollars
from atp.stats.stability import case_score
from atp.stats.summary import percent
from atp.suite.result import CaseResult


class AgentTotals:
    """The totals of each agent, in the order in which their first cases end."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentTotal] = {}

    def add(self, case: CaseResult) -> None:
        """Count a case that ended."""
        if case.status == "skipped":
            return
        found = self.agents.setdefault(case.agent, AgentTotal())
        found.cases += 1
        found.passed += case.status == "passed"
        for trial in case.trials:
            found.usd += agent_usage(trial).cost_usd or 0.0
        if (score := case_score(case.counted)) is not None:
            found.scores.append(score)


class AgentTotal:
    """The cases of one agent."""

    def __init__(self) -> None:
        self.cases = 0
        self.passed = 0
        self.usd = 0.0
        self.scores: list[float] = []

    @property
    def text(self) -> str:
        """`12 of 20 cases passed (60%), score 81.2, $0.0123`."""
        parts = [f"{self.passed:,} of {counted(self.cases, 'case')} passed ({percent(self.passed, self.cases):g}%)"]
        parts += [f"score {sum(self.scores) / len(self.scores):.1f}"] if self.scores else []
        parts += [dollars(self.usd)] if self.usd else []
        return ", ".join(parts)
