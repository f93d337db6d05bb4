"""One turn of a prompt agent: asks the model and calls the tools that it uses, until it answers in words.

Every step is emitted as an event at once, so that a limit can stop the turn between any two steps.
"""

import time
from dataclasses import replace
from typing import Any

import msgspec

from atp.agents.adapter import AgentError, Reply
from atp.agents.tools import CallableTool, ToolError, ToolOutcome, ToolRun, result_text
from atp.agents.wire import json_text
from atp.base.durations import milliseconds_since
from atp.base.near import near_miss
from atp.models.cassettes.cassette import Cassette
from atp.models.model import CassetteError, CassetteMiss, Model, ModelAnswer, ModelError, ModelRequest, ToolUse
from atp.suite.result import Event, Usage

_REFUSED = (400, 413, 422)
"""HTTP statuses of a model that are about the request, for which the agent is to blame: too long, say."""


class Loop:
    """Runs one turn."""

    def __init__(self, model: Model, tools: dict[str, CallableTool], run: ToolRun, cassette: Cassette | None) -> None:
        self._model = model
        self._tools = tools
        self._cassette = cassette
        self._request = run.request
        self._run = replace(run, emit=self._emit)
        self._usage = Usage(llm_calls=0, tool_calls=0, steps=0)
        self._added: list[dict[str, Any]] = []
        """The messages that this turn adds to the conversation."""

    async def run(self, messages: list[dict[str, Any]], settings: dict[str, Any], most: int) -> Reply:
        """Ask the model until it answers, at most `most` times. Raises `AgentError`."""
        for _ in range(most):
            ask = ModelRequest(
                messages=[*messages, *self._added],
                tools=[one.tool for one in self._tools.values()],
                schema=self._request.schema,
                optional=self._request.optional,
                settings=settings,
                run=self._request.context.get("run") or 1,
            )
            answer = await self._ask(ask)
            self._added.append(_message(answer))
            if not answer.tool_uses:
                if answer.finish == "length":
                    self._request.log("the model's answer was cut off: it reached the most tokens it may write")
                return self._reply(answer.text)
            if self._usage.llm_calls == most:
                break
            for use in answer.tool_uses:
                await self._use(use)
        message = f"agent error: still calling tools after {most} calls of the model in one turn (`max_steps`)"
        raise AgentError(message, reply=self._reply())

    def _reply(self, output: str | None = None) -> Reply:
        state = self._run.counts or None
        return Reply(output=output, usage=self._usage, messages=self._added, state=state)

    async def _ask(self, request: ModelRequest) -> ModelAnswer:
        began = time.perf_counter()
        try:
            answer = await self._model.ask(request)
        except ModelError as error:
            raise AgentError(
                f"the model could not answer: {error}",
                "agent" if error.status in _REFUSED else "environment",
                retryable=error.retryable,
                retry_after=error.retry_after,
                reply=self._reply(),
            ) from error
        except (CassetteMiss, CassetteError) as error:
            raise AgentError(str(error), "environment", reply=self._reply()) from error
        used = _uncounted(answer.usage, 1)
        payload = {"model": answer.model or self._model.name, "duration_ms": milliseconds_since(began)}
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            if (figure := getattr(used, name)) is not None:
                payload[name] = figure
        self._usage.add(used)
        self._emit(Event(type="llm_request", payload=payload))
        return answer

    async def _use(self, use: ToolUse) -> None:
        """Call a tool, emit the call, and add its result to the conversation."""
        began = time.perf_counter()
        try:
            called = await self._call(use)
            outcome = {"output": called.result, "status": "success"}
            text, used = result_text(called.result), called.usage
        except ToolError as failure:
            outcome = {"output": str(failure), "status": "error"}
            text, used = f"error: {failure}", failure.usage
        except AgentError as error:  # an agent that is a tool can't be reached
            error.reply = self._reply()
            raise
        except (CassetteMiss, CassetteError) as error:
            raise AgentError(str(error), "environment", reply=self._reply()) from error
        if used is not None:
            self._usage.add(_uncounted(used, used.llm_calls))
        self._added.append({"role": "tool", "tool_call_id": use.id, "content": text})
        payload = {"tool": use.name, "input": use.arguments, **outcome, "duration_ms": milliseconds_since(began)}
        self._emit(Event(type="tool_call", payload=payload))

    async def _call(self, use: ToolUse) -> ToolOutcome:
        tool = self._tools.get(use.name)
        if tool is None:
            meant = near_miss(use.name, self._tools)
            names = f"did you mean `{meant}`?" if meant else f"there are: {', '.join(self._tools) or 'none'}"
            raise ToolError(f"there is no tool `{use.name}` ({names})")
        arguments = {} if use.arguments is None else use.arguments
        if not isinstance(arguments, dict):
            raise ToolError("the arguments are not a JSON object")
        if self._cassette is None or not tool.recorded:
            return await tool.call(arguments, self._run)
        return await self._through(self._cassette, tool, arguments)

    async def _through(self, cassette: Cassette, tool: CallableTool, arguments: dict[str, Any]) -> ToolOutcome:
        """Record or replay a call, together with the events of an agent that is the tool."""
        live = False
        events: list[Any] = []

        def emit(event: Event) -> None:
            events.append([event.type, {key: value for key, value in event.payload.items() if key != "duration_ms"}])
            self._emit(event)

        async def call() -> Any:
            nonlocal live
            live = True
            try:
                called = await tool.call(arguments, replace(self._run, emit=emit))
            except ToolError as failure:
                return {"error": str(failure), "usage": _as_json(failure.usage), "told": events}
            return {"result": called.result, "usage": _as_json(called.usage), "told": events}

        parts = {"tool": tool.tool.name, "arguments": arguments, "run": self._request.context.get("run") or 1}
        found = await cassette.through("tool", parts, call)
        if not live:
            for kind, payload in found["told"]:
                self._emit(Event(type=kind, payload=payload))
        usage = None if found["usage"] is None else msgspec.convert(found["usage"], Usage)
        if "error" in found:
            raise ToolError(found["error"], usage)
        return ToolOutcome(result=found["result"], usage=usage)

    def _emit(self, event: Event) -> None:
        if event.type == "tool_call" and event.payload.get("status") != "started":  # its outcome is counted
            self._usage.add(Usage(tool_calls=1, steps=1))
        self._request.emit(event)


def _message(answer: ModelAnswer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.tool_uses:
        message["tool_calls"] = [
            {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": _arguments(use.arguments)}}
            for use in answer.tool_uses
        ]
    return message


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json_text({} if given is None else given)


def _uncounted(usage: Usage, llm_calls: int | None) -> Usage:
    """Return the usage without the counts that are taken from events."""
    return msgspec.structs.replace(usage, llm_calls=llm_calls, tool_calls=None, steps=None, wall_time_seconds=None)


def _as_json(usage: Usage | None) -> Any:
    return None if usage is None else msgspec.to_builtins(usage)
