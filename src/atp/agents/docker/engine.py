"""The container engine: finds its address, connects to it, and explains its errors."""

import asyncio
import contextlib
import errno
import hashlib
import json
import re
import ssl
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiodocker
import aiohttp
from aiodocker.exceptions import DockerError

from atp.agents.adapter import AgentError, Finding

ANSWER_SECONDS = 15.0
"""Seconds that an engine may take to answer."""
_UNREACHABLE = 900
"""aiodocker's status for an engine that can't be reached."""
_LIMITS = {"memory": "MemoryLimit", "cpus": "CpuCfsQuota", "pids": "PidsLimit"}
"""Our names of limits, and the keys by which an engine says that it can enforce them."""
_RUNTIME = re.compile(r"^.*(?:unable to start container process|starting container process caused): ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where a container engine is reached."""

    url: str
    """`unix:///path`, or `tcp://host:port`."""
    certificates: Path | None = None
    """The folder with `ca.pem`, `cert.pem` and `key.pem`, for an engine that needs them."""

    @property
    def socket(self) -> Path | None:
        """The path of a Unix socket."""
        return Path(self.url.removeprefix("unix://")) if self.url.startswith("unix://") else None

    @property
    def host(self) -> str:
        """The host on which ports of containers are published."""
        return "127.0.0.1" if self.socket is not None else urlsplit(self.url).hostname or "127.0.0.1"

    def ssl_context(self) -> ssl.SSLContext | None:
        """Load the certificates. Raises `AgentError`."""
        if self.certificates is None:
            return None
        try:
            context = ssl.create_default_context(cafile=str(self.certificates / "ca.pem"))
            context.load_cert_chain(str(self.certificates / "cert.pem"), str(self.certificates / "key.pem"))
        except OSError as error:  # an SSLError is one
            raise AgentError(
                f"the certificates for {self.url} in {self.certificates} can't be used: {error}", "environment"
            ) from error
        return context


def find_engine(environment: Mapping[str, str]) -> EngineAddress:
    """Find the engine: as `DOCKER_HOST` says, as Docker's current context says, or at the usual sockets.

    aiodocker finds an engine, too, but not Podman's or a rootless one, in `os.environ` only, and with at most 100
    connections. Raises `AgentError` when there is no engine.
    """
    home = Path(environment.get("HOME") or Path.home())
    if url := environment.get("DOCKER_HOST"):
        certificates = Path(environment.get("DOCKER_CERT_PATH") or home / ".docker")
        return _checked(
            EngineAddress(url, certificates if environment.get("DOCKER_TLS_VERIFY") else None), "DOCKER_HOST"
        )
    context = environment.get("DOCKER_CONTEXT") or _current_context(home)
    if context and context != "default":
        return _checked(_of_context(home, context), f"Docker's context `{context}`")
    sockets = list(_usual_sockets(environment, home))
    for path in sockets:
        if _is_socket(path):
            return EngineAddress(f"unix://{path}")
    looked = ", ".join(str(path) for path in sockets)
    raise AgentError(
        f"there is no container engine: no socket at {looked}; start Docker or Podman, or set DOCKER_HOST",
        "environment",
    )


def _checked(address: EngineAddress, source: str) -> EngineAddress:
    if address.url.startswith(("tcp://", "http://", "https://")):
        return address
    if address.socket is None:
        raise AgentError(
            f"{source} is `{address.url}`, an address of a kind that can't be used: unix:///path or tcp://host:port",
            "environment",
        )
    return address


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _usual_sockets(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the sockets of Docker, rootless Docker and Docker Desktop, then Podman's, rootless first."""
    run = environment.get("XDG_RUNTIME_DIR")
    yield Path("/var/run/docker.sock")
    if run:
        yield Path(run, "docker.sock")
    yield home / ".docker/run/docker.sock"
    if run:
        yield Path(run, "podman/podman.sock")
    yield Path("/run/podman/podman.sock")


def _current_context(home: Path) -> str | None:
    try:
        settings = json.loads((home / ".docker/config.json").read_bytes())
        context = settings.get("currentContext")
    except (OSError, ValueError, AttributeError):
        return None
    return context if isinstance(context, str) else None


def _of_context(home: Path, name: str) -> EngineAddress:
    """Read a context, which Docker keeps below the hash of its name."""
    contexts, key = home / ".docker/contexts", hashlib.sha256(name.encode()).hexdigest()
    try:
        about = json.loads((contexts / "meta" / key / "meta.json").read_bytes())
        url = str(about["Endpoints"]["docker"]["Host"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise AgentError(
            f"Docker's context `{name}` can't be read: {type(error).__name__}: {error}; set DOCKER_HOST instead",
            "environment",
        ) from error
    certificates = contexts / "tls" / key / "docker"
    return EngineAddress(url, certificates if (certificates / "ca.pem").exists() else None)


class Engine:
    """A connection to a container engine."""

    def __init__(self, address: EngineAddress, docker: aiodocker.Docker) -> None:
        self.address = address
        self.docker = docker
        self.architecture = ""
        """The architecture of containers, in Docker's words: `amd64`, `arm64`."""
        self.rootless = False
        """True if the engine runs as the calling user, who is root in its containers."""
        self.unable: frozenset[str] = frozenset()
        """The limits that the engine can't enforce, as the configuration names them."""

    @classmethod
    async def open(cls, environment: Mapping[str, str]) -> "Engine":
        """Find the engine and connect to it. Raises `AgentError` when there is none, or it can't be used."""
        address = find_engine(environment)
        engine = cls(address, _connect(address))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await engine._read_facts()
        except BaseException as error:
            await engine.close()
            if isinstance(error, Exception):
                raise _no_engine(error, address) from error
            raise
        return engine

    async def _read_facts(self) -> None:
        version: Any = await self.docker.version()
        about: Any = await self.docker.system.info()
        self.architecture = version["Arch"]
        self.rootless = any("rootless" in one for one in about.get("SecurityOptions") or ())
        self.unable = frozenset(limit for limit, name in _LIMITS.items() if about.get(name) is False)

    async def close(self) -> None:
        """Close all connections."""
        await self.docker.close()

    @contextlib.contextmanager
    def explained(self, what: str) -> Iterator[None]:
        """Turn the errors of requests into `AgentError`. `what` says what failed."""
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
        return AgentError(f"the container engine at {self.address.url} went away: {why}", "environment", retryable=True)


async def check_engine(environment: Mapping[str, str]) -> Finding:
    """Look whether there is a container engine."""
    try:
        engine = await Engine.open(environment)
    except AgentError as error:
        return Finding(what="engine", ok=False, detail=str(error))
    await engine.close()
    return Finding(what="engine", ok=True, detail=f"{engine.address.url} ({engine.architecture})")


def _connect(address: EngineAddress) -> aiodocker.Docker:
    """Make a client without a limit on connections: a running container needs two, and one more to be started."""
    socket = address.socket
    if socket is not None:
        return _owning(aiohttp.UnixConnector(str(socket), limit=0), "unix://localhost")
    certificates = address.ssl_context()
    scheme = "https" if certificates is not None or address.url.startswith("https:") else "http"
    url = f"{scheme}://{address.url.partition('://')[2]}".rstrip("/")
    return _owning(aiohttp.TCPConnector(limit=0, ssl=certificates or True), url)


def _owning(connector: aiohttp.BaseConnector, url: str) -> aiodocker.Docker:
    """Make a client that closes the connector, which aiodocker leaves to a session that owns it."""
    session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
    return _Client(url, session)


class _Client(aiodocker.Docker):
    """A client that also closes the session that it was given."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        assert session.connector is not None
        super().__init__(url, connector=session.connector, session=session)

    async def close(self) -> None:
        await super().close()
        await self.session.close()


def _no_engine(error: Exception, address: EngineAddress) -> AgentError:
    """Explain why no engine answers at an address."""
    cause = error.__context__ if isinstance(error, DockerError) else error
    system = cause.os_error if isinstance(cause, aiohttp.ClientConnectorError) else None
    where = f"the container engine at {address.url}"
    match system.errno if system is not None else None:
        case errno.EACCES | errno.EPERM:
            return AgentError(
                f"no permission to use {where}: add your user to the group that owns its socket (`docker`), "
                "or use a rootless engine",
                "environment",
            )
        case errno.ENOENT:
            return AgentError(
                f"there is no container engine: nothing is at {address.url}; "
                "start Docker or Podman, or set DOCKER_HOST",
                "environment",
            )
        case errno.ECONNREFUSED:
            return AgentError(
                f"{where} doesn't run: nothing listens there; start it, or set DOCKER_HOST", "environment"
            )
    if isinstance(error, TimeoutError):
        return AgentError(f"{where} doesn't answer", "environment")
    if isinstance(error, DockerError) and error.status == _UNREACHABLE:
        return AgentError(f"{where} can't be reached: {error.message}", "environment")
    if isinstance(error, DockerError):
        return AgentError(f"{where} refuses: {error.message.strip()}", "environment")
    return AgentError(
        f"what answers at {address.url} is no container engine: {str(error) or type(error).__name__}", "environment"
    )
