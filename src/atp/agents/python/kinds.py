"""Makes the adapters of agents that are Python code: `custom`, `langgraph`, `crewai`.

Each agent is called in our own process, or, with `python:`, in worker processes in an environment of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from atp.agents.adapter import Adapter, AdapterContext, TurnRequest
from atp.agents.attachments import Attachments
from atp.base.errors import ConfigurationError
from atp.suite.agent import (
    NEEDS_ENTRY,
    Agent,
    AgentConfig,
    CrewAiConfig,
    CustomConfig,
    LangGraphConfig,
    capabilities_of,
)
from atp.usercode.importing import configuration_error, loading
from atp.usercode.load import UnusableCode, find_file, is_file, named_place
from atp.usercode.worker.drivers import make

_NOT_CONFIGURABLE = {"graph_path", "module", "graph", "python", "parallel"}
"""Keys of `langgraph` that say where the graph is and how it runs, and are not passed on to the graph."""

_KEYS_OF_CODE = ("entry", "graph_path", "crew_path", "module")
"""Keys that say where the code is."""


def custom_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Make the adapter of a `custom` agent.

    `config.entry` names a function, sync or async, a generator or an async generator, a callable object, or a class
    of callable objects. Further keys of the agent's configuration are passed in `options`, where the case's options
    override them, and in `context["config"]`. The `state` of the last reply is passed in `context["state"]`.
    """
    config: CustomConfig = agent.config
    if config.entry is None:
        raise ConfigurationError(*NEEDS_ENTRY)
    known = {*AgentConfig.model_fields, "entry", "python"}
    further = {name: value for name, value in (config.model_extra or {}).items() if name not in known}
    place, _, name = config.entry.rpartition(":")
    return _python_adapter(Code("custom", place, name), config, context, TurnValues(further, messages_in_task=True))


def langgraph_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Make the adapter of a LangGraph graph: compiled, a `StateGraph`, or a function that makes either.

    `model`, `temperature` and all further keys are passed as the graph's `configurable`, where the case's options
    override them, `thread_id` is the conversation and `workspace` the trial's folder. A graph with a checkpointer gets
    the new messages, any other graph the whole conversation. A graph reports artifacts and costs, for which LangChain
    has no callback, in an event: `dispatch_custom_event("atp", {"artifacts": […], "usage": {"cost_usd": …}})`.
    """
    config: LangGraphConfig = agent.config
    code = Code("langgraph", *named_place(config.graph_path, config.module, config.graph))
    settings = {
        key: value for key, value in config.model_dump(exclude_none=True).items() if key not in _NOT_CONFIGURABLE
    }
    values = TurnValues(settings, Attachments((context.base, *context.search)))
    return _python_adapter(code, config, context, values)


def crewai_adapter(agent: Agent, context: AdapterContext) -> Adapter:
    """Make the adapter of a CrewAI crew or flow, or of a class or function that makes one.

    The crew is kicked off with `prompt`, `messages`, `task` (the task's description), `workspace` (the trial's folder),
    the configuration's `inputs`, the case's options and the task's `input_data`. Later values override earlier ones of
    the same name.
    """
    config: CrewAiConfig = agent.config
    code = Code("crewai", *named_place(config.crew_path, config.module, config.crew))
    adapter = _python_adapter(code, config, context, TurnValues(config.inputs))
    adapter.capabilities = capabilities_of(config)
    return adapter


@dataclass(frozen=True, slots=True)
class Code:
    """The place of an agent's code."""

    kind: str
    """The driver that runs the code: `custom`, `langgraph` or `crewai`."""
    place: str
    """A module, or a file relative to the suite's folder."""
    name: str | None
    """The agent's name in the module. None for the only agent of its kind there."""

    def __str__(self) -> str:
        return f"{self.place}:{self.name}" if self.name else self.place

    def spec(self, context: AdapterContext) -> dict[str, Any]:
        """The place as JSON values, for the process that loads the code."""
        folders = (context.base, *context.search)
        return {**asdict(self), "folders": [str(folder.absolute()) for folder in folders]}


class TurnValues:
    """Makes the values that an agent's function can take as parameters of a turn.

    Each value is a new copy, so that an agent that changes one changes no other trial's.
    """

    def __init__(
        self, config: Mapping[str, Any], attachments: Attachments | None = None, *, messages_in_task: bool = False
    ) -> None:
        self._config = dict(config)
        self._attachments = attachments
        """Reads the files in messages, for agents that can't read files themselves."""
        self._messages_in_task = messages_in_task
        """True if `task` holds the conversation, as over the wire; graphs and crews get `messages` by themselves."""

    def select(self, names: Iterable[str], request: TurnRequest) -> dict[str, Any]:
        """The values of these names."""
        return {name: self._value(name, request) for name in names}

    def _value(self, name: str, request: TurnRequest) -> Any:
        match name:
            case "prompt":
                return request.prompt
            case "messages":
                messages = _copy(request.messages)
                return messages if self._attachments is None else [self._attachments.message(one) for one in messages]
            case "task":
                return _copy(request.task_with_messages if self._messages_in_task else request.task)
            case "options":
                return _copy({**self._config, **request.options})
            case "workspace":
                return request.workspace()
            case "constraints":
                return _copy(request.constraints)
            case _:
                return _copy({"config": self._config, **request.context, "state": request.state})


def takes_history(parameters: Iterable[str]) -> bool:
    """True if an agent with these parameters gets the earlier messages of a conversation."""
    return not {"messages", "task"}.isdisjoint(parameters)


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    if type(value) is list:
        return [_copy(item) for item in value]
    return value


class _Config(Protocol):
    python: str | None
    parallel: int | None


def _python_adapter(code: Code, config: _Config, context: AdapterContext, values: TurnValues) -> Adapter:
    """Make the adapter that runs the code in our own process, or in workers. Raises `ConfigurationError`."""
    folders = (context.base, *context.search)
    try:
        if config.python is None:
            from atp.agents.python.function import FunctionAdapter

            with loading(code.place, folders):
                callee = make(code.spec(context))
            return FunctionAdapter(callee, values)
        from atp.agents.python.workers import WorkerAdapter

        if is_file(code.place):
            find_file(code.place, folders)
        return WorkerAdapter(code, config.python, config.parallel, context, values)
    except UnusableCode as error:
        problem = configuration_error(error)
        wrong = ConfigurationError(f"`{code}`: {problem}", problem.hint)
        wrong.key = next((key for key in _KEYS_OF_CODE if getattr(config, key, None) is not None), None)
        raise wrong from error
