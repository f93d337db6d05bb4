"""Makes the adapter that reaches an agent, by the agent's `type`."""

from atp.agents.adapter import Adapter, AdapterContext
from atp.base.errors import ConfigurationError
from atp.suite.agent import AGENTS, Agent


def make_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """The adapter that reaches an agent. Raises `ConfigurationError` when it can't be set up as it is written."""
    make = AGENTS.find(agent.type)
    if make is None:
        raise ConfigurationError(
            f"agents of type `{agent.type}` need an adapter that isn't installed", f"there are adapters for {AGENTS}"
        )
    adapter: Adapter = make(agent, context)
    return adapter
