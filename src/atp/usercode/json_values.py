"""Converts values of the user's Python code to plain JSON values."""

from __future__ import annotations

import dataclasses
import enum
import math
import uuid
from pathlib import Path
from typing import Any

LARGEST_BITS = 1024
"""Integers may be as large as floats: most JSON parsers read larger ones as infinite, or fail."""
_MAX_DEPTH = 3
"""Up to this depth of nested dicts, only the values that are not JSON are replaced by their text."""


class NotJson(Exception):
    """Raised for a value that is not JSON. The message names the value and its place."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = ""
        """The path of the value. Built while the exception propagates, so that values that are JSON cost nothing."""

    def __str__(self) -> str:
        return f"{self.what} at `{self.where.lstrip('.')}`" if self.where else self.what


def plain(value: Any) -> Any:
    """A copy of the value in JSON types, which code that keeps the original can't change later. Raises `NotJson`."""
    try:
        return _plain(value)
    except RecursionError:
        raise NotJson("data that is nested too deeply, or in itself") from None


def refusal(error: BaseException) -> str:
    """The error message for a value of an agent for which `plain` raised."""
    if type(error) is NotJson:  # not `isinstance`: the error's `__class__` may be the user's code
        return f"returned {error}, which is not JSON"
    return f"returned a value that raises {type(error).__name__}"


def _plain(value: Any) -> Any:
    if type(value) is str and value.isascii():
        return value
    if issubclass(type(value), dict):
        return _object(value)
    if issubclass(type(value), (list, tuple)):
        return _array(value)
    return _scalar(value)


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    result = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        try:
            result[name] = _plain(item)
        except NotJson as error:
            error.where = f".{name}{error.where}"
            raise
    return result


def _array(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    result: list[Any] = []
    for item in value:
        try:
            result.append(_plain(item))
        except NotJson as error:
            error.where = f"[{len(result)}]{error.where}"
            raise
    return result


def _scalar(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    own = type(value)  # not what the value says of itself, as `unittest.mock.Mock(spec=bool)` does
    if issubclass(own, str):
        return _text(str.__str__(value))
    if issubclass(own, int):
        if value.bit_length() > LARGEST_BITS:
            raise NotJson("a number that is too large")
        return int(value)
    if issubclass(own, float):
        if not math.isfinite(value):
            raise NotJson(f"{value}")
        return float(value)
    raise NotJson(kind(value))


def _key(key: Any) -> str:
    if not issubclass(type(key), str):
        raise NotJson(f"an object with the key {key!r}")
    return _text(str.__str__(key))


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson("text with half a surrogate pair") from None
    return text


def kind(value: Any) -> str:
    """The class name of a value, with its article."""
    name = type(value).__qualname__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def jsonable(value: Any) -> Any:
    """Convert models, dataclasses and similar values to JSON values. Keeps other values, which `plain` refuses."""
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: jsonable(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return jsonable(value.value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(item) for item in value), key=repr)
    if isinstance(value, (uuid.UUID, Path)):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def event_value(value: Any, depth: int = 0) -> Any:
    """Convert a value for an event: what is not JSON is replaced by its text.

    Never raises, because reporting an agent's work must not break it.
    """
    try:
        return plain(jsonable(value))
    except Exception:  # not JSON, recursive, or with methods that raise
        if not isinstance(value, dict) or depth == _MAX_DEPTH:
            return safe_text(value)
    try:
        return {safe_text(key): event_value(item, depth + 1) for key, item in value.items()}
    except Exception:
        return safe_text(value)


def safe_text(value: Any) -> str:
    """The text of a value, without lone surrogates, which JSON can't encode."""
    try:
        return str(value).encode(errors="replace").decode()
    except Exception:  # an integer with too many digits, or a class of the agent's that raises
        return f"<{type(value).__name__}>"
