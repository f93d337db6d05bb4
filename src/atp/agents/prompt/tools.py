"""The tools that the head of a prompt agent names: Python functions, other agents, and prepared answers."""

import copy
import inspect
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from atp.agents.adapter import AdapterContext, AgentError, Reply, Services, TurnRequest
from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.head import CannedAnswer, CannedTool, Written, command_name
from atp.agents.prompt.signature import BadArguments, Signature
from atp.agents.running import RunningAgent
from atp.agents.tools import CallableTool, ToolError, ToolOutcome, ToolRun, tool_name
from atp.agents.turns import TurnBuilder
from atp.agents.wire import RAW_LENGTH
from atp.base.diagnostics import Place
from atp.base.errors import ConfigurationError
from atp.base.text import cut
from atp.loader.validate import DataPath
from atp.models.model import Tool
from atp.suite.result import Event
from atp.usercode.call import ClosedStreams, Raised
from atp.usercode.call import call as call_user_code
from atp.usercode.code_path import load_function
from atp.usercode.exits import EndsProcess
from atp.usercode.json_values import NotJson, plain


class FunctionTool(CallableTool):
    """A Python function of the user's (`commands` of the head)."""

    def __init__(self, entry: str, context: AdapterContext) -> None:
        """Raises `ConfigurationError`."""
        self._function = load_function(entry, (context.base, *context.search))
        name = command_name(entry)
        if inspect.isclass(self._function):
            raise ConfigurationError(f"`{name}` is a class", "name a function")
        self._signature = Signature(self._function)
        self.tool = Tool(name=name, description=self._signature.description, parameters=self._signature.schema)
        # A recording would not repeat what a function does to the workspace.
        self.recorded = "workspace" not in self._signature.takes
        source = getattr(inspect.getmodule(self._function), "__file__", None)
        self.files = (Path(source),) if source else ()

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolOutcome:
        """Call the function, and return its result as JSON. The model gets what it raises."""
        ours: dict[str, Any] = {}
        if "context" in self._signature.takes:
            ours["context"] = copy.deepcopy(run.request.context)
        if "workspace" in self._signature.takes:
            ours["workspace"] = run.request.workspace()
        try:
            by_place, by_name = self._signature.read(arguments, ours)
        except BadArguments as error:
            raise ToolError(f"wrong arguments: {error}") from error
        try:
            value = await call_user_code(self._function, by_place, by_name, printed=run.printed)
        except Raised as raised:
            if raised.is_a((EndsProcess, ClosedStreams)):  # not for the model to get over
                message = f"agent error: the tool `{self.tool.name}`: {cut(str(raised), RAW_LENGTH)}"
                raise AgentError(message) from raised.error
            raise ToolError(cut(str(raised), RAW_LENGTH)) from raised.error
        return ToolOutcome(result=_as_json(value))


def _as_json(value: Any) -> Any:
    try:
        return plain(value if issubclass(type(value), str) else to_jsonable_python(value))
    except BaseException as error:  # by methods of the value, too, which are the user's code
        why = error if type(error) is NotJson else f"a value of type {type(value).__name__}"
        raise ToolError(f"it gave back {why}, which is not JSON") from error


class AgentTool(CallableTool):
    """Another agent of the project. Each call is a conversation of one turn."""

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

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolOutcome:
        """Ask the agent. An agent that can't be reached is an `AgentError`, not a `ToolError` for the model."""
        message = arguments.get("message")
        if not isinstance(message, str) or not message.strip() or len(arguments) > 1:
            raise ToolError("wrong arguments: it takes a `message`, a text that isn't empty")
        events = _AgentEvents(self.tool.name, run.emit)
        request = self._request(message, run.request, events)
        try:
            reply = await self._agent.ask_once(request)
        except AgentError as error:
            if error.blame != "agent":
                raise
            reply = error.reply or Reply()
            events.add_reply(reply)
            raise ToolError(cut(str(error), RAW_LENGTH), reply.usage) from error
        events.add_reply(reply)
        return ToolOutcome(result=plain(reply.output), usage=reply.usage)

    def _request(self, message: str, outer: TurnRequest, events: "_AgentEvents") -> TurnRequest:
        turns = TurnBuilder(
            agent=self._agent,
            task_id=f"{outer.task_id[:110]}-{secrets.token_hex(4)}",
            context={**outer.context, "connector": None},
            workspace=outer.workspace,
            emit=events.emit,
            log=lambda line: outer.log(f"{self.tool.name}: {line}"),
            began=outer.began,
        )
        return turns.request([{"role": "user", "content": message}])


class _AgentEvents:
    """Passes on the events of an agent that is a tool: its work counts as work of the agent that asked."""

    def __init__(self, name: str, emit: Callable[[Event], None]) -> None:
        self._name = name
        self._emit = emit
        self._has_tokens = False

    def emit(self, event: Event) -> None:
        """Pass on an event, with the agent's name before the names of its tools."""
        payload = {key: value for key, value in event.payload.items() if key not in ("step", "current_step")}
        if event.type == "tool_call":
            payload["tool"] = f"{self._name}__{payload['tool']}"
        self._has_tokens = self._has_tokens or event.type == "llm_request"
        self._emit(Event(type=event.type, payload=payload, at_ms=event.at_ms))

    def add_reply(self, reply: Reply) -> None:
        """Emit what came only with the reply, so that limits see it."""
        for call in reply.tool_calls:
            status = {"output": call.error, "status": "error"} if call.error else {"output": call.result}
            self.emit(Event(type="tool_call", payload={"tool": call.name, "input": call.arguments, **status}))
        usage = reply.usage
        if usage is not None and not self._has_tokens:
            names = ("input_tokens", "output_tokens", "cost_usd")
            used = {name: value for name in names if (value := getattr(usage, name)) is not None}
            if used:
                self.emit(Event(type="llm_request", payload=used))


class PreparedTool(CallableTool):
    """A tool with prepared answers, so that tests need no service and each call has the same result."""

    def __init__(self, name: str, table: CannedTool, stands_for: CallableTool | None) -> None:
        real = stands_for.tool if stands_for is not None else Tool(name=name, parameters=_parameters(table))
        self.tool = Tool(
            name=name,
            description=real.description if table.description is None else table.description,
            parameters=real.parameters if table.parameters is None else table.parameters,
        )
        self.files = stands_for.files if stands_for is not None else ()
        self._table = table
        self._check = _schema_check(self.tool.parameters)

    def standing_in_for(self, tool: CallableTool) -> "PreparedTool":
        """Return the same tool, with the description of the tool that it stands in for."""
        return PreparedTool(self.tool.name, self._table, tool)

    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolOutcome:
        """Return the answer that is prepared for these arguments. The number of calls is part of the agent's state."""
        if wrong := self._check(arguments):
            raise ToolError(wrong)
        for number, case in enumerate(self._table.when):
            if _matches(case.arguments, arguments):
                return self._answer(case, f"{self.tool.name}/{number}", run)
        if not self._table.given:
            raise ToolError("no answer is prepared for these arguments (`tools` of the agent's file)")
        return self._answer(self._table, self.tool.name, run)

    def _answer(self, answer: CannedAnswer, place: str, run: ToolRun) -> ToolOutcome:
        if answer.error is not None:
            raise ToolError(answer.error)
        if answer.results is None:
            return ToolOutcome(result=answer.result)
        used = run.counts.get(place, 0)
        if used == len(answer.results):
            raise ToolError(f"no answer is left: {used} are prepared (`results` in the agent's file)")
        run.counts[place] = used + 1
        found = answer.results[used]
        if isinstance(found, dict) and found.keys() == {"error"}:
            raise ToolError(str(found["error"]))
        is_quoted = isinstance(found, dict) and found.keys() == {"result"}
        return ToolOutcome(result=found["result"] if is_quoted else found)


def _matches(expected: Any, found: Any) -> bool:
    """Return whether a value matches. Objects may have more keys than expected."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            key in found and _matches(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list):
        is_same_length = isinstance(found, list) and len(expected) == len(found)
        return is_same_length and all(_matches(one, other) for one, other in zip(expected, found, strict=True))
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def _parameters(table: CannedTool) -> dict[str, Any]:
    """Return a schema with the names of the arguments in the prepared answers."""
    names = dict.fromkeys(name for case in table.when for name in case.arguments)
    return {"type": "object", "properties": {name: {} for name in names}}


def _schema_check(schema: dict[str, Any]) -> Any:
    from jsonschema.validators import validator_for

    validator = validator_for(schema)(schema)

    def check(arguments: dict[str, Any]) -> str | None:
        found = sorted(validator.iter_errors(arguments), key=lambda one: [str(step) for step in one.absolute_path])
        reasons = [f"`{'.'.join(map(str, one.absolute_path))}`: {one.message}".removeprefix("``: ") for one in found]
        return "; ".join(reasons) or None

    return check


def make_tools(
    written: Written, files: AgentFiles, context: AdapterContext, services: Services
) -> dict[str, CallableTool]:
    """Make the tools, by name. Mistakes are added to `files` where the tools are named."""
    box = _Toolbox(written, files)
    head = written.head
    search = (files.root, context.base, *context.search)
    around = replace(context, base=written.path.parent, search=search)
    for number, entry in enumerate(head.commands):
        box.make(("commands", number), entry, lambda entry: FunctionTool(entry, around))
    for number, name in enumerate(head.agents):
        box.make(("agents", number), name, lambda name: AgentTool(services.running_agent(name)))
    for name, table in head.tools.items():
        box.tools[name] = PreparedTool(name, table, box.tools.get(name))
    return box.tools


class _Toolbox:
    """Collects tools, and the mistakes in them."""

    def __init__(self, written: Written, files: AgentFiles) -> None:
        self.tools: dict[str, CallableTool] = {}
        self._locate = written.locate
        self._notes = files.notes(written.path)

    def make(self, where: DataPath, named: str, make: Callable[[str], CallableTool]) -> None:
        try:
            tool = make(named)
        except ConfigurationError as error:
            self.note(where, f"`{named}`: {error}", error.hint)
            return
        if tool.tool.name in self.tools:
            self.note(where, f"two tools are called `{tool.tool.name}`", "rename one of them, or leave it out")
        self.tools[tool.tool.name] = tool

    def note(self, where: DataPath, message: str, hint: str | None) -> None:
        at = Place(1, 1) if self._locate is None else self._locate.value(where)
        self._notes.error("tool", message, at, hint)
