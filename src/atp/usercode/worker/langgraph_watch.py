"""Watching a graph at work.

On LangChain's callbacks, which LangGraph's own stream is made from, and on the stream's updates. The stream modes that
tell of models and tools (`messages`, `tools`, `astream_events`) make models stream their answers: another code path of
the agent than the one that is in use, and with some providers one that reports no tokens.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ..json_values import told, words
from .events import Events
from .langgraph_state import is_message, parsed, text_of

OURS = "atp"
"""The name of the events in which a graph hands over what LangChain has no words for."""
_HANDED_OVER = frozenset(("artifacts", "usage"))


class Watcher(BaseCallbackHandler):
    """Tells of nodes, models and tools."""

    run_inline = True  # in the order in which things happen
    raise_error = True  # LangChain would log it and go on, and something that happened would be missing

    def __init__(self, events: Events, steps: int) -> None:
        self._events = events
        self._offset: int | None = None
        self._steps_before = steps
        self.step = steps
        """The step of the conversation that the graph is at."""
        self._nodes: set[str] = set()
        self._began: dict[UUID, tuple[float, str | None, Any, str | None]] = {}
        """What is under way: since when, its name, its input, and the id of the call."""
        self._called: dict[str, tuple[str, Any]] = {}
        """Calls that models asked for, by id: the tool and its arguments."""
        self._told: set[str] = set()
        self._used: dict[str, int] = {}
        self._model_calls = 0

    @property
    def began(self) -> bool:
        """Whether a node has begun."""
        return bool(self._nodes)

    def usage(self) -> dict[str, int]:
        """What all models used."""
        return {**self._used, "llm_calls": self._model_calls}

    def unanswered(self) -> list[dict[str, Any]]:
        """Calls that models asked for and nobody answered: whoever uses the graph is to carry them out."""
        left = [call for key, call in self._called.items() if key not in self._told]
        return [{"name": name, "arguments": arguments} for name, arguments in left]

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, metadata: Any = None, **more: Any) -> None:
        """A node begins, or something inside one."""
        about = metadata or {}
        node, place = about.get("langgraph_node"), about.get("langgraph_checkpoint_ns")
        if node is None or place is None or place in self._nodes or more.get("name") not in (node, None):
            return
        self._nodes.add(place)
        path = [one.partition(":")[0] for one in place.split("|")]
        if len(path) == 1:  # steps of graphs inside of nodes are not the graph's own
            step = about["langgraph_step"]
            if self._offset is None:
                self._offset = self._steps_before - step + 1
            self.step = max(self.step, step + self._offset)
        self._events.tell("progress", current_step=self.step, message="/".join(path))

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **more: Any) -> None:
        """A model is asked."""
        about = more.get("metadata") or {}
        self._begin(run_id, about.get("ls_model_name"))

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **more: Any) -> None:
        """A model that takes text is asked."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id, **more)

    def on_llm_end(self, response: Any, *, run_id: UUID, **more: Any) -> None:
        """A model has answered."""
        began, name, *_ = self._began.pop(run_id, (None, None))
        messages = [one.message for row in response.generations for one in row if hasattr(one, "message")]
        used: dict[str, int] = {}
        for message in messages:
            name = message.response_metadata.get("model_name") or message.response_metadata.get("model") or name
            _add(used, _tokens(message))
            self._note_calls(message)
        self._model_calls += 1
        _add(self._used, used)
        self._events.tell("llm_request", model=name, duration_ms=_since(began), **used)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """A model could not be asked; what comes of it is the graph's business."""
        self._began.pop(run_id, None)
        self._events.tell("error", error_type=type(error).__name__, message=words(error)[:2000])

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: UUID, inputs: Any = None, **more: Any) -> None:
        """A tool is called."""
        name = (serialized or {}).get("name") or more.get("name") or "tool"
        self._begin(run_id, name, input_str if inputs is None else inputs, more.get("tool_call_id"))

    def on_tool_end(self, output: Any, *, run_id: UUID, **more: Any) -> None:
        """A tool has answered."""
        message = _tool_message(output)
        failed = getattr(message, "status", None) == "error"
        result = parsed(text_of(message)) if message is not None else output
        self._tell_call(run_id, told(result), failed, getattr(message, "tool_call_id", None))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """A tool failed; a graph may have the model try again."""
        self._tell_call(run_id, f"{type(error).__name__}: {words(error)}", True, more.get("tool_call_id"))

    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **more: Any) -> None:
        """The graph hands something over, artifacts or what something used; events of other names are for others."""
        if name != OURS:
            return
        if not isinstance(data, dict) or not data or not data.keys() <= _HANDED_OVER:
            came = f"has {', '.join(map(str, data))}" if isinstance(data, dict) and data else f"is {data!r:.60}"
            raise ValueError(f"the event `{OURS}` takes `artifacts` and `usage`; it {came}")
        self._events.hand_on(data)

    def see(self, update: dict[str, Any]) -> None:
        """What nodes have changed: calls, and answers to calls, that went past LangChain's tools."""
        for change in update.values():
            for message in _messages_in(change):
                if message.type == "ai":
                    self._note_calls(message)
                elif message.type == "tool" and message.tool_call_id not in self._told:
                    self._tell_answer(message)

    def _begin(self, run_id: UUID, name: str | None, given: Any = None, call: str | None = None) -> None:
        self._began[run_id] = (time.monotonic(), name, given, call)

    def _note_calls(self, message: Any) -> None:
        for call in getattr(message, "tool_calls", None) or ():
            self._called.setdefault(call["id"] or f"#{len(self._called)}", (call["name"], call["args"]))

    def _tell_call(self, run_id: UUID, output: Any, failed: bool, call: str | None) -> None:
        began, name, given, key = self._began.pop(run_id, (None, "tool", None, None))
        key = key or call or self._called_with(name, given)
        if key is not None:
            self._told.add(key)
            # What the model asked for; the tool itself may be given the state and more beside it.
            given = self._called.get(key, (name, given))[1]
        status = "error" if failed else "success"
        self._events.tell(
            "tool_call", tool=name, input=told(given), output=output, status=status, duration_ms=_since(began)
        )

    def _tell_answer(self, message: Any) -> None:
        self._told.add(message.tool_call_id)
        name, arguments = self._called.get(message.tool_call_id, (message.name or "tool", None))
        status = "error" if message.status == "error" else "success"
        output = told(parsed(text_of(message)))
        self._events.tell("tool_call", tool=name, input=told(arguments), output=output, status=status)

    def _called_with(self, name: str | None, given: Any) -> str | None:
        """Which call of a model a tool's call is, where LangChain doesn't say."""
        left = (key for key, call in self._called.items() if key not in self._told and call == (name, given))
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


def _since(began: float | None) -> float | None:
    return None if began is None else round((time.monotonic() - began) * 1000, 3)


def _tool_message(output: Any) -> Any:
    """The message in what a tool gave back: that itself, or one in the command that it gives the graph."""
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
