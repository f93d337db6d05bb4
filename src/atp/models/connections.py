"""What the models of one run share: each provider's connections and the limit on requests at once."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from atp.models.limiter import Limiter

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONNECT_SECONDS = 30.0
IDLE_SECONDS = 3.0
"""Idle connections are dropped before servers do it: a request must not meet a closing one."""


class Provider:
    """A server and a key: connectors that have both in common share its limit and its connections."""

    def __init__(self, host: str) -> None:
        self.limiter = Limiter()
        """How many requests it gets at once."""
        self._host = host
        self._sessions: dict[asyncio.AbstractEventLoop, ClientSession] = {}

    def session(self) -> "ClientSession":
        """The connections of the event loop that runs now."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = self._connect()
        return self._sessions[loop]

    def _connect(self) -> "ClientSession":
        import aiohttp

        return aiohttp.ClientSession(
            # Our own limit does this job, with a queue that is fair.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trust_env=not _is_here(self._host),  # a proxy that the environment names is the way out, not the way home
        )

    async def close(self) -> None:
        """Close the connections of this event loop."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()


@dataclass(slots=True)
class Shared:
    """What a model is given beside its connector."""

    root: Path
    """The project's root."""
    env: Mapping[str, str]
    """The environment, `.env` included."""
    _providers: dict[tuple[str, str], Provider] = field(default_factory=dict)

    def provider(self, host: str, key: str | None) -> Provider:
        """The one behind this host for this key."""
        return self._providers.setdefault((host, key or ""), Provider(host))

    async def close(self) -> None:
        """Leave no connection open."""
        for provider in self._providers.values():
            await provider.close()


def _is_here(host: str) -> bool:
    name = urlsplit(host).hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
