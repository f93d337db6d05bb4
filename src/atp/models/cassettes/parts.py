"""The parts of a call, in a form that can be hashed, stored and compared."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec

from atp.base.text import cut

_KEY = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BEFORE = 20
"""Characters shown before the first difference of two texts."""
_AFTER = 50
"""Characters shown from there on."""


def plain(value: Any) -> Any:
    """The value as JSON values. Raises `TypeError` if JSON has none for it."""
    return _plain(msgspec.to_builtins(value, str_keys=True))


def _plain(value: Any) -> Any:
    if isinstance(value, str):  # what an agent prints may contain half a surrogate pair
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if not isinstance(value, float) or isfinite(value) else None


def key_of(*parts: Any) -> str:
    """The hash of plain values: independent of the order of keys, and the same for 1.0 and 1."""
    text = _KEY(parts)
    # Searching the text is faster than walking through the value, and whole floats are rare.
    if ".0" in text or "e+" in text:
        text = _KEY(_whole_numbers(parts))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    return [_whole_numbers(item) for item in value] if isinstance(value, list | tuple) else value


def line_of(value: Any) -> bytes:
    """A plain value as one line of JSON."""
    return _LINE(value).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two calls."""

    path: str
    """Where: `messages[1].content`."""
    text: str
    """The recorded value and the current one."""
    weight: float
    """How different the values are: from 1 for almost equal texts to 2."""

    def __str__(self) -> str:
        return f"`{self.path}`{self.text}"


def differences(recorded: Any, now: Any, path: str = "") -> Iterator[Difference]:
    """The differences between two plain values, in the order of their keys."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in recorded | now:
            yield from _member(recorded, now, key, f"{path}.{key}" if path else key)
    elif isinstance(recorded, list) and isinstance(now, list):
        if len(recorded) != len(now):
            more = abs(len(recorded) - len(now))
            yield Difference(path, f" has {len(now)} items, {len(recorded)} recorded", 2.0 * more)
        for number, (one, other) in enumerate(zip(recorded, now, strict=False)):
            yield from differences(one, other, f"{path}[{number}]")
    elif isinstance(recorded, str) and isinstance(now, str):
        if recorded != now:
            yield _texts(recorded, now, path)
    elif recorded != now or isinstance(recorded, bool) != isinstance(now, bool):
        yield Difference(path, f": {_shown(recorded)} recorded, {_shown(now)} now", 2.0)


def _member(recorded: dict[str, Any], now: dict[str, Any], key: str, path: str) -> Iterator[Difference]:
    if key not in now:
        yield Difference(path, f": {_shown(recorded[key])} recorded, nothing now", 2.0)
    elif key not in recorded:
        yield Difference(path, f": nothing recorded, {_shown(now[key])} now", 2.0)
    else:
        yield from differences(recorded[key], now[key], path)


def _texts(recorded: str, now: str, path: str) -> Difference:
    start = _common_prefix(recorded, now)
    end = _common_prefix(recorded[start:][::-1], now[start:][::-1])
    apart = 1 - (start + end) / max(len(recorded), len(now))
    text = f" differs: recorded {_excerpt(recorded, start)}, now {_excerpt(now, start)}"
    return Difference(path, text, 1 + apart)


def _common_prefix(one: str, other: str) -> int:
    """The length of the common beginning of two texts, by bisection: texts are long and many."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _excerpt(text: str, at: int) -> str:
    begin, end = max(0, at - _BEFORE), at + _AFTER
    return repr(f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}")


def _shown(value: Any) -> str:
    return cut(_LINE(value), _BEFORE + _AFTER)
