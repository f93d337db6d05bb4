"""The process that `tests/starting.py` forks `atp` from. Imports nothing of the tests: user code must not find them.

For each call it forks a copy of itself that takes over the call's arguments, folder, environment and streams, and then
does what `python -m atp` does.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys
from importlib import import_module
from time import tzset

IMPORTED = (
    *("atp.cli.main", "atp.cli.test", "atp.cli.validate", "atp.cli.show", "atp.cli.report"),
    *(
        "atp.engine.signals",
        "atp.engine.prepare.dry_run",
        "atp.engine.prepare.plan",
        "atp.report.choose",
        "atp.agents.registry",
    ),
    *("atp.loader.cases", "atp.loader.jsonl.records", "atp.loader.markdown", "markdown_it", "aiohttp"),
)
"""What many calls import. That `atp` starts without most of it is for tests with a Python of their own to show."""
LONGEST_CALL = 200_000
"""Bytes that go through the socket as one message."""


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
