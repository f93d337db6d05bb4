"""Values of the user's Python code as plain JSON values."""

from __future__ import annotations

import dataclasses
import enum
import math
import uuid
from pathlib import Path
from typing import Any

LARGEST_BITS = 1024
"""Whole numbers may be as large as fractions can be: to most readers of JSON, larger ones are infinite or an error."""
_DEEPEST = 3
"""In dicts in dicts up to here, only what is no JSON itself is told in words."""


class NotJson(Exception):
    """A value that JSON can't say; the message names it, and where it stands."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = ""
        """Put together on the way out, so that a value that is JSON, as nearly all are, costs nothing for it."""

    def __str__(self) -> str:
        return f"{self.what} at `{self.where[:100].lstrip('.')}`" if self.where else self.what


def plain(value: Any) -> Any:
    """A copy made of nothing but JSON's types, so that code which keeps the original can't change it later."""
    try:
        return _plain(value)
    except RecursionError:
        raise NotJson("data that is nested too deeply, or in itself") from None


def refusal(error: BaseException) -> str:
    """Why an agent's value is not taken, after what `plain` raised."""
    if isinstance(error, NotJson):
        return f"returned {error}, which is not JSON"
    return f"returned a value that raises {type(error).__name__}"


def _plain(value: Any) -> Any:
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, (list, tuple)):
        return _array(value)
    return _scalar(value)


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    made = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else _key(key)
        try:
            made[name] = _plain(item)
        except NotJson as error:
            error.where = f".{name}{error.where}"
            raise
    return made


def _array(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    made: list[Any] = []
    for item in value:
        try:
            made.append(_plain(item))
        except NotJson as error:
            error.where = f"[{len(made)}]{error.where}"
            raise
    return made


def _scalar(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        if value.bit_length() > LARGEST_BITS:
            raise NotJson("a number that is too large")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(f"{value}")
        return float(value)
    raise NotJson(kind(value))


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise NotJson(f"an object with the key {key!r:.60}")
    return _text(str.__str__(key))


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotJson("text with half a surrogate pair") from None
    return text


def kind(value: Any) -> str:
    """What something is, with its article."""
    name = type(value).__qualname__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def jsonable(value: Any) -> Any:
    """A value with models, dataclasses and the like as JSON; what is none of them stays, and will be refused."""
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


def told(value: Any, depth: int = 0) -> Any:
    """A value for an event: JSON as far as it goes, and words for all else. Whatever it is, nothing is raised.

    To tell of an agent's work must not be what breaks it.
    """
    try:
        return plain(jsonable(value))
    except Exception:  # not JSON, without an end, or with methods that raise
        if not isinstance(value, dict) or depth == _DEEPEST:
            return words(value)
    try:
        return {words(key): told(item, depth + 1) for key, item in value.items()}
    except Exception:
        return words(value)


def words(value: Any) -> str:
    """The text of something, without halves of surrogate pairs, which no JSON carries."""
    try:
        return str(value).encode(errors="replace").decode()
    except Exception:  # a number of very many digits, or a class of the agent's
        return f"<{type(value).__name__}>"
