"""Calls `atp` in a process of its own without importing it anew each time, which is most of what a short call costs.

A first process, the starter, imports ATP's commands and then waits. For each call it makes a copy of itself that takes
over the call's arguments, folder, environment and streams, and does what `python -m atp` does. What has to be there
before Python starts can't be taken over: calls that set any of that get a Python of their own.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from time import monotonic, tzset
from typing import Any

READ_WHEN_PYTHON_STARTS = ("PYTHON", "LANG", "LC_", "LD_", "COVERAGE")
"""How the names of those variables begin that only a new Python sees."""
IMPORTED = (
    *("atp.cli.main", "atp.cli.test", "atp.cli.validate", "atp.cli.show", "atp.cli.report"),
    *(
        "atp.engine.signals",
        "atp.engine.prepare.dry_run",
        "atp.engine.prepare.planning",
        "atp.report.choose",
        "atp.agents.registry",
    ),
    *("atp.loader.cases", "atp.loader.jsonl.records", "atp.loader.markdown", "markdown_it", "aiohttp"),
)
"""What many calls import. That `atp` starts without most of it is for tests with a Python of their own to show."""
LONGEST_CALL = 200_000
"""Bytes that go through the socket as one message."""


def run_atp(
    *arguments: str,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,  # noqa: A002  (the name that subprocess.run gives it)
    timeout: float = 60,
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
            command = [sys.executable, __file__, str(number)]
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


def _serve(calls: socket.socket) -> None:
    """The starter's side. Returns in each copy, ready to be `atp`. The starter leaves when it is asked no more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for the calls
    while True:
        message, given, *_ = socket.recv_fds(calls, LONGEST_CALL, 4)
        if not message:
            sys.exit()
        if not os.fork():
            break
        for one in given:
            os.close(one)
    calls.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, answer = given
    if child := os.fork():
        _wait_for(child, streams, answer)
    os.close(answer)
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    call = json.loads(message)
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    tzset()
    if call["merged"]:
        os.dup2(1, 2)
    sys.argv[1:] = call["arguments"]
    sys.path[0] = call["cwd"]


def _wait_for(child: int, streams: list[int], answer: int) -> None:
    for one in streams:
        os.close(one)
    with socket.socket(fileno=answer) as wire:
        wire.send(str(child).encode())
        _, status = os.waitpid(child, 0)
        wire.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, which atp would not see
    for name in IMPORTED:
        import_module(name)
    gc.freeze()
    sys.path.insert(0, "")
    _serve(socket.socket(fileno=int(sys.argv.pop())))
    runpy.run_module("atp", run_name="__main__", alter_sys=True)
