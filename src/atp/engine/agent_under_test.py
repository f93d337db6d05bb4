"""The agents of a run with their adapters, as the trials of a plan use them."""

from typing import TYPE_CHECKING

from atp.agents.adapter import Adapter
from atp.agents.running import RunningAgent
from atp.engine.named_agent import DescribedAgent, NamedAgent
from atp.suite.capabilities import Capabilities

if TYPE_CHECKING:
    from atp.journal.records import AgentInputs


class AgentUnderTest(RunningAgent, DescribedAgent):
    """A `NamedAgent` of a plan with its adapter, shared by all its trials.

    Made by `RunServices.agent_under_test` when the plan is made, started by its first trial, closed by the run.
    """

    def __init__(
        self, named: NamedAgent, adapter: Adapter, inputs: "AgentInputs", connector: str | None = None
    ) -> None:
        agent = named.agent
        super().__init__(adapter, agent.name, agent.config.model_dump(exclude_unset=True))
        self.agent = agent
        self.base = named.base
        self.inputs = inputs
        """What decides the agent's answers; its hash is part of the key of the agent's trials."""
        self.ad_hoc = named.ad_hoc
        self.group = named.group
        self.column = named.column
        self.column_connector = named.column_connector
        self.connector = connector
        """The model connector that replaces the agent's own."""
        self.limit: int | None = getattr(agent.config, "parallel", None)
        """The largest number of trials at a time."""
        self.active = 0
        """The number of trials that are running now."""

    @property
    def capabilities(self) -> Capabilities:
        """What the agent's adapter can report and passes on."""
        return self.adapter.capabilities
