"""Where the container engine is looked for, and what is said when there is none."""

import asyncio
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.agents.support.docker_talk import boxed, use
from tests.agents.support.talk import Talk, run
from tests.parts import needs_root

from atp.agents.adapter import AgentError
from atp.agents.docker.engine import EngineAddress, find_engine
from atp.base.errors import ConfigurationError


def listening(path: Path) -> None:
    """A socket in a folder, with nobody behind it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def test_docker_host_goes_first(tmp_path: Path) -> None:
    around = {"HOME": str(tmp_path), "DOCKER_HOST": "tcp://box:2375", "DOCKER_CONTEXT": "other"}
    assert find_engine(around) == EngineAddress("tcp://box:2375")
    assert find_engine(around).host == "box"
    assert find_engine({**around, "DOCKER_TLS_VERIFY": "1"}).certificates == tmp_path / ".docker"
    assert find_engine({**around, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/c"}).certificates == Path("/c")


def test_the_current_context(tmp_path: Path) -> None:
    key = hashlib.sha256(b"box").hexdigest()
    meta = tmp_path / ".docker/contexts/meta" / key / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": "box", "Endpoints": {"docker": {"Host": "unix:///run/box.sock"}}}))
    home = {"HOME": str(tmp_path)}
    assert find_engine({**home, "DOCKER_CONTEXT": "box"}) == EngineAddress("unix:///run/box.sock")
    (tmp_path / ".docker/config.json").write_text('{"currentContext": "box"}')
    assert find_engine(home) == EngineAddress("unix:///run/box.sock")
    certificates = tmp_path / ".docker/contexts/tls" / key / "docker"
    certificates.mkdir(parents=True)
    (certificates / "ca.pem").touch()
    assert find_engine(home).certificates == certificates
    with pytest.raises(AgentError, match="Docker's context `gone` can't be read"):
        find_engine({**home, "DOCKER_CONTEXT": "gone"})


@pytest.mark.skipif(
    any(Path(path).exists() for path in ("/var/run/docker.sock", "/run/podman/podman.sock")),
    reason="this machine has an engine at a usual place",
)
def test_the_usual_sockets(tmp_path: Path) -> None:
    around = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "run"), "DOCKER_CONTEXT": "default"}
    with pytest.raises(AgentError, match=r"there is no container engine: no socket at /var/") as caught:
        find_engine(around)
    assert caught.value.blame == "environment"
    for path in ("run/podman/podman.sock", "home/.docker/run/docker.sock", "run/docker.sock"):  # each before the last
        listening(tmp_path / path)
        assert find_engine(around) == EngineAddress(f"unix://{tmp_path / path}")


def test_an_address_of_another_kind(talk: Talk) -> None:
    use(talk, "ssh://me@box")
    error = run(talk.fail(boxed("echo")))
    assert error.blame == "environment"
    assert str(error).startswith("DOCKER_HOST is `ssh://me@box`, an address of a kind that can't be used: unix:///")


def test_no_engine(talk: Talk) -> None:
    use(talk, f"unix://{talk.folder}/none.sock")
    error = run(talk.fail(boxed("echo")))
    assert (error.blame, error.retryable) == ("environment", False)
    assert str(error) == (
        f"there is no container engine: nothing is at unix://{talk.folder}/none.sock; "
        "start Docker or Podman, or set DOCKER_HOST"
    )


def test_an_engine_that_does_not_run(talk: Talk) -> None:
    listening(talk.folder / "s")
    use(talk, f"unix://{talk.folder}/s")
    error = run(talk.fail(boxed("echo")))
    assert error.blame == "environment"
    assert "doesn't run: nothing listens there" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_somebody_else_answers(talk: Talk, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def scene() -> AgentError:
        async with await asyncio.start_unix_server(serve, talk.folder / "s"):
            return await talk.fail(boxed("echo"))

    use(talk, f"unix://{talk.folder}/s")
    error = run(scene())
    assert (error.blame, error.retryable) == ("environment", False)
    assert f"unix://{talk.folder}/s" in str(error)


def test_no_permission() -> None:
    needs_root("only root can become somebody else")
    code = """
import asyncio, os, sys
from atp.agents.adapter import AgentError
from atp.agents.docker.engine import Engine
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    asyncio.run(Engine.open({"DOCKER_HOST": sys.argv[1]}))
except AgentError as error:
    print(error.blame, error)
"""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as held:
        os.chmod(folder, 0o755)
        held.bind(f"{folder}/s")
        held.listen()
        os.chmod(f"{folder}/s", 0o600)
        url = f"unix://{folder}/s"
        done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, check=False)
    assert done.stdout == (
        f"environment no permission to use the container engine at {url}: add your user to the group that owns its "
        "socket (`docker`), or use a rootless engine\n"
    ), done.stderr


def test_without_aiodocker(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiodocker", None)
    with pytest.raises(ConfigurationError, match="agents in containers need the package `aiodocker`") as caught:
        talk.adapter(boxed("echo"))
    assert caught.value.hint == "install ATP with its extra `docker`, from a clone: pip install '/path/to/atp[docker]'"
