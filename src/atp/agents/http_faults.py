"""What can go wrong with a request, and whose fault that is."""

import re
from collections.abc import Mapping
from typing import Any

import aiohttp

from atp.agents.adapter import AgentError
from atp.agents.breach import Breach, cut, read_json
from atp.models.attempts import retry_after

PASSING = frozenset((429, 502, 503, 504))
"""Statuses that say nothing about the agent: the rate limit, or what stands before it."""


def of_status(status: int, headers: Mapping[str, str], body: bytes) -> AgentError:
    """The error for an answer that isn't a success."""
    said = _said(body)
    text = f"HTTP {status}{f': {said}' if said else ''}"
    if status in PASSING:
        return AgentError(text, "environment", retryable=True, retry_after=retry_after(headers), raw=cut(body))
    if 300 <= status < 400:
        text = f"HTTP {status}, a redirect to {cut(headers.get('Location', 'nowhere'), 200)}: set `endpoint` to it"
    return AgentError(f"agent error: {text}", raw=cut(body))


def of_exception(error: Exception, answered: bool) -> AgentError:
    """The error for a request that broke off; before an answer began, that is the way to the agent, not the agent."""
    why = str(error) or type(error).__name__
    if answered or isinstance(error, aiohttp.ClientPayloadError):
        return AgentError(f"agent error: the answer ended early: {why}")
    if isinstance(error, aiohttp.ClientResponseError):
        shown = re.sub(r"\s+", " ", error.message).strip()
        return AgentError(f"agent error: the answer is not HTTP: {cut(shown, 200)}")
    return AgentError(f"the agent can't be reached: {unreachable(error)}", "environment", retryable=True)


def unreachable(error: Exception) -> str:
    """Why nobody answered, in the words of whoever wrote the address."""
    if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(error, aiohttp.ClientSSLError):
        return str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{error.host} is not known: {error.os_error.strerror or error.os_error}"
    place = f"{error.host}:{error.port}"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"{place} refused the connection"
    return f"{place}: {error.os_error.strerror or error.os_error}"


def _said(body: bytes) -> str:
    """What the answer says of the error: in the usual places of JSON, else as it stands."""
    try:
        value: Any = read_json(body, "the answer")
    except Breach:
        return cut(b" ".join(body[:2000].split()), 200)
    for name in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(name):
            value = value[name]
    return cut(value, 500)
