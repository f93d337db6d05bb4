"""Processes that agents left behind, found by a marker in their environment.

A process can leave its group and its session, but it takes its environment along. Linux shows that in `/proc`; where
there is none, only process groups are ended. Copies of our own process (`os.fork`) show the environment that we were
started with; they are found by a file that is open in them too.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

OF_RUN = "ATP_RUN"
"""The variable that marks all processes of a run."""
OF_AGENT = "ATP_STARTED_BY"
"""The variable that marks all processes of one agent of a run."""
OF_PROCESS = "ATP_PROCESS"
"""The variable that marks one process that we started, and all that it started."""
_PROC = Path("/proc")


def end_leftovers(marker: str, variable: str = OF_RUN, within: float = 2.0) -> int:
    """Kill every process with this marker; how many there were. Those that are born meanwhile are found too."""
    return _end(lambda pid: _has(pid, marker, variable), within)


def marked(marker: str, variable: str = OF_RUN) -> Iterator[int]:
    """The processes with this marker that live, ourselves aside."""
    return _those(lambda pid: _has(pid, marker, variable))


class Copies:
    """The copies of this process that are made from now on, and theirs."""

    def __init__(self) -> None:
        try:
            self._file = os.memfd_create("atp")
        except (AttributeError, OSError):  # not Linux, or no file can be opened: they end when they end
            self._file = -1
        self._process = os.getpid()

    def end(self, within: float = 2.0) -> None:
        """Kill them. To be called once, and in the process itself."""
        if self._file >= 0 and os.getpid() == self._process:
            about = os.fstat(self._file)
            _end(lambda pid: self._is_open(pid, about), within)
            os.close(self._file)

    def _is_open(self, pid: int, about: os.stat_result) -> bool:
        try:
            return os.path.samestat((_PROC / str(pid) / "fd" / str(self._file)).stat(), about)
        except OSError:
            return False


def _end(is_one: Callable[[int], bool], within: float) -> int:
    ended: set[int] = set()
    deadline = time.monotonic() + within
    while found := list(_those(is_one)):
        for pid in found:
            _kill(pid, is_one)
        ended.update(found)
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return len(ended)


def _those(is_one: Callable[[int], bool]) -> Iterator[int]:
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    own = os.getpid()
    for name in names:
        if name.isdecimal() and int(name) != own and is_one(int(name)):
            yield int(name)


def _has(pid: int, marker: str, variable: str) -> bool:
    try:
        # One that has died and waits to be collected shows no environment.
        return f"{variable}={marker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or somebody else's
        return False


def _kill(pid: int, is_one: Callable[[int], bool]) -> None:
    """Kill a process, and not another that has been given its number since."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # gone, or a system without handles
        with contextlib.suppress(OSError):
            if is_one(pid):
                os.kill(pid, signal.SIGKILL)
        return
    with contextlib.suppress(OSError):
        if is_one(pid):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    os.close(handle)
