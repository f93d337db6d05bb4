"""Values of the user's Python code as plain JSON values."""

from __future__ import annotations

import math
from typing import Any

LARGEST_BITS = 1024
"""Whole numbers may be as large as fractions can be: to most readers of JSON, larger ones are infinite or an error."""


class NotJson(Exception):
    """A value that JSON can't say; the message names it, and where it stands."""


def plain(value: Any) -> Any:
    """A copy made of nothing but JSON's types, so that code which keeps the original can't change it later."""
    if type(value) is str and value.isascii():
        return value
    try:
        return _plain(value, "")
    except RecursionError:
        raise NotJson("data that is nested too deeply, or in itself") from None


def refusal(error: BaseException) -> str:
    """Why an agent's value is not taken, after what `plain` raised."""
    if isinstance(error, NotJson):
        return f"returned {error}, which is not JSON"
    return f"returned a value that raises {type(error).__name__}"


def _plain(value: Any, where: str) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(str.__str__(value), where)
    if isinstance(value, int):
        if value.bit_length() > LARGEST_BITS:
            raise NotJson(f"a number that is too large{_at(where)}")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"{value}{_at(where)}")
        return float(value)
    if isinstance(value, dict):
        return {_key(key, where): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{number}]") for number, item in enumerate(value)]
    raise NotJson(f"{_kind(value)}{_at(where)}")


def _key(key: Any, where: str) -> str:
    if not isinstance(key, str):
        raise NotJson(f"an object with the key {key!r:.60}{_at(where)}")
    return _text(str.__str__(key), where)


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson(f"text with half a surrogate pair{_at(where)}") from None
    return text


def _kind(value: Any) -> str:
    name = type(value).__qualname__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _at(where: str) -> str:
    return f" at `{where[:100].lstrip('.')}`" if where else ""
