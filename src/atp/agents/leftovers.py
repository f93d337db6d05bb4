"""Ends processes that agents left behind, found by a marker in their environment.

A process can leave its group and its session, but keeps its environment, which Linux shows in `/proc`. Without `/proc`
only process groups are ended. Forks of ATP's own process (`os.fork`) have the environment that ATP was started with;
they are found by a file that is open in them, too.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

OF_RUN = "ATP_RUN"
"""The environment variable of all processes of a run."""
OF_AGENT = "ATP_STARTED_BY"
"""The environment variable of all processes of one agent of a run."""
OF_PROCESS = "ATP_PROCESS"
"""The environment variable of one process that ATP started, and of all that it started."""
_PROC = Path("/proc")


def end_leftovers(marker: str, variable: str = OF_RUN, within: float = 2.0) -> int:
    """Kill every process with a marker, new ones included, and return their number."""
    return _end(lambda pid: _has(pid, marker, variable), within)


def marked(marker: str, variable: str = OF_RUN) -> Iterator[int]:
    """Yield the running processes with a marker, other than this one."""
    return _those(lambda pid: _has(pid, marker, variable))


class Forks:
    """The forks of this process (`os.fork`) that are made from now on, and their forks."""

    def __init__(self) -> None:
        self._about: os.stat_result | None = None
        with contextlib.suppress(AttributeError, OSError):  # not Linux, or no file can be opened: forks are not ended
            self._file = os.memfd_create("atp")
            self._about = os.fstat(self._file)
        self._process = os.getpid()

    def end(self, within: float = 2.0) -> None:
        """Kill the forks. Called once, in the original process."""
        about, own = self._about, os.getpid()
        # An agent may have closed the file, and its number may be that of a file which other processes have, too.
        if about is not None and own == self._process and self._is_open(own, about):
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
        # A dead process that is not collected yet shows no environment.
        return f"{variable}={marker}".encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return False


def _kill(pid: int, is_one: Callable[[int], bool]) -> None:
    """Kill a process, but not another process that got its number since."""
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
