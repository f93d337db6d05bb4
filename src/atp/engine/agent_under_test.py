"""An agent under test."""

from collections.abc import Sequence
from pathlib import Path

from atp.agents.adapter import Adapter
from atp.agents.running import RunningAgent
from atp.journal.records import AgentInputs
from atp.suite.agent import AnyAgent


class AgentUnderTest(RunningAgent):
    """An agent of a plan, shared by all its trials."""

    def __init__(
        self,
        agent: AnyAgent,
        adapter: Adapter,
        base: Path,
        inputs: AgentInputs,
        ad_hoc: bool,
        limit: int | None = None,
    ) -> None:
        super().__init__(adapter, agent.name, agent.config.model_dump(exclude_unset=True))
        self.agent = agent
        self.base = base
        """The folder where relative paths of the agent's configuration start."""
        self.inputs = inputs
        """What decides the agent's answers; its hash is part of the key of the agent's trials."""
        self.ad_hoc = ad_hoc
        """True for an agent that a flag names, not the suite."""
        self.limit = limit
        """The largest number of trials at a time."""
        self.active = 0
        """The number of trials that are running now."""
        """Values in the agent's configuration that no output may show."""

    @property
    def gets_history(self) -> bool:
        """True if the agent gets the earlier messages of a conversation, or its `config.history` is `ignored`."""
        return self.adapter.capabilities.history or getattr(self.agent.config, "history", None) == "ignored"

    def is_among(self, names: Sequence[str] | None) -> bool:
        """True if a case with this list of agents runs with the agent. An agent that a flag names runs every case."""
        return names is None or self.ad_hoc or self.name in names
