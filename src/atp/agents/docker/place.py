"""Where the container engine is: as `DOCKER_HOST` says, as Docker's current context says, or at the usual sockets."""

import hashlib
import json
import ssl
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from atp.agents.adapter import AgentError


@dataclass(frozen=True, slots=True)
class Place:
    """An engine's address."""

    url: str
    """`unix:///path`, or `tcp://host:port`."""
    certificates: Path | None = None
    """The folder with `ca.pem`, `cert.pem` and `key.pem`, where they are needed."""

    @property
    def socket(self) -> Path | None:
        """The path of its socket, if it has one."""
        return Path(self.url.removeprefix("unix://")) if self.url.startswith("unix://") else None

    @property
    def host(self) -> str:
        """Where the ports of its containers can be reached."""
        return "127.0.0.1" if self.socket is not None else urlsplit(self.url).hostname or "127.0.0.1"

    def ssl_context(self) -> ssl.SSLContext | None:
        """How to make sure of who answers, and to say who asks."""
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


def find_engine(environment: Mapping[str, str]) -> Place:
    """The engine to use. Raises `AgentError` when there is none."""
    home = Path(environment.get("HOME") or Path.home())
    if url := environment.get("DOCKER_HOST"):
        certificates = Path(environment.get("DOCKER_CERT_PATH") or home / ".docker")
        return _checked(Place(url, certificates if environment.get("DOCKER_TLS_VERIFY") else None), "DOCKER_HOST")
    context = environment.get("DOCKER_CONTEXT") or _current_context(home)
    if context and context != "default":
        return _checked(_of_context(home, context), f"Docker's context `{context}`")
    places = list(_usual_sockets(environment, home))
    for path in places:
        if _is_socket(path):
            return Place(f"unix://{path}")
    looked = ", ".join(str(path) for path in places)
    raise AgentError(
        f"there is no container engine: no socket at {looked}; start Docker or Podman, or set DOCKER_HOST",
        "environment",
    )


def _checked(place: Place, source: str) -> Place:
    if place.url.startswith(("tcp://", "http://", "https://")):
        return place
    if place.socket is None:
        raise AgentError(
            f"{source} is `{place.url}`, an address of a kind that can't be used: unix:///path or tcp://host:port",
            "environment",
        )
    return place


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _usual_sockets(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Docker's, rootless Docker's and Docker Desktop's; then Podman's, rootless first."""
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


def _of_context(home: Path, name: str) -> Place:
    """Docker keeps a context below the hash of its name."""
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
    return Place(url, certificates if (certificates / "ca.pem").exists() else None)
