"""What the models of one run share: each provider's connections, and the limit on its concurrent requests."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 3.0
"""Idle connections are closed before servers close them, so that no request is sent into a closing one."""
FIRST_LIMIT = 16
"""Concurrent requests to begin with."""
HIGHEST_LIMIT = 256


class Limiter:
    """Limits the concurrent requests to one provider: more while it answers, half as many after a 429.

    Requests are admitted in the order in which they came.
    """

    def __init__(self, first: float = FIRST_LIMIT, highest: int = HIGHEST_LIMIT) -> None:
        self.limit = float(first)
        """Requests that may be under way; only the whole part counts."""
        self.under_way = 0
        """Requests that are under way."""
        self.halvings = 0
        """How often the limit was halved."""
        self._highest = highest
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait until a further request is allowed, and count it as under way."""
        await self._enter()
        try:
            yield
        finally:
            self.under_way -= 1
            self._admit()

    async def _enter(self) -> None:
        if not self._waiting and self.under_way < int(self.limit):
            self.under_way += 1
            return
        slot = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # admitted and cancelled at the same time: the slot goes to the next in line
                self.under_way -= 1
            self._admit()
            raise

    def _admit(self) -> None:
        waiting = self._waiting
        while waiting and (waiting[0].done() or self.under_way < int(self.limit)):
            slot = waiting.popleft()
            if not slot.done():  # a cancelled request has left the line
                self.under_way += 1
                slot.set_result(None)

    def on_answered(self) -> None:
        """Raise the limit a little: by one after as many answers as the limit."""
        self.limit = min(self.limit + 1 / self.limit, self._highest)
        self._admit()

    def on_rate_limited(self, halvings: int) -> None:
        """Halve the limit, unless it was halved since the request was sent, when `halvings` was read.

        All requests under way may be rejected at once, which is one reason to halve, not many.
        """
        if halvings == self.halvings:
            self.halvings += 1
            self.limit = max(self.limit / 2, 1.0)


class Provider:
    """A server and a key. Connectors that have both in common share the limit and the connections."""

    def __init__(self, host: str) -> None:
        self.limiter = Limiter()
        """Limits the concurrent requests to this provider."""
        self._host = host
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}

    def session(self) -> "ClientSession":
        """The HTTP session of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = self._connect()
        return self._sessions[loop]

    def _connect(self) -> "ClientSession":
        import aiohttp

        return aiohttp.ClientSession(
            # No limit here: the limiter has one, with a fair queue.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trust_env=not _is_loopback(self._host),  # a proxy of the environment can't reach this machine's loopback
        )

    async def close(self) -> None:
        """Close the session of the running event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()


@dataclass(slots=True)
class ModelContext:
    """What a model gets beside its connector."""

    root: Path
    """The project's root."""
    env: Mapping[str, str]
    """The environment, `.env` included."""
    _providers: dict[tuple[str, str], Provider] = field(default_factory=dict)

    def provider(self, host: str, key: str | None) -> Provider:
        """The provider at a host for a key, shared by all models that name both."""
        return self._providers.setdefault((host, key or ""), Provider(host))

    async def close(self) -> None:
        """Close all connections."""
        for provider in self._providers.values():
            await provider.close()


def _is_loopback(host: str) -> bool:
    name = urlsplit(host).hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
