"""The process that `tests/starting.py` forks `atp` from. Imports nothing of the tests: user code must not find them.

For each call it forks a copy of itself that takes over the call's arguments, folder, environment and streams, and then
does what `python -m atp` does.
"""

import atexit
import gc
import json
import os
import runpy
import select
import socket
import sys
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from time import tzset
from typing import NoReturn

IMPORTED = (
    *("atp.cli.main", "atp.cli.test", "atp.cli.validate", "atp.cli.show", "atp.cli.report", "atp.cli.runs"),
    *("atp.cli.agents", "atp.cli.chat", "atp.cli.convert", "atp.engine.agent_check", "atp.engine.chat"),
    *(
        "atp.engine.prepare.dry_run",
        "atp.engine.prepare.check_suite",
        "atp.agents.python.function",
        "atp.usercode.watchdog",
    ),
    *("atp.checks.behavior", "atp.checks.groups", "atp.journal.recorded_run", "atp.journal.find"),
    *("atp.report.choose", "atp.report.html.report", "atp.report.formats.json", "atp.report.formats.junit"),
    *("aiohttp", "jinja2"),
)
"""What many calls import. That `atp` starts without most of it is for tests with a Python of their own to show."""
EXAMPLES = Path(__file__).parents[1] / "examples"
LOADED = ("files.yaml", "expense.jsonl", "ocean.test.md")
"""A file of each format. To load one has pydantic build its validators, which takes longer than a call."""
LONGEST_CALL = 200_000
"""Bytes that go through the socket as one message."""

_exit = os._exit  # ATP replaces it


def _serve(calls: socket.socket) -> None:
    """The starter's side. Returns in each copy, ready to be `atp`. The starter leaves when it is asked no more."""
    running: dict[int, tuple[int, int]] = {}
    events = select.poll()
    events.register(calls, select.POLLIN)
    while True:
        for ready, _ in events.poll():
            if ready in running:
                events.unregister(ready)
                _report_end(ready, *running.pop(ready))
                continue
            message, given, *_ = socket.recv_fds(calls, LONGEST_CALL, 4)
            if not message:
                sys.exit()
            *streams, answer = given
            if not (child := os.fork()):
                calls.close()
                for process, (_, other) in running.items():
                    os.close(process)
                    os.close(other)
                os.close(answer)
                _take_over(message, streams)
                return
            for one in streams:
                os.close(one)
            os.write(answer, str(child).encode())
            process = os.pidfd_open(child)
            running[process] = child, answer
            events.register(process, select.POLLIN)


def _report_end(process: int, child: int, answer: int) -> None:
    _, status = os.waitpid(child, 0)
    with suppress(BrokenPipeError):  # the call took too long, and is not waited for
        os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(process)
    os.close(answer)


def _take_over(message: bytes, streams: list[int]) -> None:
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


def _leave(code: int) -> NoReturn:
    """Do what Python does when it ends, but delete no modules: to copy the memory they share takes longer than a call.

    What shows that ATP ends well even though user code left objects that would end the process has a Python of its own.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()  # what ATP left unfinished says so now
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _exit(code)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file, which atp would not see
    for name in IMPORTED:
        import_module(name)
    load_path = import_module("atp.loader.load").load_path
    for name in LOADED:
        load_path(EXAMPLES / name)
    gc.collect()
    gc.freeze()
    sys.path.insert(0, "")
    _serve(socket.socket(fileno=int(sys.argv.pop())))
    try:
        runpy.run_module("atp", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        if type(left.code) is int:
            # A stream that takes nothing is for Python to report, with an exit code of its own.
            with suppress(OSError, ValueError, AttributeError):
                _leave(left.code)
        raise
