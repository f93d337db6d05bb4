"""Prevents code that is not ours from ending the process: after `os._exit(0)` in an agent, all tests seem to pass.

`sys.exit` raises an exception, which fails one trial. The functions that end a process without an exception, or replace
its program, are replaced here by functions that raise. They raise only in this process: a fork may end itself.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import os
import sys
import threading
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING_FUNCTIONS = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end a process without an exception. The other forms of `exec` call these."""
EXIT_CODE = 3
"""Exit code of the process if the exception is not caught: an internal error, not a failed test."""

EXIT_SECONDS = 10.0
"""Seconds that threads and `atexit` functions of the user's code may take when a process of ATP's own ends."""

_STREAMS = range(3)
_CLOSED = "closed the standard streams of the tests themselves"

_REAL: dict[str, Callable[..., NoReturn]] = {name: getattr(os, name) for name in ENDING_FUNCTIONS}
_REAL_CLOSE = os.close
_REAL_CLOSERANGE = os.closerange
_REAL_START = threading.Thread.start
_REAL_START_NEW_THREAD = _thread.start_new_thread
_REAL_REGISTER = atexit.register

_FOREIGN: ContextVar[ForeignCode | None] = ContextVar("foreign", default=None)
"""Set while code that is not ours runs."""

LIVE_THREADS: set[object] = set()
"""A member for each thread in which code that is not ours runs, in a call or after one."""


_forks = 0
"""How many forks lie between this process and the one that imported this module. Cheaper to read than a process id."""


def _count_fork() -> None:
    global _forks  # noqa: PLW0603
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def forks() -> int:
    """Return a number that differs between a process and its forks."""
    return _forks


def exit_if_forked(since: int) -> None:
    """End this process if it was forked since `forks` returned `since`: else both processes would continue the run."""
    if _forks != since:
        exit_now(0)


class EndsProcess(SystemExit):
    """Raised in code that is not ours when it tries to end the process, or to close its standard streams."""

    def __init__(self, call: str, effect: str = "ended the tests themselves") -> None:
        super().__init__(f"{call} would have {effect}")
        self.code = EXIT_CODE


class ForeignCode:
    """The state of one call of code that is not ours."""

    def __init__(self) -> None:
        self.refused: list[EndsProcess] = []
        """The exits that the code attempted."""
        self.on_thread_start: Callable[[], None] | None = None
        """Called in the context of each thread that the code starts."""


class _Guard:
    """Decides which exits are refused: those of the user's code, and successful ones while a run is under way."""

    def __init__(self) -> None:
        self.active_in: int | None = None
        """The value of `forks` in the process whose exits are refused: a fork may end itself."""
        self.everywhere = False
        self.runs = 0
        self.hosted = False
        """True once code that is not ours was called in this process."""

    def refuses(self, name: str, args: tuple[Any, ...]) -> bool:
        if forks() != self.active_in:
            return False
        if self.everywhere or _FOREIGN.get() is not None or sys.is_finalizing():
            return True  # when the interpreter ends, only objects that the user's code left behind call this
        # Code of the host process, or of an unmarked thread: may crash, but not exit with success during a run.
        fails = name == "abort" or (name == "_exit" and args[:1] != (0,))
        return self.runs > 0 and not fails

    def begin_run(self) -> None:
        """Refuse exits while a run is under way."""
        if self.active_in != forks():
            refuse_exits()
        self.runs += 1
        self.hosted = True

    def end_run(self) -> None:
        """Count a run as ended."""
        self.runs -= 1


GUARD = _Guard()


def refuse_exits(everywhere: bool = False) -> None:
    """Refuse exits of code that is not ours from now on, or, with `everywhere`, of all code in the process.

    Not undone before the process ends, because that is when the `atexit` functions of the user's code are called, and
    its objects deleted: they look up `os._exit` then.
    """
    here = GUARD.active_in == forks()
    if here and not everywhere:
        return
    GUARD.everywhere = everywhere or (GUARD.everywhere and here)
    GUARD.active_in = forks()
    for module in (os, sys.modules.get("posix")):
        for name, real in _REAL.items():
            if module is not None and getattr(module, name) is real:
                setattr(module, name, _refusing(name, real))
    os.close, os.closerange = _close, _closerange
    threading.Thread.start = _start  # type: ignore[method-assign,assignment]
    _thread.start_new_thread = _start_new_thread
    atexit.register = _register  # type: ignore[assignment]


def exit_now(code: int) -> NoReturn:
    """End this process immediately, on behalf of ATP."""
    _REAL["_exit"](code)


def leave(code: int) -> NoReturn:
    """End this process, which is ATP's own, in good order, and with `code` even if the user's code prevents that.

    Ends the process for good: only for a caller after which nothing else is called.

    The interpreter waits for all threads that are not daemons, and calls all `atexit` functions, before it ends.
    """
    if GUARD.hosted:
        with suppress(RuntimeError):  # the user's code has lowered the limit of threads
            _REAL_START(threading.Thread(target=_end_late, args=(code,), daemon=True))
    sys.exit(code)


def _end_late(code: int) -> None:
    threading.Event().wait(EXIT_SECONDS)
    running = [one.name for one in threading.enumerate() if not (one.daemon or one is threading.main_thread())]
    what = f"its threads {', '.join(running)} are running" if running else "a function that it registered is running"
    with suppress(OSError):
        os.write(2, f"atp: the code under test does not end: {what}. They are not waited for.\n".encode())
    exit_now(code)


def mark_foreign(code: ForeignCode) -> None:
    """Mark what runs in this context from now on as code that is not ours.

    Threads that the code starts are marked too, and what they print is captured with what the code prints.
    """
    _FOREIGN.set(code)


def runs_foreign() -> bool:
    """True while code that is not ours runs in this context."""
    return _FOREIGN.get() is not None


@contextmanager
def foreign() -> Iterator[ForeignCode]:
    """Mark what runs inside as code that is not ours."""
    GUARD.begin_run()
    code = ForeignCode()
    before, process = _FOREIGN.set(code), forks()
    try:
        yield code
    finally:
        exit_if_forked(process)
        _FOREIGN.reset(before)
        GUARD.end_run()


def _refusing(name: str, real: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    @wraps(real)
    def end(*args: Any, **kwargs: Any) -> NoReturn:
        if GUARD.refuses(name, args or tuple(kwargs.values())):
            shown = ", ".join(repr(one) for one in (args[:1] if name == "execve" else args))
            _refuse(EndsProcess(f"os.{name}({shown})"))
        real(*args, **kwargs)

    return end


def _refuse(error: EndsProcess) -> NoReturn:
    code = _FOREIGN.get()
    if code is not None:
        code.refused.append(error)
    raise error


# The streams that code closes by other functions are opened again when a call ends: `printed.restore_streams`. But then
# several calls may be running, and it can't be told which of them is to blame.


@wraps(_REAL_CLOSE)
def _close(fd: int) -> None:
    if fd in _STREAMS and _FOREIGN.get() is not None and forks() == GUARD.active_in:
        _refuse(EndsProcess(f"os.close({fd})", _CLOSED))
    _REAL_CLOSE(fd)


@wraps(_REAL_CLOSERANGE)
def _closerange(fd_low: int, fd_high: int, /) -> None:
    if fd_low in _STREAMS and fd_high > fd_low and _FOREIGN.get() is not None and forks() == GUARD.active_in:
        _refuse(EndsProcess(f"os.closerange({fd_low}, {fd_high})", _CLOSED))
    _REAL_CLOSERANGE(fd_low, fd_high)


# A thread, and what is called at the end of the process, has another context. Without these functions, what the user's
# code starts or registers there would not be marked.


def _start(thread: threading.Thread) -> None:
    code = _FOREIGN.get()
    if code is None:
        _REAL_START(thread)
        return
    before, member = thread.run, object()
    thread.run = _inheriting(before, code, member)  # type: ignore[method-assign]
    try:
        _REAL_START(thread)
    except BaseException:  # it was started before, or there are too many threads
        thread.run = before  # type: ignore[method-assign]
        LIVE_THREADS.discard(member)
        raise


def _start_new_thread(function: Callable[..., Any], args: tuple[Any, ...], *more: Any) -> int:
    code = _FOREIGN.get()
    if code is None:
        return _REAL_START_NEW_THREAD(function, args, *more)
    member = object()
    try:
        return _REAL_START_NEW_THREAD(_inheriting(function, code, member), args, *more)
    except BaseException:
        LIVE_THREADS.discard(member)
        raise


def _inheriting(function: Callable[..., Any], code: ForeignCode, member: object) -> Callable[..., None]:
    """Wrap the function of a new thread; `member` is in `LIVE_THREADS` from now on until the thread ends."""
    context = contextvars.copy_context()
    if code.on_thread_start is not None:
        context.run(code.on_thread_start)
    LIVE_THREADS.add(member)  # not in the thread: what starts it may be over before the thread has begun

    def run(*args: Any, **kwargs: Any) -> None:
        try:
            context.run(function, *args, **kwargs)
        except SystemExit:
            return  # ends only the thread, as always in Python. Refused exits are recorded already
        except BaseException:
            # In the context, so that the traceback is captured with what the code prints.
            args = (*sys.exc_info(), threading.current_thread())
            with suppress(BaseException):  # the hook may be the user's. Python would call it again, unmarked
                context.run(threading.excepthook, threading.ExceptHookArgs(args))
        finally:
            LIVE_THREADS.discard(member)

    return run


class _AtExit:
    """A function that code which is not ours has registered to be called at the end of the process.

    Equal to the function itself, so that `atexit.unregister` finds it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._context = contextvars.copy_context()

    def __eq__(self, other: object) -> bool:
        return self._function == other

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        try:
            self._context.run(self._function, *args, **kwargs)
        except EndsProcess as error:
            sys.stderr.write(f"atp: at the end of the process: {error}\n")


def _register(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    _REAL_REGISTER(function if _FOREIGN.get() is None else _AtExit(function), *args, **kwargs)
    return function
