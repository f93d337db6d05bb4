"""Answers as data: asked for by a JSON Schema, checked, and asked for once more if they don't have it."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from atp.base.found_json import MISSING, read_whole
from atp.base.jsonc import NotJson, no_key_twice
from atp.models.model import Answer, Ask, BadAnswer, ModelError

SHOWN = 300
"""So much of a bad answer is shown."""
_FENCED = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_REFUSALS = (400, 404, 415, 422, 501)
"""HTTP statuses with which servers turn down what they don't know."""

Once = Callable[[Ask], Awaitable[Answer]]
"""Asks once. With a schema in what is asked, the server is to see to it; without, the words must do."""


class Structured:
    """Gets data out of one model, and remembers whether its server takes a schema."""

    def __init__(self, connector: str, native: bool | None) -> None:
        self._connector = connector
        self._native = native

    async def ask(self, ask: Ask, once: Once) -> Answer:
        """An answer with data, or with calls of tools that come before it. Raises `BadAnswer` and what `once` does."""
        assert ask.schema is not None
        check = _validator(ask.schema)
        asked, answer = await self._first(ask, once)
        if answer.tool_uses:
            return answer
        data, problem = check(answer)
        if problem is not None:
            first = answer
            answer = await _again(asked, first, problem, once)
            answer.usage.add(first.usage)
            data, problem = check(answer)
        if problem is not None:
            raise BadAnswer(
                f"{self._connector}: the answer is not what was asked for, also when asked again: {problem}; it was: "
                f"{_shown(answer.text)}",
                usage=answer.usage,
            )
        answer.data = data
        answer.tool_uses = []
        return answer

    async def _first(self, ask: Ask, once: Once) -> tuple[Ask, Answer]:
        """The first answer, and the way it was asked for."""
        assert ask.schema is not None
        worded = in_words(ask)
        # Servers take schemas of objects only.
        if self._native is False or ask.schema.get("type") != "object":
            return worded, await once(worded)
        try:
            return ask, await once(ask)
        except ModelError as refused:
            if self._native or refused.status not in _REFUSALS:
                raise
            answer = await once(worded)
            self._native = False  # only now: it may have been something else that the server did not like
            return worded, answer


def in_words(ask: Ask) -> Ask:
    """The same, with the schema in words: for models whose server knows no schemas."""
    wish = (
        "Answer with one JSON value and nothing else: no explanation, no code fence. It must be valid against this "
        f"JSON Schema:\n{json.dumps(ask.schema, ensure_ascii=False)}"
    )
    first, *others = ask.messages or [{}]
    if first.get("role") == "system":  # servers take a system message at the beginning, and some only one
        messages = [{**first, "content": _with(first.get("content"), wish)}, *others]
    else:
        messages = [{"role": "system", "content": wish}, *ask.messages]
    return replace(ask, messages=messages, schema=None)


def _with(content: Any, wish: str) -> Any:
    return [*content, {"type": "text", "text": wish}] if isinstance(content, list) else f"{content or ''}\n\n{wish}"


async def _again(ask: Ask, answer: Answer, problem: str, once: Once) -> Answer:
    said = [{"role": "assistant", "content": answer.text}] if answer.text.strip() else []
    wish = f"That is not what was asked for: {problem}. Answer again, with nothing but JSON that has the schema."
    return await once(replace(ask, messages=[*ask.messages, *said, {"role": "user", "content": wish}], on_text=None))


def _validator(schema: dict[str, Any]) -> Callable[[Answer], tuple[Any, str | None]]:
    """Gives the data in an answer, or what is wrong with it."""
    import jsonschema

    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ModelError(f"the schema of the answer is not a JSON Schema: {error.message}") from error
    validator = kind(schema)

    def check(answer: Answer) -> tuple[Any, str | None]:
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
    """The JSON in a text, or `MISSING`: all of it, its only fenced block, or all from the first brace to the last.

    Never one of several: an answer may quote what it was given, and that may have been made to be quoted. Raises
    `NotJson` if an object in it says the same key twice.
    """
    whole = _read(text)
    if whole is not MISSING:
        return whole
    blocks = _FENCED.findall(text)
    if len(blocks) == 1:
        return _read(blocks[0])
    return MISSING if blocks else _read(text[text.find("{") : text.rfind("}") + 1])


def _read(text: str) -> Any:
    value = read_whole(text)
    if value is not MISSING:
        json.loads(text.strip("\ufeff \t\r\n"), object_pairs_hook=no_key_twice)
    return value


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} … (cut)"
