"""HTTP addresses of a configuration, and the errors of requests: what went wrong, and who is to blame."""

import errno
import re
from collections.abc import Mapping

import aiohttp
import yarl

from atp.agents.adapter import AgentError
from atp.agents.wire import RAW_LENGTH
from atp.base.errors import ConfigurationError
from atp.base.text import cut, words
from atp.models.client import error_text, retry_after

RETRYABLE_STATUSES = frozenset((429, 502, 503, 504))
"""Statuses that say nothing about the agent: a rate limit, or a proxy before the agent. The trial is started again."""
WRONG_PATH = frozenset((404, 405))
"""Statuses of a server that takes no such request at this path."""
NOT_UNDERSTOOD = frozenset((400, 415, 422))
"""Statuses of a server that does not understand the request."""
REFUSED = frozenset((401, 403))
"""Statuses of wrong credentials."""
CHECK_CREDENTIALS = "check `api_key` and `headers`"
LONGEST_MESSAGE = 500
"""Characters of a server's error message."""
_SEE_LOG = "see its log"
_CLOSED = "closed the connection without an answer"
_CREDENTIALS = re.compile(r"^(\w+://)[^/?#]*@")
_HUNG_UP = frozenset((errno.ECONNRESET, errno.EPIPE))


class Address:
    """An address of a configuration."""

    def __init__(self, key: str, text: str) -> None:
        """`key` is the configuration's key that gives the address. Raises `ConfigurationError`."""
        self.key = key
        self._shown = _shown(text)
        try:
            self.url = yarl.URL(text)
        except ValueError as error:
            raise ConfigurationError(f"`{self}` is not an address: {error}") from error
        if not self.url.host:
            raise ConfigurationError(f"`{self}` is not an address: it names no host")

    def __str__(self) -> str:
        """Return the address as the configuration writes it, so that secrets are masked; without user and query."""
        return self._shown

    @property
    def check_path(self) -> str:
        """The remedy for a status in `WRONG_PATH`."""
        return f"check the path of `{self.key}`"


def of_status(
    status: int, headers: Mapping[str, str], body: bytes, address: Address, not_understood: str
) -> AgentError:
    """Return the error for an unsuccessful answer to a turn. `not_understood` helps if the request was not."""
    said = "" if _is_html(headers, body) else cut(error_text(body), LONGEST_MESSAGE)
    said = f": {said}" if said else ""
    text = f"HTTP {status}{said}"
    if status in RETRYABLE_STATUSES:
        return AgentError(
            text, "environment", retryable=True, retry_after=retry_after(headers), raw=cut(body, RAW_LENGTH)
        )
    if status in WRONG_PATH:
        text = f"HTTP {status} to POST {address}{said}; {address.check_path}"
    if status in NOT_UNDERSTOOD and not_understood:
        text = f"{text}; {not_understood}"
    if 300 <= status < 400:
        text = f"{redirect(status, headers.get('Location', 'nowhere'))}: set `{address.key}` to it"
    return AgentError(f"agent error: {text}", raw=cut(body, RAW_LENGTH))


def redirect(status: int, location: str) -> str:
    """Return what a redirect says. Redirects are not followed: they may lead to another host."""
    return f"HTTP {status}, a redirect to {cut(_shown(location), 200)}"


def of_exception(error: Exception, answered: bool) -> AgentError:
    """Return the error for a broken request. Before an answer began, the connection is to blame, not the agent."""
    why = str(error) or type(error).__name__
    if answered or isinstance(error, aiohttp.ClientPayloadError):
        return AgentError(f"agent error: the answer ended early: {why}")
    if isinstance(error, aiohttp.ClientResponseError):
        return AgentError(f"agent error: {unreachable(error)}")
    if _is_closed(error):
        return AgentError(f"the agent {_CLOSED}; {_SEE_LOG}", "environment", retryable=True)
    return AgentError(f"the agent can't be reached: {unreachable(error)}", "environment", retryable=True)


def unreachable(error: Exception) -> str:
    """Return why there is no answer, with host and port as the configuration has them, never with the query."""
    if isinstance(error, aiohttp.ClientResponseError) and error.message:
        return f"the answer is not HTTP: {cut(words(error.message), 200)}"
    if _is_closed(error):
        return f"it {_CLOSED}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(error, aiohttp.ClientSSLError):
        return str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{error.host} is not known: {error.os_error.strerror or error.os_error}"
    place = f"{error.host}:{error.port}"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"{place} refused the connection"
    return f"{place}: {error.os_error.strerror or error.os_error}"


def remedy(error: Exception, address: Address) -> str:
    """Return what helps when an address does not answer."""
    if _is_closed(error):
        return _SEE_LOG
    if isinstance(error, aiohttp.ClientSSLError):
        return f"check whether `{address.key}` is `http` or `https`, and the certificate"
    return f"start the agent, or fix `{address.key}`"


def _is_closed(error: Exception) -> bool:
    """Return whether the other side closed an open connection."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    broke = isinstance(error, OSError) and error.errno in _HUNG_UP
    return broke or isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError)


def _shown(url: str) -> str:
    start, query, _ = _CREDENTIALS.sub(r"\1", url.partition("#")[0]).partition("?")
    return f"{start}?…" if query else start


def _is_html(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the body is a web page, whose beginning says nothing about the error."""
    page = body[:1000].lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return page or headers.get("Content-Type", "").lower().startswith("text/html")
