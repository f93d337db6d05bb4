"""Adds up the cases of each agent of a run."""

from atp.base.numbers import counted
from atp.journal.records import RunInfo
from atp.report.facts import agent_usage, dollars
from atp.stats.stability import case_score
from atp.stats.summary import percent
from atp.suite.result import CaseResult


class AgentTotals:
    """The totals of each agent, in the order of the run."""

    def __init__(self) -> None:
        self._agents: dict[str, AgentTotal] = {}
        self._places: dict[str, int] = {}

    def start(self, info: RunInfo) -> None:
        """Take over the order of the agents. With several trials at a time, any may be the first to end a case."""
        self._places = {agent: place for place, agent in enumerate(info.agents)}

    @property
    def agents(self) -> dict[str, "AgentTotal"]:
        """The agents of which a case has ended, by name."""
        last = len(self._places)
        return dict(sorted(self._agents.items(), key=lambda item: self._places.get(item[0], last)))

    def add(self, case: CaseResult) -> None:
        """Count a case that ended."""
        if case.status == "skipped":
            return
        found = self._agents.setdefault(case.agent, AgentTotal())
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
