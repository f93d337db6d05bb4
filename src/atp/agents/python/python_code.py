"""Agents that are Python code, of whatever framework: called in our own process, or in an environment of their own."""

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from atp.agents.adapter import Adapter, AdapterContext, Capabilities
from atp.agents.python.calling import Offer
from atp.base.errors import ConfigurationError
from atp.usercode.entry import misconfigured
from atp.usercode.importing import loading
from atp.usercode.load import find_file, is_file
from atp.usercode.unusable import Unusable
from atp.usercode.worker.made import make


@dataclass(frozen=True, slots=True)
class Code:
    """Where an agent's code is."""

    kind: str
    """Which driver runs it: `custom`, `langgraph` or `crewai`."""
    place: str
    """A module, or a file relative to the suite's folder."""
    name: str | None
    """What it is called there; left out, the only one of its kind."""

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" if self.name else self.place

    def spec(self, context: AdapterContext) -> dict[str, Any]:
        """The same for whoever loads it."""
        folders = (context.base, *context.search)
        return {**asdict(self), "folders": [str(folder.absolute()) for folder in folders]}


class OfPython(Protocol):
    """A configuration that may name an interpreter."""

    python: str | None
    parallel: int | None


def python_adapter(
    code: Code, config: OfPython, context: AdapterContext, offer: Offer, capabilities: Capabilities | None = None
) -> Adapter:
    """Reaches Python code where it is to run. Raises `ConfigurationError`."""
    try:
        if config.python is None:
            from atp.agents.python.function import FunctionAdapter

            with loading():
                callee = make(code.spec(context))
            adapter: Adapter = FunctionAdapter(callee, offer)
        else:
            from atp.agents.python.workers import WorkerAdapter

            if is_file(code.place):
                find_file(code.place, (context.base, *context.search))
            adapter = WorkerAdapter(code, config.python, config.parallel, context, offer)
    except Unusable as error:
        wrong = misconfigured(error)
        raise ConfigurationError(f"`{code}`: {wrong}", wrong.hint) from error
    adapter.capabilities = capabilities or adapter.capabilities
    return adapter
