"""The agents of a run: as files and flags name them, and with an adapter, as the trials of a plan use them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atp.agents.adapter import Adapter
from atp.agents.running import RunningAgent
from atp.base.secret_values import secret_settings
from atp.suite.agent import AGENTS, CONFIGURATIONS, AnyAgent, capabilities_of
from atp.suite.capabilities import Capabilities

if TYPE_CHECKING:
    from atp.journal.records import AgentInputs


class DescribedAgent:
    """What files and flags say about an agent: enough to refuse cases that mean nothing for it.

    The base of `NamedAgent`, of which nothing is loaded yet, and of `AgentUnderTest`, which has an adapter.
    """

    agent: AnyAgent
    base: Path
    """The folder where relative paths of the agent's configuration start."""
    ad_hoc: bool
    """True for an agent that a flag names, not the suite."""

    @property
    def capabilities(self) -> Capabilities:
        """What the agent can report and is given, as far as its description tells."""
        if self.agent.type in CONFIGURATIONS:
            return capabilities_of(self.agent.config)
        return getattr(AGENTS.find(self.agent.type), "capabilities", Capabilities())

    @property
    def gets_history(self) -> bool:
        """True if the agent gets the earlier messages of a conversation, or its `config.history` is `ignored`."""
        return self.capabilities.history or getattr(self.agent.config, "history", None) == "ignored"

    def is_among(self, names: Sequence[str] | None) -> bool:
        """True if a case with this list of agents runs with the agent. An agent that a flag names runs every case."""
        return names is None or self.ad_hoc or self.agent.name in names


class NamedAgent(DescribedAgent):
    """An agent that was found by its name: its configuration, and the folder that paths in it start from.

    Made by `resolve_agents` and `find_agent` while a run is prepared. Its adapter comes next: in an `AgentUnderTest`,
    or in a `RunningAgent` if it has a role or is a tool.
    """

    def __init__(
        self, agent: AnyAgent, base: Path, ad_hoc: bool = False, secrets: frozenset[str] = frozenset()
    ) -> None:
        self.agent = agent
        self.base = base
        self.ad_hoc = ad_hoc
        self.secrets = secrets | secret_settings(agent.config.model_dump(exclude_unset=True))
        """Values in the configuration that no output may show."""


class AgentUnderTest(RunningAgent, DescribedAgent):
    """A `NamedAgent` of a plan with its adapter, shared by all its trials.

    Made by `RunServices.agent_under_test` when the plan is made, started by its first trial, closed by the run.
    """

    def __init__(self, named: NamedAgent, adapter: Adapter, inputs: "AgentInputs") -> None:
        agent = named.agent
        super().__init__(adapter, agent.name, agent.config.model_dump(exclude_unset=True))
        self.agent = agent
        self.base = named.base
        self.inputs = inputs
        """What decides the agent's answers; its hash is part of the key of the agent's trials."""
        self.ad_hoc = named.ad_hoc
        self.limit: int | None = getattr(agent.config, "parallel", None)
        """The largest number of trials at a time."""
        self.active = 0
        """The number of trials that are running now."""

    @property
    def capabilities(self) -> Capabilities:
        """What the agent's adapter can report and passes on."""
        return self.adapter.capabilities
