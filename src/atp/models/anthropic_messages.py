"""A conversation in the form of OpenAI's chat completions, turned into Anthropic's."""

from typing import Any

from atp.models.model import ModelError
from atp.models.parts import arguments_of, blocks

BEGINNING = "(the conversation begins)"
"""Anthropic's format wants a user to speak first."""


def converted(messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The system's words and the rest of the conversation, users and assistants taking turns. Raises `ModelError`."""
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            system += [block["text"] for block in blocks(message.get("content")) if block["type"] == "text"]
            continue
        speaker = "assistant" if role == "assistant" else "user"
        said = _said(message)
        if turns and turns[-1]["role"] == speaker:
            turns[-1]["content"] += said
        elif said:
            turns.append({"role": speaker, "content": said})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
    return "\n\n".join(system), turns


def _said(message: dict[str, Any]) -> list[dict[str, Any]]:
    match message.get("role"):
        case "user":
            return blocks(message.get("content"))
        case "assistant":
            return blocks(message.get("content")) + [_tool_use(call) for call in message.get("tool_calls") or []]
        case "tool":
            content = blocks(message.get("content"))
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
            return [{**result, "content": content} if content else result]
        case role:
            raise ModelError(f"a message has the role `{role}`, which models don't know")


def _tool_use(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    given = arguments_of(function.get("arguments") or {})
    # A model's own broken arguments come back in the only form that this format has.
    wrapped = given if isinstance(given, dict) else {"arguments": given}
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": wrapped}
