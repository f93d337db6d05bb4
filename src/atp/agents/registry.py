"""From an agent of a suite to the adapter that reaches it.

Adapters are found by the agent's `type`, ours and a plugin's in the same way; they load when a plan needs them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

from atp.agents.adapter import Adapter, AdapterContext
from atp.base.errors import ConfigurationError
from atp.suite.agent import AGENTS, Agent

Maker = TypeVar("Maker", bound=Callable[..., Any])


class Makers(dict[str, Maker | str], Generic[Maker]):
    """The makers of one family, or their places (`package.module:Name`), by the `type` that files give."""

    def find(self, kind: str, discover: Callable[[], object]) -> Maker | None:
        """The maker of this kind, if there is one.

        `discover` loads the plugins, which register what they have. Only an unknown kind asks for it.
        """
        if kind not in self:
            discover()
        found = self.get(kind)
        if isinstance(found, str):
            module, _, name = found.partition(":")
            loaded: Maker = getattr(import_module(module), name)
            self[kind] = loaded
            return loaded
        return found

    def __str__(self) -> str:
        """All kinds that there are, for a message."""
        return ", ".join(f"`{kind}`" for kind in sorted(self))


MakesAdapter = Callable[[Agent, AdapterContext], Adapter]
Made = TypeVar("Made", bound=Callable[..., Adapter])

_ADAPTERS: Makers[MakesAdapter] = Makers()


def adapter_for(kind: str) -> Callable[[Made], Made]:
    """A decorator: this class, called with an agent and its context, reaches agents of this kind."""

    def register(made: Made) -> Made:
        _ADAPTERS[kind] = made
        return made

    return register


def adapter_at(kind: str, place: str) -> None:
    """The same for a class in a module that isn't loaded before it is needed: `package.module:Class`."""
    _ADAPTERS[kind] = place


def make_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """The adapter that reaches an agent. Raises `ConfigurationError` when it can't be set up as it is written."""
    # A plugin's module registers the shape of a configuration and the adapter together.
    make = _ADAPTERS.find(agent.type, AGENTS.discover)
    if make is None:
        raise ConfigurationError(
            f"agents of type `{agent.type}` need an adapter that isn't installed", f"there are adapters for {_ADAPTERS}"
        )
    return make(agent, context)


adapter_at("custom", "atp.agents.python.kinds:custom_adapter")
adapter_at("http", "atp.agents.http.adapter:HttpAdapter")
adapter_at("cli", "atp.agents.command.adapter:CliAdapter")
adapter_at("docker", "atp.agents.docker:docker_adapter")
adapter_at("prompt", "atp.agents.prompt.adapter:PromptAdapter")
adapter_at("langgraph", "atp.agents.python.kinds:langgraph_adapter")
adapter_at("crewai", "atp.agents.python.kinds:crewai_adapter")
