"""The tools of a prompt agent: Python functions and other agents."""

import copy
import inspect
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from atp.agents.adapter import AdapterContext, AgentError, Reply, TurnRequest
from atp.agents.prompt.signature import BadArguments, Signature
from atp.agents.running import RunningAgent
from atp.agents.turns import TurnBuilder
from atp.agents.wire import RAW_LENGTH, json_text
from atp.base.errors import ConfigurationError
from atp.base.text import cut
from atp.models.model import Tool
from atp.suite.result import Event, Usage
from atp.usercode.call import Raised
from atp.usercode.call import call as call_user_code
from atp.usercode.code_path import load_function
from atp.usercode.json_values import NotJson, plain
from atp.usercode.printed import Printed


class ToolFailed(Exception):
    """A call that did not work out; the model is told why."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage
        """What it used all the same."""


@dataclass(slots=True, kw_only=True)
class ToolCalled:
    """What came of a call."""

    result: Any = None
    """What the model gets."""
    usage: Usage | None = None
    """What it used, if it runs on models itself."""


@dataclass(slots=True, kw_only=True)
class ToolRun:
    """The turn that a call belongs to."""

    request: TurnRequest
    """What the agent was asked."""
    printed: Printed
    """What the tools print in this turn."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often prepared answers were used, since the conversation began."""
    tell: Callable[[Event], None]
    """Hand on what another agent tells of its work."""


class UsableTool(ABC):
    """A tool that can be called."""

    tool: Tool
    recorded = False
    """Its answers go to a cassette, and come from there."""
    files: tuple[Path, ...] = ()
    """The files that decide what it does."""
    variables: Mapping[str, str] = MappingProxyType({})
    """What it takes from the environment."""
    secrets: frozenset[str] = frozenset()
    """Values that no output may show."""

    @abstractmethod
    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolCalled:
        """Call it. Raises `ToolFailed`."""


class Command(UsableTool):
    """A Python function."""

    def __init__(self, entry: str, context: AdapterContext) -> None:
        """Raises `ConfigurationError`."""
        self._function = load_function(entry, (context.base, *context.search))
        name = entry.rpartition(":")[2].rpartition(".")[2]
        if inspect.isclass(self._function):
            raise ConfigurationError(f"`{name}` is a class", "name a function")
        self._signature = Signature(self._function)
        self.tool = Tool(
            name=tool_name(name), description=self._signature.description, parameters=self._signature.schema
        )
        # What a function does to the workspace is part of what it does, and no recording would do it again.
        self.recorded = "workspace" not in self._signature.takes
        source = getattr(inspect.getmodule(self._function), "__file__", None)
        self.files = (Path(source),) if source else ()

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolCalled:
        """What the function gives back, as JSON. What it raises is told to the model."""
        ours: dict[str, Any] = {}
        if "context" in self._signature.takes:
            ours["context"] = copy.deepcopy(run.request.context)
        if "workspace" in self._signature.takes:
            ours["workspace"] = run.request.workspace()
        try:
            by_place, by_name = self._signature.read(arguments, ours)
        except BadArguments as error:
            raise ToolFailed(f"wrong arguments: {error}") from error
        try:
            value = await call_user_code(self._function, by_place, by_name, printed=run.printed)
        except Raised as raised:
            raise ToolFailed(cut(str(raised), RAW_LENGTH)) from raised.error
        return ToolCalled(result=_as_json(value))


def _as_json(value: Any) -> Any:
    try:
        return plain(value if isinstance(value, str) else to_jsonable_python(value))
    except (PydanticSerializationError, NotJson, ValueError) as error:
        why = error if isinstance(error, NotJson) else f"a value of type {type(value).__name__}"
        raise ToolFailed(f"it gave back {why}, which is not JSON") from error


class AgentTool(UsableTool):
    """Another agent, which is told one message at a time. Each call is a conversation of its own."""

    recorded = True

    def __init__(self, agent: RunningAgent) -> None:
        self._agent = agent
        adapter = agent.adapter
        self.tool = Tool(
            name=tool_name(agent.name),
            description=getattr(adapter, "description", None) or f"Asks the agent {agent.name}, and gives its answer.",
            parameters={
                "type": "object",
                "properties": {"message": {"type": "string", "description": "What to tell the agent."}},
                "required": ["message"],
                "additionalProperties": False,
            },
        )
        self.files = tuple(getattr(adapter, "files", ()))
        self.variables = getattr(adapter, "variables", {})
        self.secrets = getattr(adapter, "secrets", frozenset())

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolCalled:
        """The agent's answer. That it can't be reached is not the fault of whoever asks it."""
        message = arguments.get("message")
        if not isinstance(message, str) or not message.strip() or len(arguments) > 1:
            raise ToolFailed("wrong arguments: it takes a `message`, a text that isn't empty")
        told = _Told(self.tool.name, run.tell)
        request = self._request(message, run.request, told)
        try:
            reply = await self._agent.ask_once(request)
        except AgentError as error:
            if error.blame != "agent":
                raise
            reply = error.reply or Reply()
            told.take(reply)
            raise ToolFailed(cut(str(error), RAW_LENGTH), reply.usage) from error
        told.take(reply)
        return ToolCalled(result=plain(reply.output), usage=reply.usage)

    def _request(self, message: str, outer: TurnRequest, told: "_Told") -> TurnRequest:
        turns = TurnBuilder(
            agent=self._agent,
            task_id=f"{outer.task_id[:110]}-{secrets.token_hex(4)}",
            context={**outer.context, "connector": None},
            workspace=outer.workspace,
            emit=told.event,
            log=lambda line: outer.log(f"{self.tool.name}: {line}"),
            began=outer.began,
        )
        return turns.request([{"role": "user", "content": message}])


class _Told:
    """What another agent tells of its work: it counts as the work of the one that asked it."""

    def __init__(self, name: str, tell: Callable[[Event], None]) -> None:
        self._name = name
        self._tell = tell
        self._has_told_tokens = False

    def event(self, event: Event) -> None:
        """Hand an event on; a tool's name says whose it is."""
        payload = {key: value for key, value in event.payload.items() if key not in ("step", "current_step")}
        if event.type == "tool_call":
            payload["tool"] = f"{self._name}__{payload['tool']}"
        self._has_told_tokens = self._has_told_tokens or event.type == "llm_request"
        self._tell(Event(type=event.type, payload=payload, at_ms=event.at_ms))

    def take(self, reply: Reply) -> None:
        """Tell of what came only with the answer, so that limits see it."""
        for call in reply.tool_calls:
            status = {"output": call.error, "status": "error"} if call.error else {"output": call.result}
            self.event(Event(type="tool_call", payload={"tool": call.name, "input": call.arguments, **status}))
        usage = reply.usage
        if usage is not None and not self._has_told_tokens:
            names = ("input_tokens", "output_tokens", "cost_usd")
            used = {name: value for name in names if (value := getattr(usage, name)) is not None}
            if used:
                self.event(Event(type="llm_request", payload=used))


def tool_name(name: str) -> str:
    """A function's or an agent's name as models take it."""
    bare = name.removesuffix(".md").removesuffix("/package.yao").strip("/").removeprefix("agents/")
    return re.sub(r"[^A-Za-z0-9_-]+", "_", bare)[:64]


def result_text(value: Any) -> str:
    """A result as the model reads it."""
    return value if isinstance(value, str) else json_text(value)
