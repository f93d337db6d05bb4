"""What a run used: tokens and money, of the agents and of those who judge and simulate, kept apart."""

from atp.report.shown import Line
from atp.suite.result import TrialResult, Usage


def tokens(usage: Usage) -> int | None:
    """All tokens, as far as they are known."""
    if usage.total_tokens is not None:
        return usage.total_tokens
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


class Used:
    """Adds up what trials used."""

    def __init__(self) -> None:
        self.agents = _Sum()
        """What the agents under test used."""
        self.roles = _Sum()
        """What judging and simulating used."""

    def add(self, trial: TrialResult) -> None:
        """One more trial."""
        self.agents.add(trial.transcript.usage)
        if trial.role_usage is not None:
            self.roles.add(trial.role_usage)

    def lines(self) -> list[Line]:
        """What there is to say of it."""
        found: list[Line] = []
        if self.agents.usd:
            found.append((f"  Cost:    ${self.agents.usd:.4f}", ""))
        if self.agents.tokens:
            found.append((f"  Tokens:  {self.agents.tokens:,}", ""))
        if self.roles.usd or self.roles.tokens:
            parts = [f"${self.roles.usd:.4f}"] if self.roles.usd else []
            parts += [f"{self.roles.tokens:,} tokens"] if self.roles.tokens else []
            found.append((f"  Judging: {', '.join(parts)} (judge and simulator, not in the above)", ""))
        return found


class _Sum:
    """Tokens and money."""

    def __init__(self) -> None:
        self.tokens = 0
        self.usd = 0.0

    def add(self, usage: Usage) -> None:
        self.tokens += tokens(usage) or 0
        self.usd += usage.cost_usd or 0.0
