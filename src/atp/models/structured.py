"""Structured answers: requested by a JSON Schema, validated, and asked for once more if they don't fit."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from atp.base.found_json import MISSING, SearchCutShort, read_whole
from atp.base.jsonc import NotJson, no_key_twice
from atp.base.text import cut
from atp.models.model import BadAnswer, ModelAnswer, ModelError, ModelRequest

SHOWN = 300
"""Characters of a bad answer that a message shows."""
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_REJECTED = (400, 404, 415, 422, 501)
"""HTTP statuses with which servers reject a request that has a schema."""

Send = Callable[[ModelRequest], Awaitable[ModelAnswer]]
"""Sends one request. With a schema in the request, the server enforces it; without, only the prompt asks for it."""


class Structured:
    """Asks one model for data, and remembers whether its server accepts a schema."""

    def __init__(self, connector: str, native: bool | None) -> None:
        self._connector = connector
        self._native = native

    async def ask(self, request: ModelRequest, send: Send) -> ModelAnswer:
        """An answer with data, or with tool calls that come before the data. Raises `BadAnswer` and as `send` does."""
        assert request.schema is not None
        check = _validator(request.schema)
        sent, answer = await self._first_answer(request, send)
        if answer.tool_uses:
            return answer
        data, problem = check(answer)
        if problem is not None:
            first = answer
            answer = await _ask_again(sent, first, problem, send)
            answer.usage.add(first.usage)
            data, problem = check(answer)
        if problem is not None:
            raise BadAnswer(
                f"{self._connector}: the answer doesn't have the requested form, also when asked again: {problem}; "
                f"it was: {_shown(answer.text)}",
                usage=answer.usage,
            )
        answer.data = data
        answer.tool_uses = []
        return answer

    async def _first_answer(self, request: ModelRequest, send: Send) -> tuple[ModelRequest, ModelAnswer]:
        """The first answer, and the request that it answers: with the schema, or with the schema in the prompt."""
        assert request.schema is not None
        prompted = with_schema_in_prompt(request)
        # Servers accept schemas of objects only.
        if self._native is False or request.schema.get("type") != "object":
            return prompted, await send(prompted)
        try:
            return request, await send(request)
        except ModelError as error:
            if self._native or error.status not in _REJECTED:
                raise
            answer = await send(prompted)
            self._native = False  # only after this succeeded: the server may have rejected something else
            return prompted, answer


def with_schema_in_prompt(request: ModelRequest) -> ModelRequest:
    """The request with its schema in the system message, for servers that accept no schemas."""
    instruction = (
        "Answer with one JSON value and nothing else: no explanation, no code fence. It must be valid against this "
        f"JSON Schema:\n{json.dumps(request.schema, ensure_ascii=False)}"
    )
    first, *others = request.messages or [{}]
    if first.get("role") == "system":  # servers accept a system message at the beginning, and some only one
        messages = [{**first, "content": _with_text(first.get("content"), instruction)}, *others]
    else:
        messages = [{"role": "system", "content": instruction}, *request.messages]
    return replace(request, messages=messages, schema=None)


def _with_text(content: Any, text: str) -> Any:
    return [*content, {"type": "text", "text": text}] if isinstance(content, list) else f"{content or ''}\n\n{text}"


async def _ask_again(request: ModelRequest, answer: ModelAnswer, problem: str, send: Send) -> ModelAnswer:
    last = [{"role": "assistant", "content": answer.text}] if answer.text.strip() else []
    complaint = f"That is not what was asked for: {problem}. Answer again, with nothing but JSON that has the schema."
    messages = [*request.messages, *last, {"role": "user", "content": complaint}]
    return await send(replace(request, messages=messages, on_text=None))


def _validator(schema: dict[str, Any]) -> Callable[[ModelAnswer], tuple[Any, str | None]]:
    """A function that returns the data in an answer, and what is wrong with it."""
    import jsonschema

    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ModelError(f"the schema of the answer is not a JSON Schema: {error.message}") from error
    validator = kind(schema)

    def check(answer: ModelAnswer) -> tuple[Any, str | None]:
        if answer.tool_uses:
            return None, "a tool was called instead"
        try:
            data = only_json(answer.text)
        except NotJson as error:
            return None, str(error)
        if data is MISSING:
            cut_off = " (it was cut off: `max_tokens` is too low)" if answer.finish == "length" else ""
            return None, f"there is no JSON in it{cut_off}" if answer.text.strip() else f"it is empty{cut_off}"
        wrong = next(iter(validator.iter_errors(data)), None)
        return data, None if wrong is None else f"{wrong.json_path}: {_shown(wrong.message)}"

    return check


def only_json(text: str) -> Any:
    """The JSON in a text: all of it, its only fenced block, or all from the first brace to the last; else `MISSING`.

    Never one of several values: an answer may quote text that an agent wrote in order to be quoted. Raises `NotJson`
    if an object has the same key twice.
    """
    whole = _read(text)
    if whole is not MISSING:
        return whole
    blocks = _FENCED.findall(text)
    if len(blocks) == 1:
        return _read(blocks[0])
    return MISSING if blocks else _read(text[text.find("{") : text.rfind("}") + 1])


def _read(text: str) -> Any:
    try:
        value = read_whole(text)
    except SearchCutShort:
        return MISSING
    if value is not MISSING:
        json.loads(text.strip("\ufeff \t\r\n"), object_pairs_hook=no_key_twice)
    return value


def _shown(text: str) -> str:
    return cut(" ".join(text.split()), SHOWN)
