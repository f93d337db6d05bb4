"""Makes the input of a graph, and reads the answer from its last state."""

from __future__ import annotations

import functools
import json
from typing import Any

from ..json_values import jsonable
from .drivers import PROMPT_KEYS


def _input_schema(graph: Any) -> dict[str, Any]:
    """The JSON Schema of a graph's input.

    Before Python 3.12, a plain `typing.TypedDict` has no JSON Schema: then the schema has just the keys.
    """
    try:
        found: dict[str, Any] = graph.get_input_jsonschema()
    except Exception:
        state = getattr(getattr(graph, "builder", None), "input_schema", None)
        keys = getattr(state, "__annotations__", None)
        if not keys:
            raise
        found = {"type": "object", "properties": {key: {} for key in keys}}
    return found


class GraphInput:
    """Makes the input that a graph takes."""

    def __init__(self, graph: Any) -> None:
        schema = _input_schema(graph)
        self._keys = list(schema.get("properties", {}))
        self._type = schema.get("type")

    def values(self, messages: list[dict[str, Any]], prompt: str, task: dict[str, Any]) -> Any:
        """The input of the graph: messages, or the prompt under a key of its state, and the task's `input_data`."""
        if self._type == "string":
            return prompt
        if self._type == "array":
            return _messages(messages)
        data = task.get("input_data") or {}
        data_in_state = {key: value for key, value in data.items() if key in self._keys and key != "messages"}
        if "messages" in self._keys or not self._keys:
            return {**data_in_state, "messages": _messages(messages)}
        for key in PROMPT_KEYS:
            if key in self._keys:
                return {key: prompt, **data_in_state}
        if not data_in_state:
            raise ValueError(
                f"the graph's state has no `messages` and nothing else that takes the prompt: it has "
                f"{', '.join(self._keys)}; give them in the task's `input_data`"
            )
        return data_in_state

    def unused_data(self, task: dict[str, Any]) -> list[str]:
        """The keys of the task's `input_data` that the graph's state does not have."""
        known = self._keys if self._type not in ("string", "array") else []
        return [key for key in task.get("input_data") or {} if key not in known or key == "messages"]


def _messages(messages: list[dict[str, Any]]) -> list[Any]:
    from langchain_core.messages import convert_to_messages

    return convert_to_messages([_message(one) for one in messages])


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """A message in OpenAI's form, which LangChain reads. LangChain requires a `content`."""
    known = ("role", "content", "name", "tool_calls", "tool_call_id")
    read = {key: message[key] for key in known if key in message}
    return {**read, "content": read.get("content") or ""}


def answer_of(state: Any) -> Any:
    """The answer in a graph's last state: the text of the last message, or the whole state if it has no messages."""
    if is_message(state):
        return text_of(state)
    messages = state.get("messages") if isinstance(state, dict) else state
    if not isinstance(messages, (list, tuple)) or not messages or not all(is_message(one) for one in messages):
        return jsonable(state)
    for message in reversed(messages):
        if message.type == "ai":
            return text_of(message)
        if message.type == "human":
            break
    return None if messages[-1].type == "human" else text_of(messages[-1])


def is_message(value: Any) -> bool:
    """True if a value is a LangChain message."""
    return isinstance(value, _message_class())


@functools.lru_cache  # called for each value of each step
def _message_class() -> type:
    from langchain_core.messages import BaseMessage  # a missing LangGraph is reported by `make_langgraph`

    return BaseMessage


def text_of(message: Any) -> str:
    """The text of a message."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = [one if isinstance(one, str) else one.get("text") for one in content]
    return "".join(part for part in parts if isinstance(part, str))


def parsed(text: Any) -> Any:
    """A tool's result. LangChain converts results to text, so objects and lists are parsed again."""
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def interrupt_text(interrupts: Any) -> str:
    """The values of a graph's interrupts, for the error message."""
    values = [str(getattr(one, "value", one)) for one in interrupts or ()]
    return f": {'; '.join(values)}" if values else ""
