"""Keeps code that is not ours from ending the process: `os._exit(0)` in an agent would look as if all had passed.

`sys.exit` raises an exception, which costs one trial. The calls that end a process at once, or put another program in
its place, are replaced here by functions that raise as well. Only in this process: a fork of it ends as it wants to.
"""

from __future__ import annotations

import _thread
import contextvars
import os
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDS = ("_exit", "abort", "execv", "execve")
"""Functions of `os` that end a process without an exception; the other forms of `exec` call these."""
ENDED = 3
"""Exit code of the process if nobody catches the exception: something other than the tests broke."""

_REAL: dict[str, Callable[..., NoReturn]] = {name: getattr(os, name) for name in ENDS}
_REAL_START = threading.Thread.start
_REAL_START_NEW_THREAD = _thread.start_new_thread

_FOREIGN: ContextVar[ForeignCode | None] = ContextVar("foreign", default=None)
"""Set while code that is not ours runs."""


class EndsProcess(SystemExit):
    """Raised in code that is not ours when it tries to end the process."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} would have ended the tests themselves")
        self.code = ENDED


class ForeignCode:
    """What one call of code that is not ours has done to the process."""

    def __init__(self) -> None:
        self.refused: list[EndsProcess] = []
        """The exits that were refused to it."""
        self.threads = 0
        """How many threads of its own are alive."""


class _Guard:
    """Decides which exits are refused: those of the user's code, and successful ones while a run is under way."""

    def __init__(self) -> None:
        self.process: int | None = None
        self.everywhere = False
        self.runs = 0

    def refuses(self, name: str, args: tuple[Any, ...]) -> bool:
        if os.getpid() != self.process:
            return False
        if self.everywhere or _FOREIGN.get() is not None:
            return True
        # The host's own code, or a thread whose starter is unknown. A crash is its right, but it can't end a run well.
        fails = name == "abort" or (name == "_exit" and args[:1] != (0,))
        return self.runs > 0 and not fails

    def begin_run(self) -> None:
        """Refuse exits while a run is under way."""
        refuse_exits()
        self.runs += 1

    def end_run(self) -> None:
        """Count a run as ended."""
        self.runs -= 1


GUARD = _Guard()


def refuse_exits(everywhere: bool = False) -> None:
    """Refuse exits of code that is not ours from now on, or of all code, if the whole process is ours.

    Stays so to the end of the process: what the user's code registers with `atexit` is called then.
    """
    if GUARD.process == os.getpid() and not everywhere:
        return
    GUARD.everywhere = everywhere or (GUARD.everywhere and GUARD.process == os.getpid())
    GUARD.process = os.getpid()
    for module in (os, sys.modules.get("posix")):
        for name, real in _REAL.items():
            if module is not None and getattr(module, name) is real:
                setattr(module, name, _refusing(name, real))
    threading.Thread.start = _start  # type: ignore[method-assign,assignment]
    _thread.start_new_thread = _start_new_thread


def leave(code: int) -> NoReturn:
    """End this process at once, on behalf of ATP."""
    _REAL["_exit"](code)


def end_copy(process: int) -> None:
    """End this process if it is a fork of `process`: code that forks must not have two of us go on where it returns."""
    if os.getpid() != process:
        leave(0)


def mark_foreign(code: ForeignCode) -> None:
    """Mark what runs in this context from now on as code that is not ours.

    Threads that it starts are marked too, and print where it prints.
    """
    _FOREIGN.set(code)


@contextmanager
def foreign() -> Iterator[ForeignCode]:
    """Mark what runs inside as code that is not ours."""
    refuse_exits()
    code = ForeignCode()
    before = _FOREIGN.set(code)
    try:
        yield code
    finally:
        _FOREIGN.reset(before)


def _refusing(name: str, real: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    @wraps(real)
    def end(*args: Any, **kwargs: Any) -> NoReturn:
        if GUARD.refuses(name, args or tuple(kwargs.values())):
            shown = ", ".join(f"{one!r:.60}" for one in (args[:1] if name == "execve" else args))
            error = EndsProcess(f"os.{name}({shown})")
            code = _FOREIGN.get()
            if code is not None:
                code.refused.append(error)
            raise error
        real(*args, **kwargs)

    return end


# Python's threads begin with an empty context, so without these a thread could do what its starter can't.


def _start(thread: threading.Thread) -> None:
    code = _FOREIGN.get()
    if code is not None:
        thread.run = _inheriting(thread.run, code)  # type: ignore[method-assign]
    _REAL_START(thread)


def _start_new_thread(function: Callable[..., Any], args: tuple[Any, ...], *more: Any) -> int:
    code = _FOREIGN.get()
    return _REAL_START_NEW_THREAD(function if code is None else _inheriting(function, code), args, *more)


def _inheriting(function: Callable[..., Any], code: ForeignCode) -> Callable[..., None]:
    context = contextvars.copy_context()
    code.threads += 1

    def run(*args: Any, **kwargs: Any) -> None:
        try:
            context.run(function, *args, **kwargs)
        except SystemExit:
            return  # as in any thread, it ends just the thread; what was refused is known already
        except BaseException:
            # In the context, so that the traceback is printed where the code prints.
            args = (*sys.exc_info(), threading.current_thread())
            context.run(threading.excepthook, threading.ExceptHookArgs(args))
        finally:
            code.threads -= 1

    return run
