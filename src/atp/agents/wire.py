"""What an agent sent that breaks the rules, and how that is told."""

from typing import Any

import msgspec

from atp.agents.adapter import AgentError, Reply
from atp.base.text import cut

RAW_LENGTH = 2000
"""So much of what an agent sent goes into the report."""


class ProtocolError(Exception):
    """A rule of the protocol that was broken; the message says which."""


def broken(why: object, raw: Any, reply: Reply | None = None) -> AgentError:
    """The agent's error, with what it sent."""
    return AgentError(f"agent error: broke the protocol: {why}", raw=cut(raw, RAW_LENGTH), reply=reply)


def json_text(value: Any) -> str:
    """A value as JSON, as far as it is JSON."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def read_json(raw: bytes, what: str) -> Any:
    """The JSON value in some bytes; raises `ProtocolError` when there is none."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise ProtocolError(f"{what} is empty")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{what} is not JSON: {_reason(error)}") from error


def write_json(value: Any) -> bytes:
    """A request of ours as JSON."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:  # half a surrogate pair from a test file, say
        raise AgentError(f"the request can't be written as JSON: {_reason(error)}", "environment") from error


def _reason(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
