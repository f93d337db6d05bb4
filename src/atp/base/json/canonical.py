"""One text for each JSON value: sorted keys, no blanks, 1.0 written as 1."""

import json
from typing import Any

_ENCODE = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_LARGEST_EXACT = 1e21
"""Below this, JSON's canonical form (RFC 8785) writes whole numbers without an exponent."""


def canonical(value: Any) -> str:
    """The canonical text of a JSON value."""
    text = _ENCODE(value)
    # Floats that are whole are rare, so they are looked for in the text before the value is gone through.
    return _ENCODE(_whole_numbers(value)) if ".0" in text or "e+" in text else text


def _whole_numbers(value: Any) -> Any:
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    return value
