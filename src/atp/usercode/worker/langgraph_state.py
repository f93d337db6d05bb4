"""What goes into a graph's state, and what its last state answers."""

from __future__ import annotations

import functools
import json
from typing import Any

from ..json_values import jsonable
from .drivers import PROMPT_KEYS


def _input_schema(graph: Any) -> dict[str, Any]:
    """The JSON Schema of what a graph takes, as far as it can be told.

    Before Python 3.12 there is none for a state that is a plain `typing.TypedDict`; its keys are known all the same.
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


class Entrance:
    """How a graph wants to be asked."""

    def __init__(self, graph: Any) -> None:
        schema = _input_schema(graph)
        self._keys = list(schema.get("properties", {}))
        self._form = schema.get("type")

    def take(self, messages: list[dict[str, Any]], prompt: str, task: dict[str, Any]) -> Any:
        """What to run the graph with: messages, or the prompt under a key of its state; and the task's data."""
        if self._form == "string":
            return prompt
        if self._form == "array":
            return _messages(messages)
        data = task.get("input_data") or {}
        given = {key: value for key, value in data.items() if key in self._keys and key != "messages"}
        if "messages" in self._keys or not self._keys:
            return {**given, "messages": _messages(messages)}
        for key in PROMPT_KEYS:
            if key in self._keys:
                return {key: prompt, **given}
        if not given:
            raise ValueError(
                f"the graph's state has no `messages` and nothing else that takes the prompt: it has "
                f"{', '.join(self._keys)}; give them in the task's `input_data`"
            )
        return given

    def left_out(self, task: dict[str, Any]) -> list[str]:
        """Those of the task's data that the graph has no place for."""
        known = self._keys if self._form not in ("string", "array") else []
        return [key for key in task.get("input_data") or {} if key not in known or key == "messages"]


def _messages(messages: list[dict[str, Any]]) -> list[Any]:
    from langchain_core.messages import convert_to_messages

    return convert_to_messages([_message(one) for one in messages])


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """A message in the form that LangChain reads: OpenAI's, with a content in any case."""
    known = ("role", "content", "name", "tool_calls", "tool_call_id")
    read = {key: message[key] for key in known if key in message}
    return {**read, "content": read.get("content") or ""}


def answer_of(state: Any) -> Any:
    """The answer in a graph's last state: what it said last, or all of it if it doesn't talk."""
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
    """Whether something is a message of LangChain's."""
    return isinstance(value, _message_class())


@functools.lru_cache  # it is asked for each value of each step
def _message_class() -> type:
    from langchain_core.messages import BaseMessage  # where there is none, that is said when the graph is loaded

    return BaseMessage


def text_of(message: Any) -> str:
    """A message's words."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = [one if isinstance(one, str) else one.get("text") for one in content]
    return "".join(part for part in parts if isinstance(part, str))


def parsed(text: Any) -> Any:
    """A tool's result: LangChain makes texts of all of them, so objects and lists are read back."""
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def in_words(interrupts: Any) -> str:
    """What a graph asks a person."""
    values = [str(getattr(one, "value", one))[:200] for one in interrupts or ()]
    return f": {'; '.join(values)}" if values else ""
