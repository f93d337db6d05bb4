"""Encodes any value as one line of JSON that every parser and terminal accepts; names what decoding raises."""

import json
import re
from typing import Any

import msgspec

DEEPEST = 200
"""How deep a value that has to be repaired may be nested; deeper values are replaced by words."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for damaged bytes: for JSON that is broken or of another type, broken UTF-8, endless brackets."""
_ENCODER = msgspec.json.Encoder()
# JSON escapes the controls below U+0020 by itself. These steer a terminal, turn its text around or end a line for some
# readers: DEL, C1, U+200E-F, U+2028-E, U+2066-9, and halves of surrogate pairs, in UTF-8.
_STEERING = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xed[\xa0-\xbf][\x80-\xbf]"
)


def encode(value: Any) -> bytes:
    """The value as JSON, on one line."""
    try:
        data = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):  # a lone surrogate is a ValueError, too
        data = _ENCODER.encode(_mended(value, 0))
    return unsteered(data)


def readable(value: Any) -> str:
    """The value as JSON for a model: letters as they are, and values that JSON can't represent as their text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def unsteered(data: bytes) -> bytes:
    """JSON with an escape for each character that steers a terminal."""
    return data if data.isascii() and b"\x7f" not in data else _STEERING.sub(_escape, data)


def whole_text(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair that has lost the other."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(found: "re.Match[bytes]") -> bytes:
    return b"\\u%04x" % ord(found[0].decode("utf-8", "surrogatepass"))


def _mended(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return whole_text(str.__str__(value))
    if depth > DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, msgspec.Struct):
        value = _members(value)
    if isinstance(value, dict):
        return {whole_text(_words(key)): _mended(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_mended(item, depth + 1) for item in value]
    return whole_text(_words(value))


def _members(record: msgspec.Struct) -> dict[str, Any]:
    """The members that a record has in JSON, its tag included."""
    config = record.__struct_config__
    members: dict[str, Any] = {} if config.tag_field is None else {config.tag_field: config.tag}
    for field in msgspec.structs.fields(record):
        if (value := getattr(record, field.name)) is not msgspec.UNSET:
            members[field.encode_name] = value
    return members


def _words(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    try:
        return str(value)
    except Exception:  # user code
        return f"({type(value).__name__})"
