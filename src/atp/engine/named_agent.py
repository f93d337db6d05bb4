"""The agents of a run as files and flags name them, before anything of them is loaded."""

from collections.abc import Sequence
from pathlib import Path

from atp.base.secret_values import secret_settings
from atp.suite.agent import AGENTS, CONFIGURATIONS, AnyAgent, PromptConfig, capabilities_of
from atp.suite.capabilities import Capabilities


class DescribedAgent:
    """What files and flags say about an agent: enough to refuse cases that mean nothing for it.

    The base of `NamedAgent`, of which nothing is loaded yet, and of `AgentUnderTest`, which has an adapter.
    """

    agent: AnyAgent
    base: Path
    """The folder where relative paths of the agent's configuration start."""
    ad_hoc: bool
    """True for an agent that a flag names, not the suite."""
    group: str | None
    """The name of the agent in its file, if the agent is a column: one of several that were made of it."""
    column: str
    """The name without `column_connector`: golden files are named after both."""
    column_connector: str | None
    """The connector that tells the agent from others of its name, if a run has a column for each of several."""

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
        return names is None or self.ad_hoc or self.agent.name in names or self.group in names


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
        self.group = None
        self.column = agent.name
        self.column_connector = None
        self.connector: str | None = None
        """The model connector that replaces the agent's own."""
        self.secrets = secrets | secret_settings(agent.config.model_dump(exclude_unset=True))
        """Values in the configuration that no output may show."""

    def with_connector(self, connector: str) -> "NamedAgent":
        """Return the agent with another model connector in place of its own."""
        return self.as_column(self.agent.model_copy(deep=True), connector)

    def as_column(self, agent: AnyAgent, connector: str | None) -> "NamedAgent":
        """Return the named agent for a column: a changed copy of the agent, with the model connector to use."""
        made = NamedAgent(agent, self.base, self.ad_hoc, self.secrets)
        made.group = self.agent.name if agent.name != self.agent.name else None
        made.connector = connector
        if connector is not None and isinstance(agent.config, PromptConfig):
            agent.config.connector = connector
        return made
