"""Structured answers: requested by a JSON Schema, validated, and asked for once more if they don't fit."""

import json
import re
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from atp.base.json.comments import NotJson
from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.base.text import cut, words
from atp.models.model import BadAnswer, ModelAnswer, ModelError, ModelRequest

if TYPE_CHECKING:
    import jsonschema

SHOWN = 300
"""Characters of a bad answer that a message shows."""
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*[\w.+-]*\s*")
"""The first line of a code fence, with the language's name; any other words there would be text beside the JSON."""
_BLANKS = "\ufeff \t\r\n"
_REFUSED = ("refusal", "content_filter")
"""Why an answer ended, if what there is of it is not meant as an answer."""
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
        check = _validator(request.schema, request.optional)
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
    instruction = schema_in_words(request.schema)
    first, *others = request.messages or [{}]
    if first.get("role") == "system":  # servers accept a system message at the beginning, and some only one
        messages = [{**first, "content": _with_text(first.get("content"), instruction)}, *others]
    else:
        messages = [{"role": "system", "content": instruction}, *request.messages]
    return replace(request, messages=messages, schema=None)


def schema_in_words(schema: dict[str, Any] | None) -> str:
    """The instruction to answer with JSON that has this schema."""
    return (
        "Answer with one JSON value and nothing else: no explanation, no code fence. It must be valid against this "
        f"JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
    )


def _with_text(content: Any, text: str) -> Any:
    return [*content, {"type": "text", "text": text}] if isinstance(content, list) else f"{content or ''}\n\n{text}"


async def _ask_again(request: ModelRequest, answer: ModelAnswer, problem: str, send: Send) -> ModelAnswer:
    last = [{"role": "assistant", "content": answer.text}] if answer.text.strip() else []
    complaint = f"That is not what was asked for: {problem}. Answer again, with nothing but JSON that has the schema."
    messages = [*request.messages, *last, {"role": "user", "content": complaint}]
    return await send(replace(request, messages=messages, on_text=None))


def _validator(schema: dict[str, Any], optional: frozenset[str]) -> Callable[[ModelAnswer], tuple[Any, str | None]]:
    """A function that returns the data in an answer, and what is wrong with it."""
    validator = _compiled(json.dumps(schema), optional)

    def check(answer: ModelAnswer) -> tuple[Any, str | None]:
        if answer.tool_uses:
            return None, "a tool was called instead"
        if answer.finish in _REFUSED:
            return None, "the model or its server refused to answer"
        try:
            data = only_json(answer.text)
        except NotJson as error:
            return None, str(error)
        if data is MISSING:
            cut_off = " (it was cut off: `max_tokens` is too low)" if answer.finish == "length" else ""
            return None, f"it is not JSON and nothing else{cut_off}" if answer.text.strip() else f"it is empty{cut_off}"
        wrong = next(iter(validator.iter_errors(data)), None)
        return data, None if wrong is None else _violation(wrong)

    return check


@lru_cache(maxsize=32)  # checking a schema takes longer than anything else here, and a role asks always with the same
def _compiled(schema: str, optional: frozenset[str]) -> "jsonschema.protocols.Validator":
    import jsonschema

    wanted = json.loads(schema)
    kind = jsonschema.validators.validator_for(wanted, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(wanted)
    except jsonschema.SchemaError as error:
        raise ModelError(f"the schema of the answer is not a JSON Schema: {error.message}") from error
    return kind(_without_required(wanted, optional))


def _without_required(schema: Any, optional: Collection[str]) -> Any:
    """The schema without `optional` names among its `required` ones.

    Servers enforce a schema only if all keys are required, so the schema that is sent requires them.
    """
    if isinstance(schema, list):
        return [_without_required(one, optional) for one in schema]
    if not optional or not isinstance(schema, dict):
        return schema
    lax = {key: _without_required(value, optional) for key, value in schema.items()}
    if isinstance(schema.get("required"), list):
        lax["required"] = [name for name in schema["required"] if name not in optional]
    return lax


def _violation(error: "jsonschema.ValidationError") -> str:
    """What is wrong, in the schema's words and never the answer's: an answer may repeat what an agent wrote."""
    if error.validator == "required":  # the message names a key of the schema
        what = error.message
    elif error.validator == "additionalProperties":
        what = "there is a key that the schema does not have"
    elif error.validator == "type":
        what = f"it is not of type {error.validator_value!r}"
    else:
        what = f"it breaks the schema's `{error.validator}`"
    return f"{error.json_path}: {what}"


def only_json(text: str) -> Any:
    """The JSON value that a text consists of, alone or in a fenced block; else `MISSING`.

    JSON with any other text beside it is never read: an answer may quote what an agent wrote in order to be quoted.
    Raises `NotJson` if the JSON can't be read for certain: it is too deep, or an object has the same key twice. The
    message has no words of the text's, which may be an agent's.
    """
    try:
        return read_whole(without_fence(text))
    except SearchCutShort as error:
        raise NotJson(str(error)) from error


def without_fence(text: str) -> str:
    """The text without the code fence around all of it, which models often add."""
    first, _, rest = text.strip(_BLANKS).partition("\n")
    body, _, last = rest.rpartition("\n")
    fence = _FENCE.fullmatch(first)
    if fence is None or last.strip() != fence[1]:
        return text
    several = any(line.lstrip().startswith(fence[1]) for line in body.splitlines())
    return text if several else body


def _shown(text: str) -> str:
    return cut(words(text), SHOWN)
