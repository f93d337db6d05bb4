"""Anthropic's messages."""

import json
from typing import Any
from urllib.parse import urlsplit

from atp.base.sse import SseMessage
from atp.models.anthropic_messages import converted
from atp.models.client import Malformed, Refused, Tell, WireModel, count_in, decoded_piece
from atp.models.model import Answer, Ask, Tool, ToolUse
from atp.models.parts import arguments_of
from atp.suite.result import Usage

MOST_TOKENS = 4096
"""The format wants a limit; all its models can write as much as this."""
VERSION = "2023-06-01"
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_STATUS = {"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504}
"""The HTTP statuses of errors that come in the midst of a stream."""
_ABSENT = ("seed", "presence_penalty", "frequency_penalty", "logit_bias", "reasoning_effort", "n", "user")
"""Settings of the other format that this one has no word for."""


class AnthropicModel(WireModel):
    """A model behind a server that speaks Anthropic's format.

    A schema becomes a tool that the model must call, which every model of theirs understands.
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

    def _body(self, ask: Ask, settings: dict[str, Any]) -> dict[str, Any]:
        system, messages = converted(ask.messages)
        settings = {name: value for name, value in settings.items() if name not in _ABSENT}
        if (stop := settings.pop("stop", None)) is not None:
            settings["stop_sequences"] = [stop] if isinstance(stop, str) else stop
        body = {"model": self.name, "max_tokens": MOST_TOKENS, "messages": messages, **settings}
        if system:
            body["system"] = system
        tools = [_tool(tool) for tool in ask.tools]
        if ask.schema is not None:
            name = _answer_name(ask)
            about = "Give the answer. Call this when nothing else is left to do."
            tools.append({"name": name, "description": about, "input_schema": ask.schema})
            body["tool_choice"] = {"type": "any"} if ask.tools else {"type": "tool", "name": name}
        if tools:
            body["tools"] = tools
        return body

    def _read(self, raw: dict[str, Any], ask: Ask) -> Answer:
        if raw.get("type") == "error":
            raise _refused(raw.get("error"))
        try:
            content = raw["content"]
            text = "".join(block["text"] for block in content if block["type"] == "text")
            uses = [_tool_use(block) for block in content if block["type"] == "tool_use"]
        except (KeyError, TypeError) as error:
            raise Malformed("it has no `content` as it should be") from error
        finish = str(raw.get("stop_reason") or "stop")
        finish = _FINISH.get(finish, finish)
        given = [use for use in uses if use.name == _answer_name(ask)] if ask.schema is not None else []
        if given:
            uses = [use for use in uses if use.name != given[0].name]
            text = _as_text(given[0].arguments)
            finish = "stop" if finish == "tool_calls" and not uses else finish
        model = str(raw.get("model") or self.name)
        return Answer(text=text, tool_uses=uses, usage=_usage(raw.get("usage")), finish=finish, model=model)

    def _join(self, ask: Ask, tell: Tell) -> "_Joined":
        return _Joined(tell, None if ask.schema is None else _answer_name(ask))


class _Joined:
    """The events of a stream."""

    def __init__(self, tell: Tell, answer: str | None) -> None:
        self.over = False
        self._tell = tell
        self._answer = answer
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}

    def take(self, message: SseMessage) -> None:
        event = decoded_piece(message)
        try:
            self._take(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise Malformed(f"a piece of it is not as it should be: {message.data[:200]}") from error

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message = dict(event["message"])
            case "content_block_start":
                self._blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._take_delta(event["index"], event["delta"])
            case "message_delta":
                self._message |= event["delta"]
                self._message["usage"] = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
            case "message_stop":
                self.over = True
            case "error":
                raise _refused(event.get("error"))

    def _take_delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        if delta["type"] == "text_delta":
            block["text"] += delta["text"]
            self._tell(delta["text"])
        elif delta["type"] == "input_json_delta":
            self._arguments.setdefault(index, []).append(delta["partial_json"])
            if block.get("name") == self._answer and delta["partial_json"]:
                self._tell(delta["partial_json"])

    def whole(self) -> dict[str, Any]:
        for index, pieces in self._arguments.items():
            self._blocks[index]["input"] = arguments_of("".join(pieces))
        return {**self._message, "content": [self._blocks[index] for index in sorted(self._blocks)]}


def _answer_name(ask: Ask) -> str:
    """What the tool that takes the answer is called: unlike all others."""
    name, taken = "final_answer", {tool.name for tool in ask.tools}
    while name in taken:
        name += "_"
    return name


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _tool_use(block: dict[str, Any]) -> ToolUse:
    return ToolUse(id=str(block["id"]), name=str(block["name"]), arguments=arguments_of(block.get("input", {})))


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _usage(raw: Any) -> Usage:
    read, written = count_in(raw, "input_tokens"), count_in(raw, "output_tokens")
    from_cache, to_cache = count_in(raw, "cache_read_input_tokens"), count_in(raw, "cache_creation_input_tokens")
    if read is not None:  # this format leaves the cache's out of the count
        read += (from_cache or 0) + (to_cache or 0)
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=None if read is None or written is None else read + written,
        cache_read_tokens=from_cache,
        cache_creation_tokens=to_cache,
    )


def _refused(error: Any) -> Refused:
    kind = error.get("type") if isinstance(error, dict) else None
    return Refused(error, _STATUS.get(str(kind)))
