"""A Docker engine for the tests: started by them, with everything of its own, and stopped by them.

It needs root, `dockerd` and a static `busybox` (`tools/docker-engine.sh` fetches them on Debian). Its containers have
no network but the host's, and its images are made of what is on this machine: nothing is fetched.
"""

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.agents.support import docker_images
from tests.engine.support.project import alive
from tests.parts import missing
from tests.waiting import WAIT_LIMIT

_PREFIX = "atp-docker-"
"""How the names of the engines' folders begin; then follows the process of the tests."""
FLAGS = ("--bridge=none", "--ip-forward=false", "--iptables=false", "--ip6tables=false")


class CannotStart(Exception):
    """Why there is no engine."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=WAIT_LIMIT)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class TestEngine:
    """A daemon in a folder, and plain questions to it that don't go through the code under test."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "docker.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        own = [f"--data-root={self.folder}/data", f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid"]
        command = ["dockerd", *own, "-H", self.url, *FLAGS, *more]
        if shutil.which("setpriv"):  # should the tests be killed, it ends too
            command = ["setpriv", "--pdeathsig", "TERM", *command]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + WAIT_LIMIT
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                said = (self.folder / "log").read_text(errors="replace")[-1500:]
                raise CannotStart(f"dockerd can't be started:\n{said}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self.get("/version"))
        return False

    def stop(self) -> None:
        """End the daemon; containerd ends with it."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait(WAIT_LIMIT)

    def kill(self) -> None:
        """kill -9. Its containers live on, until it is started again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT_LIMIT)
        # containerd dies with it. Where nobody collects its process, the next one would take it to be alive.
        (self.folder / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove its folder; after a crash there may be mounts in it."""
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in sorted((one for one in mounts if one.startswith(f"{self.folder}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        connection = _Connection(self.socket)
        try:
            connection.request(method, path, body, {"Content-Type": kind} if body else {})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status < 400, content
        return json.loads(content) if content and answer.getheader("Content-Type") == "application/json" else content

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def containers(self, label: str = "atp.run") -> list[dict[str, Any]]:
        """All containers with a label, whatever they do."""
        filters = quote(json.dumps({"label": [label]}))
        found: list[dict[str, Any]] = self.get(f"/containers/json?all=1&filters={filters}")
        return found

    def tags(self) -> set[str]:
        return {tag for image in self.get("/images/json") for tag in image["RepoTags"] or ()}

    def load(self, archive: bytes) -> None:
        said = self.ask("POST", "/images/load?quiet=1", archive, "application/x-tar")
        assert "error" not in str(said), said


def start_engine() -> TestEngine:
    """Start a daemon and give it the images. Raises `CannotStart`."""
    if os.name != "posix" or os.geteuid() != 0:
        raise CannotStart("dockerd needs root")
    missing = [name for name in ("dockerd", "containerd", "runc", "busybox") if shutil.which(name) is None]
    if missing:
        raise CannotStart(f"{', '.join(missing)} is not installed: run tools/docker-engine.sh")
    _clear_killed()
    made = TestEngine(Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")))
    try:
        try:
            made.start()
        except CannotStart:
            made.start("--storage-driver=vfs")  # slower, but it works where nothing else does
        for archive in docker_images.archives():
            made.load(archive)
    except BaseException:
        made.stop()
        made.clear()
        raise
    return made


def _clear_killed() -> None:
    """Remove the folders of engines whose tests were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        engines = [one.read_text() for one in folder.glob("pid")]
        if owner.isdecimal() and not any(alive(int(pid)) for pid in (owner, *engines)):
            TestEngine(folder).clear()


@pytest.fixture(scope="session")
def engine() -> Iterator[TestEngine]:
    """A Docker engine of the tests' own. In CI it must be there."""
    try:
        made = start_engine()
    except CannotStart as error:
        missing(str(error))
    yield made
    made.stop()
    made.clear()
