"""An agent under test."""

from pathlib import Path

from atp.agents.adapter import Adapter
from atp.agents.running import RunningAgent
from atp.engine.prepare.agents import DescribedAgent
from atp.journal.records import AgentInputs
from atp.suite.agent import AnyAgent
from atp.suite.capabilities import Capabilities


class AgentUnderTest(RunningAgent, DescribedAgent):
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
        self.inputs = inputs
        """What decides the agent's answers; its hash is part of the key of the agent's trials."""
        self.ad_hoc = ad_hoc
        self.limit = limit
        """The largest number of trials at a time."""
        self.active = 0
        """The number of trials that are running now."""
        """Values in the agent's configuration that no output may show."""

    @property
    def capabilities(self) -> Capabilities:
        """What the agent's adapter can report and passes on."""
        return self.adapter.capabilities
