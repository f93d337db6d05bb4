"""The format of Anthropic's messages: requests and answers translated to and from it."""

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from atp.base.sse import SseMessage
from atp.models.client import ErrorInAnswer, HttpModel, MalformedAnswer, OnText, decode_event, token_count
from atp.models.model import ModelAnswer, ModelError, ModelRequest, Tool, ToolUse
from atp.models.parts import check_parts, read_arguments, read_data_url
from atp.suite.result import Usage

MAX_TOKENS = 4096
"""The format requires a limit; all of Anthropic's models can write this much."""
VERSION = "2023-06-01"
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_STATUS = {"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504}
"""The HTTP statuses of errors that are sent inside a stream."""
_ABSENT = ("seed", "presence_penalty", "frequency_penalty", "logit_bias", "reasoning_effort", "n", "user")
"""Settings of OpenAI's format that Anthropic's lacks."""

BEGINNING = "(the conversation begins)"
"""Put before a conversation that begins with the assistant: the format requires a user's message first."""


class AnthropicModel(HttpModel):
    """A model behind a server that speaks Anthropic's format.

    A schema becomes a tool that the model must call, which every model of Anthropic's understands.
    """

    type = "anthropic"

    default_host = "https://api.anthropic.com"
    default_auth = "x-api-key"

    def _endpoint(self, host: str) -> str:
        path = urlsplit(host).path
        if path.endswith("/messages"):
            return host
        return f"{host}/messages" if path.endswith("/v1") else f"{host}/v1/messages"

    def _format_headers(self) -> dict[str, str]:
        return {**super()._format_headers(), "anthropic-version": VERSION}

    def _body(self, request: ModelRequest, settings: dict[str, Any]) -> dict[str, Any]:
        system, messages = _converted(request.messages)
        settings = {name: value for name, value in settings.items() if name not in _ABSENT}
        if (stop := settings.pop("stop", None)) is not None:
            settings["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        body = {"model": self.name, "max_tokens": MAX_TOKENS, "messages": messages, **settings}
        if system:
            body["system"] = system
        tools = [_tool(tool) for tool in request.tools]
        if request.schema is not None:
            name = _answer_tool(request)
            about = "Give the answer. Call this when nothing else is left to do."
            tools.append({"name": name, "description": about, "input_schema": request.schema})
            body["tool_choice"] = {"type": "any"} if request.tools else {"type": "tool", "name": name}
        if tools:
            body["tools"] = tools
        return body

    def _read(self, raw: dict[str, Any], request: ModelRequest) -> ModelAnswer:
        if raw.get("type") == "error":
            raise _error_in(raw.get("error"))
        try:
            content = raw["content"]
            text = "".join(block["text"] for block in content if block["type"] == "text")
            uses = [_tool_use(block) for block in content if block["type"] == "tool_use"]
        except (KeyError, TypeError) as error:
            raise MalformedAnswer("`content` is missing or not in the format") from error
        finish = str(raw.get("stop_reason") or "stop")
        finish = _FINISH.get(finish, finish)
        answers = [use for use in uses if use.name == _answer_tool(request)] if request.schema is not None else []
        if answers:
            uses = [use for use in uses if use.name != answers[0].name]
            text = "\n".join(_as_text(one.arguments) for one in answers)  # several are no answer, whichever is meant
            finish = "stop" if finish == "tool_calls" and not uses else finish
        model = str(raw.get("model") or self.name)
        return ModelAnswer(text=text, tool_uses=uses, usage=_usage(raw.get("usage")), finish=finish, model=model)

    def _stream_reader(self, request: ModelRequest, on_text: OnText) -> "_StreamReader":
        return _StreamReader(on_text, None if request.schema is None else _answer_tool(request))


class _StreamReader:
    """Assembles the events of a stream."""

    def __init__(self, on_text: OnText, answer_tool: str | None) -> None:
        self.done = False
        self._on_text = on_text
        self._answer_tool = answer_tool
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}

    def add(self, message: SseMessage) -> None:
        event = decode_event(message)
        try:
            self._add(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedAnswer(f"an event is not in the format: {message.data}") from error

    def _add(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._add_delta(event["index"], event["delta"])
            case "message_delta":
                self._message |= event["delta"]
                self._message["usage"] = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
            case "message_stop":
                self.done = True
            case "error":
                raise _error_in(event.get("error"))

    def _add_delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        if delta["type"] == "text_delta":
            block["text"] += delta["text"]
            self._on_text(delta["text"])
        elif delta["type"] == "input_json_delta":
            self._arguments.setdefault(index, []).append(delta["partial_json"])
            if block.get("name") == self._answer_tool and delta["partial_json"]:
                self._on_text(delta["partial_json"])

    def response(self) -> dict[str, Any]:
        for index, pieces in self._arguments.items():
            self._blocks[index]["input"] = read_arguments("".join(pieces))
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}


def _answer_tool(request: ModelRequest) -> str:
    """The name of the tool that takes the structured answer, unlike all other tools' names."""
    name, taken = "final_answer", {tool.name for tool in request.tools}
    while name in taken:
        name += "_"
    return name


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _tool_use(block: dict[str, Any]) -> ToolUse:
    return ToolUse(id=str(block["id"]), name=str(block["name"]), arguments=read_arguments(block.get("input", {})))


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _usage(raw: Any) -> Usage:
    read, written = token_count(raw, "input_tokens"), token_count(raw, "output_tokens")
    from_cache, to_cache = token_count(raw, "cache_read_input_tokens"), token_count(raw, "cache_creation_input_tokens")
    if read is not None:  # this format doesn't count tokens of the cache as input
        read += (from_cache or 0) + (to_cache or 0)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=None if read is None or written is None else read + written,
        cache_read_tokens=from_cache,
        cache_creation_tokens=to_cache,
    )


def _error_in(error: Any) -> ErrorInAnswer:
    kind = error.get("type") if isinstance(error, dict) else None
    return ErrorInAnswer(error, _STATUS.get(str(kind)))


def _converted(messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The system prompt, and the conversation with alternating users and assistants. Raises `ModelError`."""
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = message.get("role")
        if role in ("system", "developer"):
            system += [block["text"] for block in _blocks(message.get("content")) if block["type"] == "text"]
            continue
        speaker = "assistant" if role == "assistant" else "user"
        content = _content(message)
        if turns and turns[-1]["role"] == speaker:
            turns[-1]["content"] += content
        elif content:
            turns.append({"role": speaker, "content": content})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
    return "\n\n".join(system), turns


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    match message.get("role"):
        case "user":
            return _blocks(message.get("content"))
        case "assistant":
            return _blocks(message.get("content")) + [_tool_use_block(call) for call in message.get("tool_calls") or []]
        case "tool":
            content = _blocks(message.get("content"))
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
            return [{**result, "content": content} if content else result]
        case role:
            raise ModelError(f"a message has the role `{role}`, which models don't know")


def _tool_use_block(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = read_arguments(function.get("arguments") or {})
    # Arguments that the model wrote as broken JSON are sent back in an object: the format has no other form.
    wrapped = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": wrapped}


def _blocks(content: Any) -> list[dict[str, Any]]:
    """The content blocks of a message, without blank text, which the server rejects. Raises `ModelError`."""
    check_parts(content)
    if content is None or isinstance(content, str):
        content = [{"type": "text", "text": content or ""}]
    found = [_block(part) for part in content]
    return [block for block in found if block["type"] != "text" or block["text"].strip()]


def _block(part: dict[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image_url":
            image = part["image_url"]
            return {"type": "image", "source": _source(image["url"] if isinstance(image, dict) else image)}
        case "file":
            return _document(part["file"])
        case "input_audio":
            raise ModelError("a message has a recording in it, which Anthropic's models don't take")
        case kind:  # text, or a refusal, which is text too
            return {"type": "text", "text": str(part.get(kind) or "")}


def _source(url: str) -> dict[str, Any]:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, content = read_data_url(url)
    return {"type": "base64", "media_type": kind, "data": base64.b64encode(content).decode()}


def _document(file: dict[str, Any]) -> dict[str, Any]:
    name = file.get("filename")
    title = {"title": name} if name else {}
    kind, content = read_data_url(str(file.get("file_data", "")))
    if kind == "application/pdf":
        source = {"type": "base64", "media_type": kind, "data": base64.b64encode(content).decode()}
        return {"type": "document", "source": source, **title}
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the file {name or 'in a message'} is neither text nor PDF ({kind}): Anthropic's models take no other"
        ) from error
    return {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}, **title}
