"""Daemon threads for code that blocks.

Not the threads of asyncio's executor: the interpreter joins those when it exits, so code that hangs would block it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import traceback
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from .exits import LIVE_THREADS, exit_if_forked, forks

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    Params = ParamSpec("Params")
    Job = Callable[[], None]

Result = TypeVar("Result")

IDLE_SECONDS = 10.0
"""Seconds after which an idle thread ends."""
LONGEST_TEXT = 100_000
"""Characters of an exception's text, and of its traceback, that are kept. Whoever shows them masks secrets in them, and
then shows far fewer: half of a secret at the end is never shown."""


class Raised(Exception):
    """Wraps an exception of code that is not ours.

    Passed as a value from thread to loop: a future refuses a `StopIteration`, and a `SystemExit` would end the loop.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self._text: str | None = None
        self._traceback: str | None = None

    def is_a(self, kind: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
        """True for an exception of a class. Not by `isinstance`: the exception's `__class__` may be the user's code."""
        return issubclass(type(self.error), kind)

    def describe(self) -> Raised:
        """Make text and traceback now, in the thread of the code: the exception's own `__str__` may never return."""
        if not self.is_a(StopIteration):  # how every generator ends
            self._text, self._traceback = str(self), self.traceback
        return self

    def __str__(self) -> str:
        """The exception's class and text. The exception's own `__str__` may raise."""
        if self._text is not None:
            return self._text
        # Not `type(error).__name__`, nor methods of the text: both may be the user's code, too.
        name: str = type.__dict__["__name__"].__get__(type(self.error))
        text = self.message
        return f"{name}: {text}" if text else name

    @property
    def message(self) -> str:
        """The exception's text without its class."""
        try:
            return _plain(str(self.error))
        except BaseException:
            return "(str() of the exception failed)"

    @property
    def traceback(self) -> str:
        """The last frames of the traceback."""
        if self._traceback is not None:
            return self._traceback
        error = self.error
        try:
            if len(text := str(self)) > LONGEST_TEXT:  # the lines of `traceback` would be further copies of its text
                frames = "".join(traceback.format_tb(error.__traceback__, limit=-10))
                return _plain(f"Traceback (most recent call last):\n{frames}") + f"{text}\n"
            lines = traceback.TracebackException(type(error), error, error.__traceback__, limit=-10).format()
            kept, size = deque[str](), 0
            for line in map(_plain, lines):
                kept.append(line)
                size += len(line)
                while size > LONGEST_TEXT and len(kept) > 1:  # the causes come first
                    size -= len(kept.popleft())
            return "".join(kept)
        except BaseException:
            return "(the traceback of the exception can't be formatted)\n"


def _plain(text: str) -> str:
    """A text as an exact `str` that can be written as UTF-8: half of a surrogate pair can't. A long text is cut."""
    if str.__len__(text) > LONGEST_TEXT:
        text = str.__getitem__(text, slice(LONGEST_TEXT)) + "…"
    return str.encode(text, "utf-8", "backslashreplace").decode()


class _Worker:
    """A thread that runs one job after the other."""

    def __init__(self, idle: deque[_Worker], lock: threading.Lock) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._idle = idle
        self._lock = lock
        threading.Thread(target=self._work, name="atp-agent", daemon=True).start()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def mark_idle(self) -> None:
        """Make the thread available. Called in the thread itself, so that all earlier jobs have ended."""
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
                continue  # in use: a job may still come
            job()
            del job  # has a reference to what the user's code returned


_IDLE: deque[_Worker] = deque()
_LOCK = threading.Lock()


def _idle_or_new() -> _Worker:
    with _LOCK:
        worker = _IDLE.pop() if _IDLE else None
    # In an empty context: the thread will run other calls than the one that happens to need a new thread.
    return worker or contextvars.Context().run(_Worker, _IDLE, _LOCK)


class Thread:
    """A thread reserved for a series of calls, which run one after the other in one context."""

    def __init__(self, context: contextvars.Context | None = None) -> None:
        self._worker = _idle_or_new()
        self._context = context or contextvars.copy_context()

    def call(self, function: Callable[[], Any], last: bool = False) -> asyncio.Future[Any]:
        """Call a function in the thread. What the function raises is the future's result, as `Raised`.

        After the `last` call the thread is released, as soon as that call ends.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        worker, context = self._worker, self._context

        def job() -> None:
            before = forks()
            LIVE_THREADS.add(worker)
            try:
                outcome = context.run(function)
            except BaseException as error:
                outcome = context.run(Raised(error).describe)
            LIVE_THREADS.discard(worker)
            exit_if_forked(before)
            if last:
                worker.mark_idle()
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing waits for the outcome
                loop.call_soon_threadsafe(_set_result, future, outcome)

        worker.put(job)
        return future

    def release(self, last: Job | None = None) -> None:
        """Release the thread after calling `last` in it. What `last` raises is ignored."""
        worker = self._worker

        def job() -> None:
            with contextlib.suppress(BaseException):
                if last is not None:
                    self._context.run(last)
            worker.mark_idle()

        worker.put(job)


def _set_result(future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)


async def in_thread(function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
    """Call a function in a thread, and return or raise what it does. On cancellation the function keeps running."""
    outcome = await Thread().call(lambda: function(*args, **kwargs), last=True)
    if type(outcome) is Raised:
        raise outcome.error
    result: Result = outcome
    return result


class DaemonExecutor(ThreadPoolExecutor):
    """A default executor for an event loop that runs its calls in these threads.

    With it, a call of `asyncio.to_thread` in an agent, or a DNS look-up, can't block the interpreter's exit either.
    """

    def submit(
        self, function: Callable[Params, Result], /, *args: Params.args, **kwargs: Params.kwargs
    ) -> Future[Result]:
        """Call a function in a thread, in the caller's context."""
        future: Future[Result] = Future()
        worker, context = _idle_or_new(), contextvars.copy_context()

        def job() -> None:
            if future.set_running_or_notify_cancel():
                before = forks()
                LIVE_THREADS.add(worker)
                try:
                    result = context.run(function, *args, **kwargs)
                except BaseException as error:
                    LIVE_THREADS.discard(worker)
                    exit_if_forked(before)
                    future.set_exception(error)
                else:
                    LIVE_THREADS.discard(worker)
                    exit_if_forked(before)
                    future.set_result(result)
            worker.mark_idle()

        worker.put(job)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: the threads are daemons, which need no join."""
