"""Matchers: objects such as `{"$gt": 3}` inside an expected value, which stand for any value that fits."""

import re
from typing import Any

from pydantic_core import PydanticCustomError

from atp.base.near import near_miss
from atp.suite.record import compile_regex

MATCHERS = frozenset(
    {
        "$any",
        "$contains",
        "$gt",
        "$gte",
        "$in",
        "$length",
        "$literal",
        "$lt",
        "$lte",
        "$ne",
        "$not_in",
        "$regex",
        "$type",
    }
)
"""`$literal` takes its value as it is, for data that really has keys with a dollar sign."""


_OWN_DATA = 'put data of your own into {"$literal": …}'

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types of JSON values."""


def is_matcher(value: Any) -> bool:
    """Whether a value is an object all of whose keys begin with a dollar sign."""
    if not isinstance(value, dict) or not value:
        return False
    for key in value:  # noqa: SIM110  (asked of every object that is compared, and `all` takes three times as long)
        if not isinstance(key, str) or key[:1] != "$":
            return False
    return True


def check_matchers(value: Any) -> Any:
    """The value, if its matchers exist and are used correctly. Raises a pydantic error otherwise."""
    if isinstance(value, dict):
        if is_matcher(value):
            _check_matcher(value)
        elif mixed := _mixed_in(value):
            raise PydanticCustomError(
                "matcher",
                "matcher `{name}` stands beside plain keys",
                {"name": mixed, "hint": _OWN_DATA},
            )
        for key, item in value.items():
            if key != "$literal":
                check_matchers(item)
    elif isinstance(value, list):
        for item in value:
            check_matchers(item)
    return value


def check_no_matchers(value: Any) -> Any:
    """The value, if it has no matcher but `$literal`. For values that are compared as they are."""
    if isinstance(value, dict):
        if value.keys() == {"$literal"}:
            return value
        name = next(iter(value)) if is_matcher(value) else _mixed_in(value)
        if name:
            raise PydanticCustomError(
                "matcher",
                "`{name}` is no matcher here",
                {"name": name, "hint": f"use it in `json_path` or `equals`, or use `regex`; {_OWN_DATA}"},
            )
        for item in value.values():
            check_no_matchers(item)
    elif isinstance(value, list):
        for item in value:
            check_no_matchers(item)
    return value


def _mixed_in(value: dict[str, Any]) -> str | None:
    """A key that is a matcher's name, or close to one, among keys that aren't."""
    for key in value:
        if key[:1] == "$" and (key in MATCHERS or (len(key) > 3 and near_miss(key, MATCHERS))):
            return key
    return None


def _check_matcher(matcher: dict[str, Any]) -> None:
    for name, value in matcher.items():
        if name not in MATCHERS:
            meant = near_miss(name, MATCHERS)
            hint = f"did you mean `{meant}`?" if meant else _OWN_DATA
            raise PydanticCustomError("matcher", "unknown matcher `{name}`", {"name": name, "hint": hint})
        wrong = _wrong_operand(name, value)
        if wrong:
            raise PydanticCustomError("matcher", "matcher `{name}` {wrong}", {"name": name, "wrong": wrong})


def _wrong_operand(name: str, value: Any) -> str | None:
    match name:
        case "$regex" | "$contains" if value == "":
            return "is empty: it is found in every text, so this checks nothing"
        case "$regex":
            try:
                compile_regex(value)
            except (re.error, TypeError, OverflowError, RecursionError) as error:
                return f"is not a regular expression: {error}"
        case "$gt" | "$gte" | "$lt" | "$lte" if isinstance(value, bool) or not isinstance(value, int | float | str):
            return "takes a number or a text"
        case "$in" | "$not_in" if not isinstance(value, list) or not value:
            return "takes a list that isn't empty"
        case "$length" if not is_matcher(value) and (isinstance(value, bool) or not isinstance(value, int)):
            return "takes a whole number or a matcher"
        case "$type" if not _are_types(value):
            return f"takes the name of a JSON type, or a list of them: {', '.join(TYPES)}"
        case "$any" if value is not True:
            return "takes only true"
    return None


def _are_types(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)
