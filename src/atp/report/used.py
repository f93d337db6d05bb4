"""What a run used: tokens and money, of the agents and of those who judge and simulate, kept apart."""

from collections.abc import Iterable

from msgspec.structs import replace

from atp.base.text import Line
from atp.suite.meter import read_meter
from atp.suite.result import TrialResult, Usage

_MOST_WRITTEN_OUT = 1e12


def agent_usage(trial: TrialResult) -> Usage:
    """What the agent used in a trial. Tokens and money are the same that limits and budgets go by."""
    seen = trial.transcript
    if not seen.events and seen.usage.tokens == seen.usage.total_tokens:
        return seen.usage
    meter = read_meter(seen)
    return replace(seen.usage, total_tokens=meter.tokens, cost_usd=meter.usd)


def total_usage(all_usage: Iterable[Usage]) -> Usage:
    """What was used together."""
    total = Usage()
    for usage in all_usage:
        total.add(usage)
    return total


def dollars(usd: float) -> str:
    """An amount of money; one that nobody has spent, but an agent may report, with few of its digits."""
    return f"${usd:.4f}" if usd < _MOST_WRITTEN_OUT else f"${usd:.4g}"


class Used:
    """Adds up what trials used."""

    def __init__(self) -> None:
        self.agents = _Sum()
        """What the agents under test used."""
        self.roles = _Sum()
        """What judging and simulating used."""

    def add(self, trial: TrialResult) -> None:
        """One more trial."""
        self.agents.add(agent_usage(trial))
        if trial.role_usage is not None:
            self.roles.add(trial.role_usage)

    def lines(self) -> list[Line]:
        """What there is to say of it."""
        found: list[Line] = []
        if self.agents.usd:
            found.append((f"  Cost:    {dollars(self.agents.usd)}", ""))
        if self.agents.tokens:
            found.append((f"  Tokens:  {self.agents.tokens:,}", ""))
        if self.roles.usd or self.roles.tokens:
            parts = [dollars(self.roles.usd)] if self.roles.usd else []
            parts += [f"{self.roles.tokens:,} tokens"] if self.roles.tokens else []
            found.append((f"  Judging: {', '.join(parts)} (judge and simulator, not in the above)", ""))
        return found


class _Sum:
    """Tokens and money."""

    def __init__(self) -> None:
        self.tokens = 0
        self.usd = 0.0

    def add(self, usage: Usage) -> None:
        self.tokens += usage.tokens or 0
        self.usd += usage.cost_usd or 0.0
