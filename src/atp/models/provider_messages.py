"""Translates a conversation in the form of OpenAI's chat completions to pydantic-ai's messages.

A module of its own, because importing this module imports pydantic-ai.
"""

from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from atp.models.model import ModelError, Tool
from atp.models.parts import check_parts, read_arguments, read_data_url


def parameters(offered: list[Tool]) -> ModelRequestParameters:
    """The tools that the model may call."""
    tools = [
        ToolDefinition(name=one.name, description=one.description or None, parameters_json_schema=one.parameters)
        for one in offered
    ]
    return ModelRequestParameters(function_tools=tools, allow_text_output=True)


def requests(messages: list[dict[str, Any]]) -> list[ModelMessage]:
    """The conversation. Raises `ModelError`."""
    found: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            calls = message.get("tool_calls") or []
            names |= {call["id"]: call["function"]["name"] for call in calls}
            found.append(ModelResponse(parts=_response_parts(message, calls)))
            continue
        part = _request_part(message, names)
        if found and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest(parts=[*found[-1].parts, part])
        else:
            found.append(ModelRequest(parts=[part]))
    return found


def _response_parts(message: dict[str, Any], calls: list[dict[str, Any]]) -> list[ModelResponsePart]:
    text = _text(message.get("content"))
    parts: list[ModelResponsePart] = [TextPart(text)] if text else []
    for call in calls:
        arguments = read_arguments(call["function"].get("arguments") or {})
        parts.append(ToolCallPart(tool_name=call["function"]["name"], args=arguments, tool_call_id=call["id"]))
    return parts


def _request_part(message: dict[str, Any], names: dict[str, str]) -> ModelRequestPart:
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            return SystemPromptPart(_text(content))
        case "user":
            return UserPromptPart(content or "" if isinstance(content, str | None) else _contents(content))
        case "tool":
            call = str(message.get("tool_call_id"))
            return ToolReturnPart(tool_name=names.get(call, "tool"), content=_text(content), tool_call_id=call)
        case role:
            raise ModelError(f"a message has the role `{role}`, which models don't know")


def _contents(parts: list[dict[str, Any]]) -> list[UserContent]:
    check_parts(parts)
    return [_content(part) for part in parts]


def _content(part: dict[str, Any]) -> UserContent:
    match part["type"]:
        case "image_url":
            image = part["image_url"]
            url = image["url"] if isinstance(image, dict) else image
            return _binary(url) if url.startswith("data:") else ImageUrl(url=url)
        case "file":
            return _binary(str(part["file"].get("file_data", "")))
        case "input_audio":
            audio = part["input_audio"]
            return _binary(f"data:audio/{audio['format']};base64,{audio['data']}")
        case kind:
            return str(part.get(kind) or "")


def _binary(url: str) -> BinaryContent:
    kind, content = read_data_url(url)
    return BinaryContent(data=content, media_type=kind)


def _text(content: Any) -> str:
    check_parts(content)
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if part["type"] == "text")
    return content or ""
