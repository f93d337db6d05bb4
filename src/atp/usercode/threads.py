"""Threads for code that blocks.

Not those of asyncio's executor: the interpreter waits for them at its end, and code that hangs would hold it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import threading
import traceback
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from .exits import end_copy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    Params = ParamSpec("Params")
    Job = Callable[[], None]

Result = TypeVar("Result")

IDLE_SECONDS = 10.0
"""A thread without work ends after this."""


class Raised(Exception):
    """What code that is not ours raised.

    Kept as a value on its way: asyncio would not carry a `StopIteration` or `SystemExit` unharmed.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def __str__(self) -> str:
        """The exception's kind and text. Its own methods may raise, too."""
        name = type(self.error).__name__
        try:
            text = str(self.error)
        except BaseException:
            text = "(its text can't be told)"
        return f"{name}: {text}" if text else name

    @property
    def traceback(self) -> str:
        """The last frames of the traceback."""
        error = self.error
        try:
            return "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-10))
        except BaseException:
            return "(the traceback can't be told)\n"


class _Worker:
    """A thread that does one job after the other."""

    def __init__(self, idle: deque[_Worker], lock: threading.Lock) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._idle = idle
        self._lock = lock
        threading.Thread(target=self._work, name="atp-agent", daemon=True).start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def rest(self) -> None:
        """Be ready for the next borrower; called in the thread itself, so after all that was put before."""
        with self._lock:
            self._idle.append(self)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self in self._idle:
                        self._idle.remove(self)
                        return
                continue  # borrowed a moment ago, or for longer
            job()
            del job  # it holds what the user's code returned


_IDLE: deque[_Worker] = deque()
_LOCK = threading.Lock()


def _borrow() -> _Worker:
    with _LOCK:
        worker = _IDLE.pop() if _IDLE else None
    # A thread is nobody's: it must not inherit the context of the call that happens to need a new one.
    return worker or contextvars.Context().run(_Worker, _IDLE, _LOCK)


class Thread:
    """A borrowed thread. Its calls run one after the other, in one context."""

    def __init__(self, context: contextvars.Context | None = None) -> None:
        self._worker = _borrow()
        self._context = context or contextvars.copy_context()

    def call(self, function: Callable[[], Any], last: bool = False) -> asyncio.Future[Any]:
        """Call a function in the thread. What it raises is returned as `Raised`.

        After the `last` call the thread is given back by itself, as soon as that call ends.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        worker, context = self._worker, self._context

        def job() -> None:
            process = os.getpid()
            try:
                outcome = context.run(function)
            except BaseException as error:
                outcome = Raised(error)
            end_copy(process)
            if last:
                worker.rest()
            with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
                loop.call_soon_threadsafe(_deliver, future, outcome)

        worker.put(job)
        return future

    def give_back(self, last: Job | None = None) -> None:
        """Give the thread back. `last` is called in the thread first; what it raises is dropped."""
        worker = self._worker

        def job() -> None:
            with contextlib.suppress(BaseException):
                if last is not None:
                    self._context.run(last)
            worker.rest()

        worker.put(job)


def _deliver(future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)


async def in_thread(function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
    """Call a function in a thread; return or raise what it does. When cancelled, the function is left to itself."""
    outcome = await Thread().call(lambda: function(*args, **kwargs), last=True)
    if isinstance(outcome, Raised):
        raise outcome.error
    result: Result = outcome
    return result


class DaemonExecutor(ThreadPoolExecutor):
    """A loop's default executor on these threads.

    With it, an agent's own `asyncio.to_thread`, or a name server that doesn't answer, can't hold up the end either.
    """

    def submit(
        self, function: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        """Call a function in a thread, in the caller's context."""
        future: Future[Result] = Future()
        worker, context = _borrow(), contextvars.copy_context()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                process = os.getpid()
                try:
                    result = context.run(function, *args, **kwargs)
                except BaseException as error:
                    end_copy(process)
                    future.set_exception(error)
                else:
                    end_copy(process)
                    future.set_result(result)
            worker.rest()

        worker.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: there is nothing to wait for."""
