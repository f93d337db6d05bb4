"""Reports what a graph does, from LangChain's callbacks and the updates of LangGraph's stream.

Not from the stream modes that report models and tools (`messages`, `tools`, `astream_events`): they make models stream
their answers, which is another code path of the agent than in production, and reports no tokens with some providers.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ..json_values import event_value, safe_text
from .events import Events
from .langgraph_state import is_message, parsed, text_of

EVENT_NAME = "atp"
"""The name of the custom events in which a graph reports artifacts and usage, which LangChain has no callback for."""
_EVENT_KEYS = frozenset(("artifacts", "usage"))


class Watcher(BaseCallbackHandler):
    """Reports the nodes, model calls and tool calls of one turn."""

    run_inline = True  # keeps the events in order
    raise_error = True  # LangChain would only log an error here, and the event would be missing

    def __init__(self, events: Events, steps: int) -> None:
        self._events = events
        self._offset: int | None = None
        self._steps_before = steps
        self.step = steps
        """The number of the graph's current step in the conversation."""
        self._nodes: set[str] = set()
        self._running: dict[UUID, tuple[float, str | None, Any, str | None]] = {}
        """The running model and tool calls: time of the start, name, input, and id of the call."""
        self._requested: dict[str, tuple[str, Any]] = {}
        """The tool calls that models requested, by id: the tool and its arguments."""
        self._reported: set[str] = set()
        self._counted: set[str | int | None] = set()
        """The ids of the messages whose usage is counted, or the objects' own where they have none."""
        self._own: list[Any] = []
        """Keeps messages without an id, so that no other object gets theirs."""
        self._used: dict[str, int] = {}
        self._model_calls = 0

    @property
    def has_started(self) -> bool:
        """True once a node has started."""
        return bool(self._nodes)

    def usage(self) -> dict[str, int]:
        """The usage of all models."""
        return {**self._used, "llm_calls": self._model_calls}

    def unanswered(self) -> list[dict[str, Any]]:
        """The tool calls that models requested and the graph did not make: the caller of the graph is to make them."""
        left = [call for key, call in self._requested.items() if key not in self._reported]
        return [{"name": name, "arguments": arguments} for name, arguments in left]

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, metadata: Any = None, **more: Any) -> None:
        """Report the start of a node. Ignores what starts inside a node."""
        about = metadata or {}
        node, place = about.get("langgraph_node"), about.get("langgraph_checkpoint_ns")
        if node is None or place is None or place in self._nodes or more.get("name") not in (node, None):
            return
        self._nodes.add(place)
        path = [one.partition(":")[0] for one in place.split("|")]
        if len(path) == 1:  # steps of subgraphs are not counted
            step = about["langgraph_step"]
            if self._offset is None:
                self._offset = self._steps_before - step + 1
            self.step = max(self.step, step + self._offset)
        self._events.report("progress", current_step=self.step, message="/".join(path))

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **more: Any) -> None:
        """Note the start of a call of a chat model."""
        about = more.get("metadata") or {}
        self._note_start(run_id, about.get("ls_model_name"))

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **more: Any) -> None:
        """Note the start of a call of a text model."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id, **more)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """Report a model call."""
        started_at, name, *_ = self._running.pop(run_id, (None, None))
        messages = [one.message for row in response.generations for one in row if hasattr(one, "message")]
        used: dict[str, int] = {}
        for message in messages:
            name = message.response_metadata.get("model_name") or message.response_metadata.get("model") or name
            _add(used, _tokens(message))
            self._note_requested(message)
            self._counted.add(message.id)
        self._count(name, used, _since(started_at))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Report a failed model call. The graph decides whether the turn fails."""
        self._running.pop(run_id, None)
        self._events.report("error", error_type=type(error).__name__, message=safe_text(error))

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, inputs: Any = None, **more: Any) -> None:
        """Note the start of a tool call."""
        name = (serialized or {}).get("name") or more.get("name") or "tool"
        self._note_start(run_id, name, input_str if inputs is None else inputs, more.get("tool_call_id"))

    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        """Report a tool call that returned."""
        message = _tool_message(output)
        failed = getattr(message, "status", None) == "error"
        result = parsed(text_of(message)) if message is not None else output
        self._report_call(run_id, event_value(result), failed, getattr(message, "tool_call_id", None))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Report a tool call that raised. The graph may let the model try again."""
        self._report_call(run_id, f"{type(error).__name__}: {safe_text(error)}", True, more.get("tool_call_id"))

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        """Pass on the artifacts or the usage in an event of ours. Ignores events of other names."""
        if name != EVENT_NAME:
            return
        if not isinstance(data, dict) or not data or not data.keys() <= _EVENT_KEYS:
            came = f"has {', '.join(map(str, data))}" if isinstance(data, dict) and data else f"is {data!r}"
            raise ValueError(f"the event `{EVENT_NAME}` takes `artifacts` and `usage`; it {came}")
        self._events.emit(data)

    def on_update(self, update: dict[str, Any]) -> None:
        """Report the tool calls in the updates of nodes that don't use LangChain's tools."""
        for change in update.values():
            for message in _messages_in(change):
                if message.type == "ai":
                    self._note_requested(message)
                    self._count_own(message)
                elif message.type == "tool" and message.tool_call_id not in self._reported:
                    self._report_message(message)

    def _count_own(self, message: Any) -> None:
        """Count the usage of a message that a node made itself, with another library than LangChain's models."""
        key = message.id or id(message)
        if key in self._counted or not (used := _tokens(message)):
            return
        self._counted.add(key)
        self._own.append(message)
        metadata = message.response_metadata or {}
        self._count(metadata.get("model_name") or metadata.get("model"), used)

    def _count(self, model: str | None, used: dict[str, int], duration_ms: float | None = None) -> None:
        self._model_calls += 1
        _add(self._used, used)
        self._events.report("llm_request", model=model, duration_ms=duration_ms, **used)

    def _note_start(self, run_id: UUID, name: str | None, arguments: Any = None, call: str | None = None) -> None:
        self._running[run_id] = (time.monotonic(), name, arguments, call)

    def _note_requested(self, message: Any) -> None:
        for call in getattr(message, "tool_calls", None) or ():
            self._requested.setdefault(call["id"] or f"#{len(self._requested)}", (call["name"], call["args"]))

    def _report_call(self, run_id: UUID, output: Any, failed: bool, call: str | None) -> None:
        started_at, name, arguments, key = self._running.pop(run_id, (None, "tool", None, None))
        key = key or call or self._find_request(name, arguments)
        if key is not None:
            self._reported.add(key)
            # The arguments that the model requested: LangGraph may pass the state and more to the tool.
            arguments = self._requested.get(key, (name, arguments))[1]
        status = "error" if failed else "success"
        self._events.report(
            "tool_call",
            tool=name,
            input=event_value(arguments),
            output=output,
            status=status,
            duration_ms=_since(started_at),
        )

    def _report_message(self, message: Any) -> None:
        self._reported.add(message.tool_call_id)
        name, arguments = self._requested.get(message.tool_call_id, (message.name or "tool", None))
        status = "error" if message.status == "error" else "success"
        output = event_value(parsed(text_of(message)))
        self._events.report("tool_call", tool=name, input=event_value(arguments), output=output, status=status)

    def _find_request(self, name: str | None, arguments: Any) -> str | None:
        """The id of the requested call that a tool call belongs to, where LangChain gives none."""
        left = (key for key, call in self._requested.items() if key not in self._reported and call == (name, arguments))
        return next(left, None)


def _tokens(message: Any) -> dict[str, int]:
    usage = getattr(message, "usage_metadata", None)
    if not usage:
        return {}
    found = {"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]}
    details = usage.get("input_token_details") or {}
    for key, name in (("cache_read", "cache_read_tokens"), ("cache_creation", "cache_creation_tokens")):
        if details.get(key):
            found[name] = details[key]
    return found


def _add(total: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def _since(started_at: float | None) -> float | None:
    return None if started_at is None else round((time.monotonic() - started_at) * 1000, 3)


def _tool_message(output: Any) -> Any:
    """The tool message in a tool's output: the output itself, or a message in its `Command`."""
    if getattr(output, "type", None) == "tool":
        return output
    inside = output if isinstance(output, list) else _messages_in(getattr(output, "update", None))
    return next((one for one in inside if getattr(one, "type", None) == "tool"), None)


def _messages_in(change: Any) -> list[Any]:
    changes = change if isinstance(change, list) else [change]
    found: list[Any] = []
    for one in changes:
        if isinstance(one, dict):
            for value in one.values():
                found += value if isinstance(value, list) else [value]
        else:
            found.append(one)
    return [one for one in found if is_message(one)]
