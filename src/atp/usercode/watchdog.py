"""Ends a process of ATP's own when code that is not ours keeps the event loop, or the whole interpreter, for good.

A thread wakes up once a second. It sees that the event loop has no turn any more, as with an `async def` that blocks.
Code that holds the interpreter, as a regular expression can for years, holds up that thread too. For this there are
timers of the C library, which the thread sets back each time. See docs/design/usercode.md.
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from atp.usercode.exits import EXIT_CODE, exit_now

TICK = 1.0
"""Seconds between two looks at the event loop."""
GRACE = 30.0
"""Seconds by which the code under test may exceed the longest timeout of the trials that are running."""
CPU_GRACE = 5.0
"""CPU seconds of each processor that may pass between two ticks: code that has let the interpreter go may use all."""
_ADVICE = (
    "so that no timeout could end it. What is finished is in the journal: go on with --resume. "
    "An agent with python: has a process of its own, which can be ended."
)
BLOCKED = f"the code under test has blocked the event loop for longer than a trial may take, {_ADVICE}"
HELD = f"the code under test has held the Python interpreter for longer than a trial may take, {_ADVICE}"
_STDERR = 2


class Watchdog:
    """Watches an event loop until the end of the `with` block. To be entered in the thread of the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit: Callable[[], float | None],
        usual: float,
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        """`limit` returns for how many seconds the loop may be blocked, apart from the grace. Called in another thread.

        It returns None while there is no limit. As a trial may begin and hold the interpreter before that is noticed,
        the limit of the longest trial of all, `usual` seconds, is in force then, but only for the interpreter. `leave`
        is called before the process ends, if the interpreter lets it.
        """
        self._loop = loop
        self._limit = limit
        self._usual = usual
        self._leave = leave
        self._loops_thread = threading.get_ident()
        self._timers = _Timers.create()
        self._ended = threading.Event()
        self._had_turn = False

    def __enter__(self) -> None:
        self._set_timers()
        threading.Thread(target=self._watch, name="atp-watchdog", daemon=True).start()

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        if self._timers is not None:
            self._timers.close()

    def _set_timers(self) -> float | None:
        limit = self._limit()
        if self._timers is not None:
            self._timers.set(max((limit or self._usual) + GRACE, CPU_GRACE * (os.cpu_count() or 1)))
        return limit

    def _watch(self) -> None:
        # Counts its own turns, not the time. It has none while the process is stopped or the computer sleeps, and on a
        # busy computer the loop gets its turns when this thread does.
        missed = 0
        self._ask_for_turn()
        while not self._ended.wait(TICK):
            limit = self._set_timers()
            if self._had_turn or limit is None:
                missed = 0
                self._ask_for_turn()
                continue
            missed += 1
            if missed * TICK > limit + GRACE:
                self._end_process()

    def _ask_for_turn(self) -> None:
        self._had_turn = False
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(self._take_turn)

    def _take_turn(self) -> None:
        self._had_turn = True

    def _end_process(self) -> None:
        frame = sys._current_frames().get(self._loops_thread)
        stack = "".join(traceback.format_stack(frame, limit=10))
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"atp: {BLOCKED}\n{stack}".encode(errors="backslashreplace"))
        self._leave()
        exit_now(EXIT_CODE)


class _SignalEvent(ctypes.Structure):
    """`struct sigevent` of Linux."""

    _fields_ = (
        ("value", ctypes.c_char_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("unused", ctypes.c_char * 32),
    )


class _Interval(ctypes.Structure):
    """`struct itimerspec`: the period, which is none, and the time until the timer expires."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("period_s", "period_ns", "seconds", "nanoseconds"))


_SIGEV_SIGNAL, _SIGEV_THREAD = 0, 2
_PROGRAM = b"atp"


class _Timers:
    """Two timers of the C library. The first prints what is wrong, the second ends the process, half a second later.

    They count the CPU time of the process: a process that is stopped, sleeps or is starved by others spends none. What
    they do needs no interpreter. The first calls `warnx` in a thread of the C library. The second sends `SIGQUIT`:
    Python's `faulthandler` prints the stacks of all threads, and then `_exit` is called as the signal's handler. A
    handler is called with the signal's number; that of `SIGQUIT` is 3, and so is the exit code.
    """

    def __init__(self, libc: ctypes.CDLL) -> None:
        self._libc = libc
        self._text = HELD.encode()  # the timer has only its address
        self._warn = self._new(_SignalEvent(self._text, 0, _SIGEV_THREAD, _address(libc.warnx)))
        self._exit = self._new(_SignalEvent(None, signal.SIGQUIT, _SIGEV_SIGNAL))
        libc.signal.restype = ctypes.c_void_p
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._handler = libc.signal(signal.SIGQUIT, _address(libc._exit))
        faulthandler.register(signal.SIGQUIT, file=_STDERR, chain=True)
        with contextlib.suppress(ValueError):  # a C library without the name that its warnings begin with
            ctypes.c_char_p.in_dll(libc, "program_invocation_short_name").value = _PROGRAM

    @classmethod
    def create(cls) -> "_Timers | None":
        """Create the timers, unset. None where the system has no such timers."""
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
            return None
        try:
            return cls(ctypes.CDLL(None))
        except (AttributeError, OSError):
            return None

    def _new(self, event: _SignalEvent) -> ctypes.c_void_p:
        timer = ctypes.c_void_p()
        if self._libc.timer_create(time.CLOCK_PROCESS_CPUTIME_ID, ctypes.byref(event), ctypes.byref(timer)):
            raise OSError("timer_create failed")
        return timer

    def set(self, seconds: float) -> None:
        """Let the timers expire after so many CPU seconds from now."""
        for timer, after in ((self._exit, seconds + 0.5), (self._warn, seconds)):
            self._libc.timer_settime(timer, 0, ctypes.byref(_Interval(0, 0, int(after), int(after % 1 * 1e9))), None)

    def close(self) -> None:
        """Delete the timers."""
        for timer in (self._exit, self._warn):
            self._libc.timer_delete(timer)
        faulthandler.unregister(signal.SIGQUIT)
        self._libc.signal(signal.SIGQUIT, self._handler)


def _address(function: object) -> ctypes.c_void_p:
    return ctypes.cast(function, ctypes.c_void_p)  # type: ignore[arg-type]
