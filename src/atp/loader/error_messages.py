"""Words pydantic's errors in the file's own terms: a stable code, a sentence, a hint."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import ErrorDetails

from atp.base.near import meant_key, near_miss
from atp.base.numbers import is_number
from atp.base.text import cut


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake. The caller knows its path."""

    code: str
    message: str
    hint: str | None = None
    at_key: bool = False
    """The mistake is in the key, not in its value."""
    meant: str = ""
    """The known key that an unknown key probably stands for."""
    below: tuple[str, ...] = ()
    """Further steps of the path, if the mistake is inside the value."""
    wrong_type: "WrongType | None" = None
    """What the message of a value of the wrong type is made of."""


@dataclass(frozen=True, slots=True)
class WrongType:
    """A value of the wrong type: what it is, and what it must be."""

    named: str
    expected: tuple[str, ...]
    found: str

    def mistake(self, hint: str | None) -> Mistake:
        """The mistake that names all expected types."""
        message = f"{self.named} must be {' or '.join(self.expected)}, found {self.found}"
        return Mistake("wrong-type", message, hint, wrong_type=self)


def either(one: Mistake, other: Mistake) -> Mistake:
    """Two mistakes about the type of one value in one: the value may be of either type."""
    first, second = one.wrong_type, other.wrong_type
    if first is None or second is None:
        return one
    expected = tuple(dict.fromkeys((*first.expected, *second.expected)))
    return one if expected == first.expected else replace(first, expected=expected).mistake(one.hint or other.hint)


class CommandText(str):
    """Text of the command line or the environment, where every value is text: messages need not say so."""

    __slots__ = ()


def describe(value: Any) -> str:
    """The value for a message: its type and, if short, the value itself."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number {cut(str(value), 40)}"
        case CommandText():
            return repr(cut(value, 40))
        case str():
            return f"the text {cut(value, 40)!r}"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return type(value).__name__


_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "number": "a number",
    "messages": "text, a message or a list of messages",
    "model_attributes": "a mapping with `type`",
}
_EXAMPLES = {
    "int": "write a whole number, for example 3",
    "float": "write a number, for example 0.5",
    "number": "write a number, for example 3",
    "bool": "write true or false",
    "list": 'write a list, for example ["a", "b"]',
    "dict": 'write keys and values, for example {"a": 1}',
    "model": "write it with keys and values",
    "string": "write it as one text",
    "messages": 'write the user\'s words, or [{"role": "user", "content": "…"}]',
}
_ASSERTION_KEYS = ("assertions", "assert", "assertion")
_WITH_TYPE = {
    "agents": '{"name": "…", "type": "custom", "config": {"entry": "agent.py:answer"}}',
    "content": '{"type": "text", "text": "…"}',
}


def _as_assertion(value: Any) -> str:
    """A valid assertion for a hint, made from text such as `contains x`."""
    kind, _, rest = value.partition(" ") if isinstance(value, str) else ("", "", "")
    if kind not in ("contains", "not_contains", "equals", "regex", "tool_called", "not_tool_called"):
        kind, rest = "contains", ""
    return json.dumps({"type": kind, "value": rest.strip() or "…"}, ensure_ascii=False)


def _example(what: str, key: str, value: Any) -> str:
    if what in ("model_attributes", "list") and key in _ASSERTION_KEYS:
        return f"write it as {_as_assertion(value)}"
    if what == "model_attributes":
        return f"write it as {_WITH_TYPE.get(key, 'keys and values, `type` among them')}"
    if what == "string" and isinstance(value, int | float):
        return f"put it in quotes: {json.dumps(json.dumps(value))}"
    if what == "list" and isinstance(value, str):
        return f"write it as a list: {json.dumps([value], ensure_ascii=False)}"
    return _EXAMPLES.get(what, "write it in another form")


def _wrong_type(what: str, key: str, value: Any, is_item: bool) -> Mistake:
    expected = _EXPECTED.get(what, f"a {what.replace('_', ' ')}")
    if what == "list" and key in _ASSERTION_KEYS:
        expected = f"{_EXPECTED['model_attributes']}, or a list of them"
    if value is None:
        return Mistake(
            "empty", f"`{key}` is empty: it must be {expected}", "give it a value or leave the key out", True
        )
    named = f"an item of `{key}`" if is_item else f"`{key}`"
    return WrongType(named, (expected,), describe(value)).mistake(_example(what, key, value))


_RANGE = {
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "string_too_long": "at most {max_length} characters long",
}
_RANGE_HINTS = {
    "greater_than_equal": "give {ge:g} or more",
    "greater_than": "give more than {gt:g}",
    "less_than_equal": "give a number from {least} to {le:g}",
    "less_than": "give less than {lt:g}",
    "string_too_long": "shorten it",
}
_LEAST = {65535: 1}
"""The lower end of a range by its upper end, where the lower end is not 0."""
_HINTS = {
    "weights_sum": "a weight that is not given is quality 0.4, completeness 0.3, efficiency 0.2 or cost 0.1",
    "regex": "put a backslash before a character such as ( [ * + ? that stands for itself",
    "json_path": "write the way to a value, for example $.items[0].name",
    "duration": 'write a number of seconds, or text like "30s"',
    "given_twice": "remove one of them",
}
_EMPTY = ("empty", "is empty", "give it a value or leave the key out")
_FIXED = {
    "string_too_short": _EMPTY,
    "too_short": _EMPTY,
    "string_unicode": ("not-utf8", "is not Unicode: {}", "write it in UTF-8; if it is a name, choose another"),
}
"""Errors with a fixed message: code, message and hint."""
_PATTERNS: dict[str, tuple[str, str | None]] = {
    r"^https?://.+": ("an address that begins with http:// or https://", "write it in full: http://localhost:8000"),
    r"^/": ("a path that begins with /", "write it from the root, for example /data"),
    r"^[0-9a-fA-F]{64}$": ("64 hexadecimal digits", "sha256sum prints those of a file"),
}
"""What a value that matches the pattern is called, and a hint."""


_IN_A_FILE = "write `type: artifact_exists` with `path`, and `contains` or `matches`"
_JUDGED = "write `type: llm_eval` with `criteria`"
_BEHAVIOR = "write `type: behavior` with `check: {}`"
_OTHER_TOOLS_TYPES = {
    ("assertion", "file_exists"): "write `type: artifact_exists` with `path`",
    ("assertion", "file_contains"): _IN_A_FILE,
    ("assertion", "artifact_contains"): _IN_A_FILE,
    ("assertion", "contains_keyword"): "write `type: contains` with `value`",
    ("assertion", "not_contains_keyword"): "write `type: not_contains` with `value`",
    ("assertion", "icontains"): "write `type: contains` with `ignore_case: true`",
    **{("assertion", name): _JUDGED for name in ("llm_judge", "llm_rubric", "model_graded", "g_eval")},
    **{
        ("assertion", name): _BEHAVIOR.format(name)
        for name in ("no_errors", "no_repeated_actions", "efficient_tool_use")
    },
    **{
        ("agent", name): "write `type: custom` with `config: {entry: file.py:function}`"
        for name in ("python", "function", "callable")
    },
    **{
        ("agent", name): "write `type: cli` with `config: {command: …}`"
        for name in ("command", "shell", "process", "exec")
    },
    **{("agent", name): "write `type: http` with `config: {endpoint: …}`" for name in ("url", "rest", "api")},
}
"""How ATP writes what other tools have a `type` of another name for."""
_OTHER_TOOLS_KEYS = {
    "tool": "name",
    "args": "arguments",
    "prompt": "criteria",
    "rubric": "criteria",
    "workspace_fixture": "workspace",
    "allowed_env_vars": "environment",
}
"""Keys of other tools, and ATP's key of the same meaning, where a record has it."""


def _options(context: dict[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected") or ""))


def _out_of_range(kind: str, key: str, value: Any, context: dict[str, Any]) -> Mistake:
    message = f"`{key}` must be {_RANGE[kind].format(**context)}, found {describe(value)}"
    hint = _RANGE_HINTS[kind].format(**context, least=_LEAST.get(context.get("le", 0), 0))
    if context.get("le") == 1 and is_number(value) and 1 < value <= 100:
        hint += f": `{value / 100:g}`, if {value:g} % is meant"
    return Mistake("out-of-range", message, hint)


def _unknown_type(key: str, context: dict[str, Any]) -> Mistake:
    options = _options(context)
    tag = str(context.get("tag"))
    family = "assertion" if "equals" in options else "agent" if "custom" in options else "part"
    other = _OTHER_TOOLS_TYPES.get((family, tag.lower().replace("-", "_")))
    meant = None if other else near_miss(tag, options)
    hint = other or (f"did you mean `{meant}`?" if meant else f"one of: {', '.join(sorted(options))}")
    return Mistake(f"unknown-{family}", f"unknown {family} type `{tag}`", hint, below=("type",))


def _bad_value(key: str, value: Any, context: dict[str, Any]) -> Mistake:
    options = _options(context)
    meant = near_miss(value, options) if isinstance(value, str) else None
    hint = f"did you mean `{meant}`?" if meant else f"one of: {', '.join(options)}"
    code = "unknown-check" if key == "check" else "bad-value"
    return Mistake(code, f"`{key}` cannot be {describe(value)}", hint)


def unknown_key(key: str, known: Iterable[str]) -> Mistake:
    """The mistake for a key that is not among the known ones."""
    known = sorted(known)
    other = _OTHER_TOOLS_KEYS.get(key)
    if key in ("path", "artifact") and "value" in known and "negate" in known and "path" not in known:
        return Mistake("unknown-key", f"unknown key `{key}`", f"to look into a file, {_IN_A_FILE}", True)
    meant = other if other in known else meant_key(key, known)
    own = "; what belongs to its type goes under `config`" if {"config", "type"} <= set(known) else ""
    hint = f"did you mean `{meant}`?" if meant else f"known here: {', '.join(known)}{own}"
    return Mistake("unknown-key", f"unknown key `{key}`", hint, True, meant or "")


def mistake_of(
    error: ErrorDetails, key: str, value: Any, spellings: Callable[[], dict[str, str]], *, is_item: bool = False
) -> Mistake:
    """The mistake that a pydantic error stands for, at `key` or at an item of its list, with its `value`.

    `spellings` returns the known keys of the record, each with the name of its field.
    """
    kind, context = error["type"], error.get("ctx") or {}
    if kind == "missing":
        return Mistake("missing-key", f"`{key}` is missing", f"add `{key}`", True)
    if kind == "extra_forbidden":
        known = spellings()
        if key in known:  # the other spelling of the same key was taken
            other = next((one for one in known if known[one] == known[key] and one != key), known[key])
            message = f"`{key}` and `{other}` mean the same: give one of them"
            return Mistake("both-spellings", message, f"remove `{key}`, and keep `{other}`", True)
        return unknown_key(key, known)
    if kind in ("union_tag_invalid", "literal_error"):
        return _unknown_type(key, context) if kind == "union_tag_invalid" else _bad_value(key, value, context)
    if kind == "union_tag_not_found" and not isinstance(value, str):
        return Mistake("missing-key", "`type` is missing", "add `type`", below=("type",))
    if kind in _RANGE:
        return _out_of_range(kind, key, value, context)
    if kind in _FIXED:
        code, what, hint = _FIXED[kind]
        return Mistake(code, f"`{key}` {what.format(describe(value))}", hint)
    if kind == "string_pattern_mismatch":
        pattern = str(context.get("pattern"))
        expected, help_text = _PATTERNS.get(pattern, (f"text that fits {pattern}", None))
        return Mistake("bad-value", f"`{key}` must be {expected}, found {describe(value)}", help_text)
    if kind in ("int_from_float", "int_parsing", "float_parsing", "bool_parsing", "finite_number", "int_parsing_size"):
        return _wrong_type(kind.split("_")[0] if kind != "finite_number" else "float", key, value, is_item)
    if kind == "near_miss":
        return unknown_key(context["key"], [context["meant"]])
    if kind == "union_tag_not_found":
        return _wrong_type("model_attributes", key, value, is_item)
    if kind.endswith("_type"):
        return _wrong_type(kind.removesuffix("_type"), key, value, is_item)
    named = "" if key == "this" or f"`{key}`" in error["msg"] else f"`{key}`: "
    code = kind.replace("_", "-")
    return Mistake(
        code, f"{named}{error['msg']}", _HINTS.get(kind) or context.get("hint"), at_key=kind == "given_twice"
    )
