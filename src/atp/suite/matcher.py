"""Matchers: objects such as `{"$gt": 3}` inside an expected value, which stand for any value that fits."""

import re
from typing import Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from atp.suite.near import near_miss

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


def is_matcher(value: Any) -> bool:
    """An object all of whose keys begin with a dollar sign."""
    return isinstance(value, dict) and bool(value) and all(isinstance(key, str) and key[:1] == "$" for key in value)


def _check(value: Any) -> Any:
    if isinstance(value, dict):
        if is_matcher(value):
            _check_matcher(value)
        for key, item in value.items():
            if key != "$literal":
                _check(item)
    elif isinstance(value, list):
        for item in value:
            _check(item)
    return value


def _check_matcher(matcher: dict[str, Any]) -> None:
    for name, value in matcher.items():
        if name not in MATCHERS:
            meant = near_miss(name, MATCHERS)
            hint = f"did you mean `{meant}`?" if meant else 'put data of your own into {"$literal": …}'
            raise PydanticCustomError("matcher", "unknown matcher `{name}`: {hint}", {"name": name, "hint": hint})
        wrong = _wrong_operand(name, value)
        if wrong:
            raise PydanticCustomError("matcher", "matcher `{name}` {wrong}", {"name": name, "wrong": wrong})


def _wrong_operand(name: str, value: Any) -> str | None:
    match name:
        case "$regex":
            try:
                re.compile(value)
            except (re.error, TypeError, OverflowError, RecursionError) as error:
                return f"is not a regular expression: {error}"
        case "$gt" | "$gte" | "$lt" | "$lte" if isinstance(value, bool) or not isinstance(value, int | float | str):
            return "takes a number or a text"
        case "$in" | "$not_in" if not isinstance(value, list):
            return "takes a list"
        case "$length" if not is_matcher(value) and (isinstance(value, bool) or not isinstance(value, int)):
            return "takes a whole number or a matcher"
        case "$any" if value is not True:
            return "takes only true"
    return None


check_matchers = AfterValidator(_check)
"""For an `Annotated` type: the matchers in the value are ones that exist."""
