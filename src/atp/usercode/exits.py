"""Code of others can't end our process: `os._exit(0)` in an agent would look as if all had passed.

Python's own exits are exceptions, and cost one trial. Those that end a process at once, or put another program in its
place, raise one here too. Only in our own process: a copy of it that an agent makes still ends as it wants to.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NoReturn

ENDS = ("_exit", "abort", "execv", "execve")
"""What ends a process without an exception; the other forms of `exec` call these."""
ENDED = 3
"""What the process ends with if nobody takes the exception: something else than the tests broke."""

_REAL: dict[str, Callable[..., NoReturn]] = {name: getattr(os, name) for name in ENDS}
_FOREIGN: ContextVar[bool] = ContextVar("foreign", default=False)


class EndsProcess(SystemExit):
    """Code that isn't ours wanted to end our process."""

    def __init__(self, call: str) -> None:
        super().__init__(f"{call} would have ended the tests themselves")
        self.code = ENDED


class _Guard:
    """Where exits are refused."""

    def __init__(self) -> None:
        self.process: int | None = None
        self.everywhere = False

    def refuses(self) -> bool:
        return os.getpid() == self.process and (self.everywhere or _FOREIGN.get())


_GUARD = _Guard()


def refuse_exits(everywhere: bool = False) -> None:
    """From now on code of others can't end this process: all code, if the process is ours, else what `foreign` marks.

    It stays so to the end: what is registered to be called then is an agent's too.
    """
    _GUARD.everywhere = everywhere or (_GUARD.everywhere and _GUARD.process == os.getpid())
    _GUARD.process = os.getpid()
    for module in (os, sys.modules.get("posix")):
        for name, real in _REAL.items():
            if module is not None and getattr(module, name) is real:
                setattr(module, name, _refusing(name, real))


def leave(code: int) -> NoReturn:
    """End this process at once. It is ours to do so."""
    _REAL["_exit"](code)


def end_copy(process: int) -> None:
    """End the process unless it is this one: an agent that forks must not have two of us go on where it returns."""
    if os.getpid() != process:
        leave(0)


def mark_foreign() -> None:
    """What runs in this context from now on is code of others."""
    _FOREIGN.set(True)


@contextmanager
def foreign() -> Iterator[None]:
    """Code of others is run here."""
    refuse_exits()
    before = _FOREIGN.set(True)
    try:
        yield
    finally:
        _FOREIGN.reset(before)


def _refusing(name: str, real: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
    @wraps(real)
    def end(*args: Any, **kwargs: Any) -> NoReturn:
        if _GUARD.refuses():
            told = ", ".join(f"{one!r:.60}" for one in (args[:1] if name == "execve" else args))
            raise EndsProcess(f"os.{name}({told})")
        real(*args, **kwargs)

    return end
