"""Processes that agents left behind, found by a marker in their environment.

A process can leave its group and its session, but it takes its environment along. Linux shows that in `/proc`; where
there is none, only process groups are ended.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

OF_RUN = "ATP_RUN"
"""The variable that marks all processes of a run."""
OF_PROCESS = "ATP_PROCESS"
"""The variable that marks one process that we started, and all that it started."""
_PROC = Path("/proc")


def end_leftovers(marker: str, variable: str = OF_RUN, within: float = 2.0) -> int:
    """Kill every process with this marker; how many there were. Those that are born meanwhile are found too."""
    ended: set[int] = set()
    deadline = time.monotonic() + within
    while found := list(marked(marker, variable)):
        for pid in found:
            _kill(pid, marker, variable)
        ended.update(found)
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return len(ended)


def marked(marker: str, variable: str = OF_RUN) -> Iterator[int]:
    """The processes with this marker that live, ourselves aside."""
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    own = os.getpid()
    for name in names:
        if name.isdecimal() and int(name) != own and _has(int(name), marker, variable):
            yield int(name)


def _has(pid: int, marker: str, variable: str) -> bool:
    try:
        # One that has died and waits to be collected shows no environment.
        return f"{variable}={marker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or somebody else's
        return False


def _kill(pid: int, marker: str, variable: str) -> None:
    """Kill a process, and not another that has been given its number since."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # gone, or a system without handles
        with contextlib.suppress(OSError):
            if _has(pid, marker, variable):
                os.kill(pid, signal.SIGKILL)
        return
    with contextlib.suppress(OSError):
        if _has(pid, marker, variable):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
