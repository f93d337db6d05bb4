"""A connection to the container engine, and what its refusals mean."""

import asyncio
import contextlib
import errno
import re
from collections.abc import Iterator, Mapping
from typing import Any

import aiodocker
import aiohttp
from aiodocker.exceptions import DockerError

from atp.agents.adapter import AgentError
from atp.agents.docker.place import Place, find_engine

ANSWER_SECONDS = 15.0
"""How long an engine may take to say who it is."""
_UNREACHABLE = 900
"""aiodocker's status for an engine that can't be reached."""
_LIMITS = {"memory": "MemoryLimit", "cpus": "CpuCfsQuota", "pids": "PidsLimit"}
"""How an engine calls the limits that it can keep."""
_RUNTIME = re.compile(r"^.*(?:unable to start container process|starting container process caused): ", re.DOTALL)


class Engine:
    """An engine that answers."""

    def __init__(self, place: Place, docker: aiodocker.Docker) -> None:
        self.place = place
        self.docker = docker
        self.architecture = ""
        """What its containers run on, in Docker's words: `amd64`, `arm64`."""
        self.rootless = False
        """It runs as the caller, whom its containers see as their root."""
        self.unable: frozenset[str] = frozenset()
        """The limits that it can't keep, as our configuration calls them."""

    @classmethod
    async def open(cls, environment: Mapping[str, str]) -> "Engine":
        """Find the engine and ask who it is. Raises `AgentError` when there is none, or it can't be used."""
        place = find_engine(environment)
        engine = cls(place, _connect(place))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await engine._introduce()
        except BaseException as error:
            await engine.close()
            if isinstance(error, Exception):
                raise _no_engine(error, place) from error
            raise
        return engine

    async def _introduce(self) -> None:
        version: Any = await self.docker.version()
        about: Any = await self.docker.system.info()
        self.architecture = version["Arch"]
        self.rootless = any("rootless" in one for one in about.get("SecurityOptions") or ())
        self.unable = frozenset(limit for limit, name in _LIMITS.items() if about.get(name) is False)

    async def close(self) -> None:
        """Close all connections."""
        await self.docker.close()

    @contextlib.contextmanager
    def asked(self, what: str) -> Iterator[None]:
        """Turns what goes wrong with a request into an `AgentError`; `what` says what was not to be had."""
        try:
            yield
        except DockerError as error:
            if error.status == _UNREACHABLE:
                raise self._gone(error) from error
            raise AgentError(f"{what}: {_RUNTIME.sub('', error.message).strip()}", "environment") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._gone(error) from error

    def _gone(self, error: Exception) -> AgentError:
        why = error.message if isinstance(error, DockerError) else str(error) or type(error).__name__
        return AgentError(f"the container engine at {self.place.url} went away: {why}", "environment", retryable=True)


def _connect(place: Place) -> aiodocker.Docker:
    """A client with as many connections as it likes: each container that runs needs two, and one to be started."""
    socket = place.socket
    if socket is not None:
        return _owning(aiohttp.UnixConnector(str(socket), limit=0), "unix://localhost")
    certificates = place.ssl_context()
    scheme = "https" if certificates is not None or place.url.startswith("https:") else "http"
    url = f"{scheme}://{place.url.partition('://')[2]}".rstrip("/")
    return _owning(aiohttp.TCPConnector(limit=0, ssl=certificates or True), url)


def _owning(connector: aiohttp.BaseConnector, url: str) -> aiodocker.Docker:
    """aiodocker closes a connector of ours only with a session that owns it."""
    session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
    return _Client(url, session)


class _Client(aiodocker.Docker):
    """aiodocker's client, which also closes the session that it was given."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        assert session.connector is not None
        super().__init__(url, connector=session.connector, session=session)

    async def close(self) -> None:
        await super().close()
        await self.session.close()


def _no_engine(error: Exception, place: Place) -> AgentError:
    """Why there is no engine at its place."""
    cause = error.__context__ if isinstance(error, DockerError) else error
    system = cause.os_error if isinstance(cause, aiohttp.ClientConnectorError) else None
    where = f"the container engine at {place.url}"
    match system.errno if system is not None else None:
        case errno.EACCES | errno.EPERM:
            return AgentError(
                f"no permission to use {where}: add your user to the group that owns its socket (`docker`), "
                "or use a rootless engine",
                "environment",
            )
        case errno.ENOENT:
            return AgentError(
                f"there is no container engine: nothing is at {place.url}; start Docker or Podman, or set DOCKER_HOST",
                "environment",
            )
        case errno.ECONNREFUSED:
            return AgentError(f"{where} doesn't run: nobody listens there; start it, or set DOCKER_HOST", "environment")
    if isinstance(error, TimeoutError):
        return AgentError(f"{where} doesn't answer", "environment")
    if isinstance(error, DockerError) and error.status == _UNREACHABLE:
        return AgentError(f"{where} can't be reached: {error.message}", "environment")
    if isinstance(error, DockerError):
        return AgentError(f"{where} refuses: {error.message.strip()}", "environment")
    return AgentError(
        f"what answers at {place.url} is no container engine: {str(error) or type(error).__name__}", "environment"
    )
