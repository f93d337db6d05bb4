"""Timers that end the process when code holds the Python interpreter: what they do, the C library does by itself."""

import contextlib
import ctypes
import faulthandler
import signal
import sys
import time

_STDERR = 2


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


class CpuTimers:
    """Two timers of the C library. The first prints what is wrong, the second ends the process, half a second later.

    They count the CPU time of the process: a process that is stopped, sleeps or is starved by others spends none. What
    they do needs no interpreter. The first calls `warnx` in a thread of the C library. The second sends `SIGQUIT`:
    Python's `faulthandler` prints the stacks of all threads, and then `_exit` is called as the signal's handler. A
    handler is called with the signal's number; that of `SIGQUIT` is 3, and so is the exit code.
    """

    def __init__(self, libc: ctypes.CDLL, text: str) -> None:
        assert "%" not in text, "the text is a format string of `warnx`, which gets no other arguments"
        self._libc = libc
        self._text = text.encode()  # the timer has only its address
        self._warn = self._new(_SignalEvent(self._text, 0, _SIGEV_THREAD, _address(libc.warnx)))
        self._exit = self._new(_SignalEvent(None, signal.SIGQUIT, _SIGEV_SIGNAL))
        libc.signal.restype = ctypes.c_void_p
        libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._handler = libc.signal(signal.SIGQUIT, _address(libc._exit))
        faulthandler.register(signal.SIGQUIT, file=_STDERR, chain=True)
        self._name: ctypes.c_void_p | None = None
        with contextlib.suppress(ValueError):  # a C library without the name that its warnings begin with
            self._name = ctypes.c_void_p.in_dll(libc, "program_invocation_short_name")
            self._own_name = self._name.value
            self._name.value = _address(ctypes.c_char_p(_PROGRAM)).value

    @classmethod
    def create(cls, text: str) -> "CpuTimers | None":
        """Create the timers, unset; the first will print `text`. None where the system has no such timers."""
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
            return None
        try:
            return cls(ctypes.CDLL(None), text)
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
        """Delete the timers, and put back what else of the process they have changed."""
        for timer in (self._exit, self._warn):
            self._libc.timer_delete(timer)
        faulthandler.unregister(signal.SIGQUIT)
        self._libc.signal(signal.SIGQUIT, self._handler)
        if self._name is not None:
            self._name.value = self._own_name


def _address(of: object) -> ctypes.c_void_p:
    return ctypes.cast(of, ctypes.c_void_p)  # type: ignore[arg-type]
