"""Calls `atp` in a process of its own without importing it anew each time, which is most of what a short call costs.

A first process, the starter, imports ATP's commands and then waits. For each call it makes a copy of itself that takes
over the call's arguments, folder, environment and streams, and does what `python -m atp` does. What has to be there
before Python starts can't be taken over: calls that set any of that get a Python of their own.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from time import monotonic
from typing import Any

from tests.waiting import WAIT_LIMIT

FORKED_ATP = Path(__file__).with_name("forked_atp.py")
READ_WHEN_PYTHON_STARTS = ("PYTHON", "LANG", "LC_", "LD_", "COVERAGE")
"""How the names of those variables begin that only a new Python sees."""


def run_atp(
    *arguments: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,  # noqa: A002  (the name that subprocess.run gives it)
    timeout: float = WAIT_LIMIT,
    merged: bool = False,
    **more: Any,
) -> "subprocess.CompletedProcess[str]":
    """Call `atp` and wait for it. Takes what `subprocess.run` takes, and leaves to it what a copy can't be given.

    `merged`: stderr goes where stdout goes.
    """
    starter = _starter()
    environment = dict(os.environ if env is None else env)
    if more or not starter.can_give(environment):
        errors = subprocess.STDOUT if merged else subprocess.PIPE
        usual: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": errors, "encoding": "utf-8"}
        settings = {**usual, "cwd": cwd, "env": env, "input": input, "timeout": timeout, **more}
        return subprocess.run([sys.executable, "-m", "atp", *arguments], check=False, **settings)
    call = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": environment, "merged": merged}
    return starter.run(call, None if input is None else input.encode(), timeout)


class Starter:
    """The process that has ATP imported, seen from the tests."""

    def __init__(self) -> None:
        self._environment = _for_python(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, str(FORKED_ATP), str(number)]
            pipe = subprocess.PIPE  # as the calls have them: Python looks at once what its streams are
            self._process = subprocess.Popen(command, pass_fds=[number], stdin=pipe, stdout=pipe, stderr=pipe)

    def close(self) -> None:
        """It ends when nobody can ask it any more."""
        self._socket.close()
        self._process.communicate()

    def can_give(self, environment: Mapping[str, str]) -> bool:
        """Whether a copy of the process differs in nothing from a new Python with these variables."""
        return _for_python(environment) == self._environment

    def run(self, call: dict[str, Any], said: bytes | None, timeout: float) -> "subprocess.CompletedProcess[str]":
        """Have a call carried out, and wait until it has ended and nothing holds its streams any more."""
        deadline = monotonic() + timeout
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out, out_theirs = os.pipe()
        err, err_theirs = os.pipe()
        said_theirs, saying = (os.dup(0), None) if said is None else os.pipe()
        given = [said_theirs, out_theirs, err_theirs, theirs.fileno()]
        socket.send_fds(self._socket, [json.dumps(call).encode()], given)
        theirs.close()
        for one in given[:3]:
            os.close(one)
        with ours, ThreadPoolExecutor(3) as pool:
            if saying is not None:
                pool.submit(_write_all, saying, said or b"")
            reading = [pool.submit(_read_all, one) for one in (out, err)]
            child = self._told(ours)
            try:
                stdout, stderr = (one.result(deadline - monotonic()) for one in reading)
                ours.settimeout(max(0.0, deadline - monotonic()))
                code = self._told(ours)
            except TimeoutError:
                os.kill(child, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["atp", *call["arguments"]], timeout) from None
        return subprocess.CompletedProcess(["atp", *call["arguments"]], code, stdout, stderr)

    def _told(self, wire: socket.socket) -> int:
        if not (number := wire.recv(100)):
            raise AssertionError(f"the starter has failed: {self._process.communicate()[1].decode()}")
        return int(number)


@cache
def _starter() -> Starter:
    made = Starter()
    atexit.register(made.close)
    return made


def _for_python(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_WHEN_PYTHON_STARTS)}


def _read_all(pipe: int) -> str:
    with open(pipe, encoding="utf-8") as stream:
        return stream.read()


def _write_all(pipe: int, content: bytes) -> None:
    try:
        with open(pipe, "wb") as stream:
            stream.write(content)
    except BrokenPipeError:
        pass  # it did not read to the end, which is its own business
