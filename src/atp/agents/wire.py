"""JSON on the wire between ATP and agents, and the error for messages that break the protocol."""

import json
from typing import Any

import msgspec

from atp.agents.adapter import AgentError, Reply
from atp.base.text import cut

RAW_LENGTH = 2000
"""Characters of an agent's message that go into a report."""
LARGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes. An agent that answers with more is stopped."""


class ProtocolError(Exception):
    """A message that breaks the protocol. The text says which rule."""


def broken(why: object, raw: Any, reply: Reply | None = None) -> AgentError:
    """Return the agent's error for a broken protocol, with what the agent sent."""
    return AgentError(f"agent error: broke the protocol: {why}", raw=cut(raw, RAW_LENGTH), reply=reply)


def json_text(value: Any) -> str:
    """Return a value as JSON; a value that JSON can't express as the name of its type."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def read_json(raw: bytes, what: str) -> Any:
    """Read a JSON value. `what` names the bytes in the message of the `ProtocolError` that is raised."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise ProtocolError(f"{what} is empty")
    try:
        value = msgspec.json.decode(raw)
        # msgspec takes the last of two equal keys. Whichever the agent meant, a check would look at the other.
        _KEYS.decode(raw.decode())
    except _Repeated as error:
        raise ProtocolError(f"{what} has the key `{cut(error.key, 100)}` twice in one object") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"{what} is not JSON: {_reason(error)}") from error
    return value


class _Repeated(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Repeated(key)
        seen.add(key)


def _unread(number: str) -> None:
    """Do not convert a number: only keys matter."""


_KEYS = json.JSONDecoder(object_pairs_hook=_refuse_repeated, parse_int=_unread, parse_float=_unread)


def write_json(value: Any) -> bytes:
    """Write a request as JSON. Raises `AgentError`."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:  # half a surrogate pair from a test file, say
        raise AgentError(f"the request can't be written as JSON: {_reason(error)}", "environment") from error


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
