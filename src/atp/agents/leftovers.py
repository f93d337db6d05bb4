"""Ends processes that agents left behind, found by a marker in their environment.

A process can leave its group and its session, but keeps its environment, which Linux shows in `/proc`. Without `/proc`
only process groups are ended. Forks of ATP's own process (`os.fork`) have the environment that ATP was started with:
they are recorded when they are made.
"""

import contextlib
import mmap
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from time import clock_gettime_ns

from atp.usercode.exits import runs_foreign

OF_RUN = "ATP_RUN"
"""The environment variable of all processes of a run."""
OF_AGENT = "ATP_STARTED_BY"
"""The environment variable of all processes of one agent of a run."""
OF_PROCESS = "ATP_PROCESS"
"""The environment variable of one process that ATP started, and of all that it started."""
_PROC = Path("/proc")


def end_leftovers(marker: str, variable: str = OF_RUN, within: float = 2.0, forks: "Forks | None" = None) -> int:
    """Kill every process with a marker, and every one of `forks`, new ones included, and return their number."""
    return _end(lambda pid: _has(pid, marker, variable) or (forks is not None and pid in forks), within)


def marked(marker: str, variable: str = OF_RUN) -> Iterator[int]:
    """Yield the running processes with a marker, other than this one."""
    return _those(lambda pid: _has(pid, marker, variable))


class Forks:
    """The forks of this process (`os.fork`) that are made from now on, and their forks.

    The time of each fork is written to its place in memory that all of them share. There is no descriptor that a daemon
    could close. A process that got the number of a fork later has started after that time.
    """

    def __init__(self, *, only_of_user_code: bool = False) -> None:
        """With `only_of_user_code`, forks that the program which uses ATP makes by itself are not counted."""
        self._only_of_user_code = only_of_user_code
        self._process = os.getpid()
        self._times: mmap.mmap | None = None
        with contextlib.suppress(OSError, ValueError):  # not Linux, or too little memory: forks are not ended
            self._times = mmap.mmap(-1, (int(_PID_MAX.read_text()) + 1) * _TIME.size)
            _RECORDING.add(self)

    def __contains__(self, pid: int) -> bool:
        if self._times is None or self._process != os.getpid():
            return False
        recorded: int = _TIME.unpack_from(self._times, pid * _TIME.size)[0]
        return recorded > 0 and _started_ns(pid) <= recorded

    def record(self, pid: int) -> None:
        """Add a process that the code which is running has just forked."""
        if self._times is not None and (runs_foreign() or not self._only_of_user_code):
            _TIME.pack_into(self._times, pid * _TIME.size, clock_gettime_ns(time.CLOCK_BOOTTIME))


_PID_MAX = _PROC / "sys" / "kernel" / "pid_max"
_TIME = Struct("Q")
"""Nanoseconds since the computer was started."""
_RECORDING: "weakref.WeakSet[Forks]" = weakref.WeakSet()


class _Forking(threading.local):
    """The children that a thread had before it forked."""

    before: frozenset[int] = frozenset()


_FORKING = _Forking()


def _record(pid: int) -> None:
    for forks in _RECORDING:
        forks.record(pid)


def _before_fork() -> None:
    _FORKING.before = _children() if _RECORDING else frozenset()


def _after_fork_in_parent() -> None:
    # The parent may look for forks, or end, before the fork has run at all: the fork can't be left to record itself.
    # But it does, too: its parent may be killed, and not every kernel tells of a thread's children.
    for pid in _children() - _FORKING.before if _RECORDING else ():
        _record(pid)


def _children() -> frozenset[int]:
    """The children that this thread has started."""
    try:
        return frozenset(map(int, (_PROC / "thread-self" / "children").read_bytes().split()))
    except OSError:
        return frozenset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=lambda: _record(os.getpid()),
    )


def _started_ns(pid: int) -> float:
    """When a process was started, in nanoseconds since the computer was; infinity if there is no such process."""
    try:
        # The name of the process, in brackets, may have blanks. The state is the third field, the start the 22nd.
        ticks = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[19]
    except (OSError, IndexError):
        return float("inf")
    return int(ticks) * 1e9 / os.sysconf("SC_CLK_TCK")


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
