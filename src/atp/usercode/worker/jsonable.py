"""The usual objects of Python as JSON, for frameworks that answer with more than an agent's own code would."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from pathlib import Path
from typing import Any

from ..json_values import plain

_DEEPEST = 3
"""In dicts in dicts up to here, only what is no JSON itself is told in words."""


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
