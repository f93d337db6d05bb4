"""The two wire formats from the server's side: what the mock server reads, refuses and writes."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tests.models.mock_server import Says

Format = Literal["openai", "anthropic"]
PIECE = 7
"""Characters in a piece of a stream: a word and a bit, so that pieces end anywhere."""


def text_of(content: Any) -> str:
    """The words of a content: text, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = [one for one in content or [] if isinstance(one, dict)]
    return "\n".join(str(one["text"]) for one in parts if one.get("type") == "text")


def tool_results(form: Format, messages: list[dict[str, Any]]) -> list[str]:
    """The texts of the results of tools."""
    if form == "openai":
        return [text_of(one.get("content")) for one in messages if one["role"] == "tool"]
    blocks = [block for one in messages for block in _blocks(one)]
    return [text_of(block.get("content")) for block in blocks if block["type"] == "tool_result"]


def schema_of(form: Format, body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema that the format's own means ask for."""
    if form == "openai":
        wanted = body.get("response_format", {})
        return wanted["json_schema"]["schema"] if wanted.get("type") == "json_schema" else None
    if (format_ := body.get("output_config", {}).get("format")) is not None:
        found: dict[str, Any] = format_["schema"]
        return found
    answer = _answer_tool(body)
    return answer["input_schema"] if answer else None


def _answer_tool(body: dict[str, Any]) -> dict[str, Any] | None:
    """The tool that Anthropic's format is forced to answer with: the one named, or the last if any will do."""
    choice: dict[str, Any] = body.get("tool_choice", {})
    tools: list[dict[str, Any]] = body.get("tools", [])
    if choice.get("type") == "tool":
        return next(one for one in tools if one["name"] == choice["name"])
    return tools[-1] if choice.get("type") == "any" else None


def complaint(form: Format, body: dict[str, Any]) -> str | None:
    """What the real server would refuse the request for."""
    if not isinstance(body.get("model"), str) or not isinstance(body.get("messages"), list):
        return "you must provide a model and messages"
    return _openai_complaint(body) if form == "openai" else _anthropic_complaint(body)


def _openai_complaint(body: dict[str, Any]) -> str | None:
    open_calls: set[str] = set()
    for number, message in enumerate(body["messages"]):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return f"messages[{number}].role: `{role}` is not one of system, developer, user, assistant, tool"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return f"messages[{number}]: 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            return f"messages[{number}]: these tool_call_ids did not have response messages: {sorted(open_calls)}"
        tool_calls = message.get("tool_calls") or []
        if any(not isinstance(one["function"]["arguments"], str) for one in tool_calls):
            return f"messages[{number}].tool_calls: arguments must be a string"
        open_calls = {one["id"] for one in tool_calls}
        if message.get("content") is None and not tool_calls:
            return f"messages[{number}].content: expected a string or a list, got null"
    if "tools" in body and any(one.get("type") != "function" for one in body["tools"]):
        return "tools: expected type `function`"
    return None


def _anthropic_complaint(body: dict[str, Any]) -> str | None:
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    if not body["messages"]:
        return "messages: at least one message is required"
    open_uses: set[str] = set()
    for number, message in enumerate(body["messages"]):
        if message.get("role") not in ("user", "assistant"):
            return f'messages.{number}: Unexpected role "{message.get("role")}"'
        blocks = _blocks(message)
        results = {one["tool_use_id"] for one in blocks if one["type"] == "tool_result"}
        if results != open_uses:
            return f"messages.{number}: `tool_use` ids and `tool_result` blocks don't match: {results ^ open_uses}"
        open_uses = {one["id"] for one in blocks if one["type"] == "tool_use"}
        if any(one["type"] == "text" and not one["text"].strip() for one in blocks) or not blocks:
            return f"messages.{number}: text content blocks must be non-empty"
        if problem := next((found for one in blocks if (found := _block_complaint(one))), None):
            return f"messages.{number}: {problem}"
    return None


def _block_complaint(block: dict[str, Any]) -> str | None:
    kind = block["type"]
    if kind not in ("text", "image", "document", "tool_use", "tool_result"):
        return f"`{kind}` is not a known block"
    if kind == "tool_use" and not isinstance(block["input"], dict):
        return "tool_use.input: Input should be a valid dictionary"
    if kind in ("image", "document") and block["source"]["type"] not in ("base64", "url", "text"):
        return f"{kind}.source.type: unknown"
    return None


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def error(form: Format, status: int, message: str) -> dict[str, Any]:
    """An error's body."""
    if form == "openai":
        return {"error": {"message": message, "type": "error", "param": None, "code": None}}
    kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"}


@dataclass
class Message:
    """An answer, ready to be written whole or as a stream."""

    form: Format
    body: dict[str, Any]
    text: str
    calls: list[tuple[str, str]]
    """Names, and arguments as JSON text."""
    finish: str
    tokens: tuple[int, int, int, int]
    """Read (all), written, of the first read from the cache and written to it."""

    @classmethod
    def of(cls, form: Format, body: dict[str, Any], answer: "Says") -> "Message":
        """The answer to this request."""
        text = answer.text if answer.data is None else json.dumps(answer.data, ensure_ascii=False)
        tool_calls = [
            (name, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
            for name, given in answer.calls
        ]
        tool = _answer_tool(body) if form == "anthropic" else None
        if tool is not None and not tool_calls and _is_object(text):
            text, tool_calls = "", [(tool["name"], text)]
        finish = answer.finish or ("tool_calls" if tool_calls else "stop")
        read = answer.input_tokens
        if read is None:
            read = len((text_of(body.get("system")) + " " + " ".join(_words(body["messages"]))).split())
        written = len(text.split()) + sum(len(given.split()) for _, given in tool_calls)
        return cls(form, body, text, tool_calls, finish, (read, written, answer.cache_read, answer.cache_written))

    def whole(self) -> dict[str, Any]:
        """The body of an answer that isn't streamed."""
        return self._openai() if self.form == "openai" else self._anthropic()

    def stream(self) -> bytes:
        """The body of a streamed answer."""
        return self._openai_stream() if self.form == "openai" else self._anthropic_stream()

    @property
    def _model(self) -> str:
        return f"{self.body['model']}-mock"

    def _openai(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": given}}
                for number, (name, given) in enumerate(self.calls)
            ]
        return {
            "id": "chatcmpl-mock",
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self._openai_usage(),
        }

    def _openai_usage(self) -> dict[str, Any]:
        read, written, cached, _ = self.tokens
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    def _openai_stream(self) -> bytes:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in _pieces(self.text)]
        for index, (name, given) in enumerate(self.calls):
            head = {"index": index, "id": f"call_{index}", "type": "function"}
            deltas.append({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]})
            deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in _pieces(given)]
        base = {"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 0, "model": self._model}
        chunks = [{**base, "choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in deltas]
        chunks.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        if self.body.get("stream_options", {}).get("include_usage"):
            chunks.append({**base, "choices": [], "usage": self._openai_usage()})
        return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in chunks) + b"data: [DONE]\n\n"

    def _anthropic(self) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": self.text}] if self.text else []
        for number, (name, given) in enumerate(self.calls):
            content.append({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": _loose(given)})
        return {
            "id": "msg_mock",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": self._stop_reason,
            "stop_sequence": None,
            "usage": self._anthropic_usage(),
        }

    @property
    def _stop_reason(self) -> str:
        return {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[self.finish]

    def _anthropic_usage(self) -> dict[str, Any]:
        read, written, cached, made = self.tokens
        return {
            "input_tokens": read - cached - made,
            "output_tokens": written,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": made,
        }

    def _anthropic_stream(self) -> bytes:
        start = {**self._anthropic(), "content": [], "stop_reason": None}
        start["usage"] = {**self._anthropic_usage(), "output_tokens": 1}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if self.text:
            text_deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(self.text)]
            blocks.append(({"type": "text", "text": ""}, text_deltas))
        for number, (name, given) in enumerate(self.calls):
            head = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
            blocks.append((head, [{"type": "input_json_delta", "partial_json": one} for one in _pieces(given)]))
        for index, (block, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": self._stop_reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": self.tokens[1]}})
        events.append({"type": "message_stop"})
        return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def _pieces(text: str) -> list[str]:
    return [text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)]


def _words(messages: list[dict[str, Any]]) -> list[str]:
    return [text_of(one.get("content")) for one in messages]


def _is_object(text: str) -> bool:
    return isinstance(_loose(text), dict)


def _loose(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
