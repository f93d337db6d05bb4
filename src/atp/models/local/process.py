"""The processes that serve local models: one for each model file, shared by all its users in this process."""

import http.client
import json
import os
import secrets
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from atp.models.model import ModelError

LOAD_SECONDS = 120.0
"""Seconds that loading a model may take."""
_POLL_SECONDS = 0.02
_STOP_SECONDS = 5.0
_SCRIPT = Path(__file__).with_name("server.py")


class Address(NamedTuple):
    """Where a server listens."""

    url: str
    """The server's URL."""
    key: str
    """The key that requests must send."""


class LocalServer:
    """The server of one model file. The process starts with its first user and ends with its last."""

    def __init__(self, file: Path, name: str) -> None:
        self._file = file
        self._name = name
        self._lock = threading.Lock()
        self._users: set[object] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._address = Address("", "")

    @property
    def pid(self) -> int | None:
        """The id of the process while it runs."""
        return None if self._process is None else self._process.pid

    def start(self, user: object) -> Address:
        """Start the process if it doesn't run, and return its address. Blocks. Raises `ModelError`."""
        with self._lock:
            self._users.add(user)
            if self._process is None or self._process.poll() is not None:
                self._end()
                self._begin()
            return self._address

    def stop(self, user: object) -> None:
        """End the process unless it has other users. Blocks."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._end()

    def _begin(self) -> None:
        key = secrets.token_hex(16)
        with tempfile.TemporaryFile() as stderr_file:
            # In a session of its own: Ctrl-C in the terminal must reach only ATP, which ends the process.
            self._process = process = subprocess.Popen(  # noqa: S603  (our own file)
                [sys.executable, "-P", str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr_file,
                start_new_session=True,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                settings = {"model": str(self._file), "name": self._name, "key": key}
                process.stdin.write(json.dumps(settings).encode() + b"\n")
                process.stdin.flush()
                deadline = time.monotonic() + LOAD_SECONDS
                url = json.loads(_first_line(process.stdout, deadline))["address"]
                _wait_until_healthy(url, process, deadline)
            except (OSError, ValueError) as error:
                self._end()
                raise ModelError(
                    f"the local model {self._name} can't be loaded: {_tail(stderr_file) or error}"
                ) from error
        self._address = Address(url, key)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


_SERVERS: dict[Path, LocalServer] = {}


def server_of(file: Path, name: str) -> LocalServer:
    """The server of a model file, the same one for each call."""
    return _SERVERS.setdefault(file.resolve(), LocalServer(file, name))


def _first_line(pipe: IO[bytes], deadline: float) -> bytes:
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(deadline - time.monotonic()):
                raise TimeoutError(f"it took longer than {LOAD_SECONDS:g} s")
            piece = os.read(pipe.fileno(), 4096)
            if not piece:
                raise OSError("its process ended")
            line += piece
    return line


def _wait_until_healthy(url: str, process: "subprocess.Popen[bytes]", deadline: float) -> None:
    """Poll the health page: a server may listen before its model is loaded."""
    host = urlsplit(url).netloc
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise OSError("its process ended")
        connection = http.client.HTTPConnection(host, timeout=_STOP_SECONDS)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass  # not yet
        finally:
            connection.close()
        time.sleep(_POLL_SECONDS)
    raise TimeoutError(f"it took longer than {LOAD_SECONDS:g} s")


def _tail(stderr_file: IO[bytes]) -> str:
    """The last line that the process wrote to stderr."""
    stderr_file.seek(0)
    lines = stderr_file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
