"""Loading code of others into our own process: it can neither end it nor hold it up for ever."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType

from atp.usercode.exits import foreign

USUAL_SECONDS = 60.0
"""Seconds after which an import counts as hanging. Large frameworks take ten.

They are its own: on a machine that has a lot to do, those in which others had the processor are not counted.
"""
_SHORTEST, _LONGEST = 0.001, 86_400.0
"""What the system's clock can be set to, and is of any use."""
_AGAIN = 5.0
"""Seconds after which one that took no notice is told once more."""
_OF_THIS_THREAD = Path("/proc/thread-self/schedstat")


class TakesTooLong(SystemExit):
    """An import that doesn't come to its end. Like an exit, it gets past code that takes any `Exception`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it took longer than {seconds:g}s")
        self.code = 2


class _Limit:
    seconds: float | None = None


def limit_imports(seconds: float = USUAL_SECONDS) -> None:
    """How long each import of an agent's code may take from now on.

    Only for a process that is all ours, as it is told by `SIGALRM`, which others may need for themselves.
    """
    _Limit.seconds = min(max(_SHORTEST, seconds), _LONGEST)


@contextmanager
def loading() -> Iterator[None]:
    """Code of others is imported here."""
    seconds = _Limit.seconds
    may_tell = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    with foreign(), _in_time(seconds) if seconds is not None and may_tell else nullcontext():
        yield


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    began, kept = time.monotonic(), _kept_waiting()

    def tell(_number: int, _frame: FrameType | None) -> None:
        left = seconds - (time.monotonic() - began) + (_kept_waiting() - kept)
        if left <= 0:
            raise TakesTooLong(seconds)
        signal.setitimer(signal.ITIMER_REAL, max(_SHORTEST, left), _AGAIN)

    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.getsignal(signal.SIGALRM) is tell:
            signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


def _kept_waiting() -> float:
    """Seconds that this thread could have run, had there been a processor for it. None where the system can't say."""
    try:
        return int(_OF_THIS_THREAD.read_text("ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # not Linux, or one that doesn't count
        return 0.0
