"""The format of OpenAI's chat completions, which most servers speak: requests and answers translated to and from it."""

import json
from typing import Any
from urllib.parse import urlsplit

from atp.base.sse import SseMessage
from atp.models.client import ErrorInAnswer, HttpModel, MalformedAnswer, OnText, decode_event, token_count
from atp.models.model import ModelAnswer, ModelRequest, Tool, ToolUse
from atp.models.parts import check_parts, read_arguments, read_content
from atp.suite.result import Usage

_FINISH = {"function_call": "tool_calls", "end_turn": "stop", "eos": "stop", "max_tokens": "length"}


class OpenAIModel(HttpModel):
    """A model behind a server that speaks OpenAI's format."""

    type = "openai"

    default_host = "https://api.openai.com/v1"
    default_auth = "bearer"

    def _endpoint(self, host: str) -> str:
        path = urlsplit(host).path
        if path.endswith("/chat/completions"):
            return host
        return f"{host}/chat/completions" if path else f"{host}/v1/chat/completions"

    def _body(self, request: ModelRequest, settings: dict[str, Any]) -> dict[str, Any]:
        for message in request.messages:
            check_parts(message.get("content"))
        if "max_tokens" in settings and self._netloc == "api.openai.com":
            # OpenAI's newer models know only the newer name, the older ones both.
            settings = {**settings, "max_completion_tokens": settings["max_tokens"]}
            del settings["max_tokens"]
        body = {"model": self.name, "messages": [_message(one) for one in request.messages], **settings}
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.schema is not None:
            named = {"name": "answer", "schema": request.schema, "strict": _is_strict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if request.on_text is not None:
            body["stream_options"] = {"include_usage": True}
        return body

    def _read(self, raw: dict[str, Any], request: ModelRequest) -> ModelAnswer:
        if raw.get("error") and not raw.get("choices"):
            raise _error_in(raw["error"])
        try:
            choice = raw["choices"][0]
            message = choice["message"]
            uses = [_tool_use(one, number) for number, one in enumerate(message.get("tool_calls") or [])]
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise MalformedAnswer("`choices[0].message` is missing or not in the format") from error
        content = read_content(message)
        finish = str(choice.get("finish_reason") or "stop")
        return ModelAnswer(
            text="" if content is None else str(content),
            tool_uses=uses,
            usage=_usage(raw.get("usage")),
            finish="tool_calls" if uses and finish == "stop" else _FINISH.get(finish, finish),
            model=str(raw.get("model") or self.name),
        )

    def _stream_reader(self, request: ModelRequest, on_text: OnText) -> "_StreamReader":
        return _StreamReader(on_text)


class _StreamReader:
    """Assembles the chunks of a stream."""

    def __init__(self, on_text: OnText) -> None:
        self.done = False
        self._on_text = on_text
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._extra: dict[str, Any] = {}

    def add(self, message: SseMessage) -> None:
        if message.data.strip() == "[DONE]":
            self.done = True
            return
        chunk = decode_event(message)
        if chunk.get("error"):
            raise _error_in(chunk["error"])
        self._extra |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        try:
            for choice in chunk.get("choices") or []:
                self._finish = choice.get("finish_reason") or self._finish
                self._add_delta(choice.get("delta") or {})
        except (KeyError, TypeError, AttributeError) as error:
            raise MalformedAnswer(f"a chunk is not in the format: {message.data}") from error

    def _add_delta(self, delta: dict[str, Any]) -> None:
        if text := delta.get("content"):
            self._text.append(text)
            self._on_text(text)
        if refusal := delta.get("refusal"):
            self._refusal.append(refusal)
        for piece in delta.get("tool_calls") or []:
            # Some servers send each call whole and leave the index out.
            index = piece.get("index")
            call = self._calls.setdefault(len(self._calls) if index is None else index, {"id": None, "function": {}})
            call["id"] = call["id"] or piece.get("id")
            function = piece.get("function") or {}
            call["function"]["name"] = call["function"].get("name") or function.get("name")
            arguments = function.get("arguments") or ""
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            call["function"]["arguments"] = call["function"].get("arguments", "") + arguments

    def response(self) -> dict[str, Any]:
        message: dict[str, Any] = {
            "content": "".join(self._text) or None,
            "refusal": "".join(self._refusal) or None,
            "tool_calls": [self._calls[index] for index in sorted(self._calls)],
        }
        return {**self._extra, "choices": [{"message": message, "finish_reason": self._finish}]}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """The message without keys of ours (`metadata` …): servers reject keys that they don't know."""
    known = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")
    sent = {key: message[key] for key in known if message.get(key) is not None}
    if sent.get("tool_calls"):
        sent["tool_calls"] = [_tool_call(call) for call in sent["tool_calls"]]
    elif "content" not in sent:
        sent["content"] = ""
    return sent


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": arguments}}


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _tool_use(raw: dict[str, Any], number: int) -> ToolUse:
    function = raw["function"]
    if not isinstance(function["name"], str):
        raise TypeError
    return ToolUse(
        id=str(raw.get("id") or f"call_{number}"),
        name=function["name"],
        arguments=read_arguments(function.get("arguments") or ""),
    )


def _usage(raw: Any) -> Usage:
    read, written = token_count(raw, "prompt_tokens"), token_count(raw, "completion_tokens")
    total = token_count(raw, "total_tokens")
    details = raw.get("prompt_tokens_details") if isinstance(raw, dict) else None
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written if total is None and read is not None and written is not None else total,
        cache_read_tokens=token_count(details, "cached_tokens"),
    )


def _error_in(error: Any) -> ErrorInAnswer:
    code = error.get("code") if isinstance(error, dict) else None
    return ErrorInAnswer(error, code if isinstance(code, int) else None)


def _is_strict(schema: Any) -> bool:
    """True if a schema keeps the rules of strict mode: every object is closed and requires all its properties."""
    if isinstance(schema, list):
        return all(_is_strict(one) for one in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != properties:
            return False
    return all(_is_strict(value) for key, value in schema.items() if key not in ("enum", "const", "default"))
