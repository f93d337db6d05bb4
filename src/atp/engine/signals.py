"""Runs a coroutine in an event loop of its own, which signals end in good order."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, TypeVar

from atp.base.errors import Error
from atp.base.exit_codes import INTERRUPTED
from atp.base.secrets import every_secret
from atp.usercode import exits
from atp.usercode.threads import DaemonExecutor

Result = TypeVar("Result")


def log_unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an exception that nothing in a loop has handled, as asyncio does, but without secrets.

    It may belong to no trial: asyncio only notices when the task that raised it is deleted.
    """
    lines = [str(context.get("message") or "Unhandled exception in event loop")]
    lines += [f"{name}: {value!r}" for name, value in context.items() if name not in ("message", "exception")]
    if (error := context.get("exception")) is not None:
        lines.append("".join(traceback.format_exception(error)).rstrip())
    logging.getLogger("asyncio").error("%s", every_secret().mask_text("\n".join(lines)))


SIGNAL_TICK = 0.1
SIGNAL_TICKS = 15
"""How often a thread waits for the event loop to handle a signal. After that, an agent's code is blocking the loop.

Turns of the thread, not time: on a busy computer the loop gets its turn when the thread gets so many.
"""


def run_to_end(
    main: Coroutine[Any, Any, Result],
    interrupt: Callable[[], None] | None = None,
    leave: Callable[[], None] = lambda: None,
    watchdog: Callable[[asyncio.AbstractEventLoop], AbstractContextManager[None]] | None = None,
) -> Result:
    """Run a coroutine in a loop of its own.

    Unlike `asyncio.run`, it doesn't wait at the end for tasks that won't be cancelled: an agent that swallows its
    cancellation must not hold up the end of the run. `interrupt` is called in the loop when a signal comes; `leave`
    before the process ends at once, because a second signal came or the loop did not handle the first, and when the
    loop is broken. `watchdog` is entered with the loop, in a process of ATP's own. Raises `Error` if the code under
    test has broken the loop, or exits by a function of Python's that it has replaced.
    """
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(log_unhandled)
    loop.set_default_executor(DaemonExecutor())  # what agents put there must not hold up the end either
    asyncio.set_event_loop(loop)
    try:
        with contextlib.ExitStack() as around:
            if interrupt is not None:
                around.enter_context(_signals(loop, interrupt, leave))
            if watchdog is not None:
                around.enter_context(watchdog(loop))
            return _run(loop, main, handles_signals=interrupt is not None)
    except SystemExit as error:
        raise exit_error(error) from error
    except BrokenLoop:
        leave()
        raise
    finally:
        with contextlib.suppress(Exception, SystemExit):  # the loop is broken, or functions of asyncio are replaced
            _close(loop)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    loop.set_exception_handler(lambda _loop, _context: None)
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()


class BrokenLoop(Error):
    """Raised when the event loop can't go on, because the code under test has closed or replaced its descriptors."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(
            f"the code under test has broken the event loop of the tests: {type(error).__name__}: {error}",
            "don't close descriptors that the code hasn't opened, or give the agent a process of its own: python:",
        )


def exit_error(error: SystemExit) -> Error:
    """The error to be raised instead of an exit, which would look as if all had passed."""
    return Error(f"the code under test has tried to end the tests: {type(error).__name__}: {error}")


async def without_exit(work: Awaitable[Result]) -> Result:
    """Await the work of a task of ATP's. An exit is raised as `Error`: asyncio lets a `SystemExit` out of any loop.

    The code under test may have replaced a function that ATP calls by one that exits, and the loop may be the user's.
    """
    try:
        return await work
    except SystemExit as error:
        raise exit_error(error) from error


def _run(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, Result], *, handles_signals: bool) -> Result:
    """Run until `main` has ended, and no shorter: tasks that agents leave behind may stop the loop, or exit through it.

    asyncio lets a `SystemExit` of any task out of the loop. Taken for the end of the run, `sys.exit(0)` in an agent's
    background task would look as if all had passed.
    """
    task = loop.create_task(main)
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt, RuntimeError) as error:
            ours = isinstance(error, KeyboardInterrupt) and not handles_signals
            if task.done() or loop.is_closed() or ours:
                raise
        except OSError as error:
            if task.done():
                raise
            raise BrokenLoop(error) from error


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what runs inside as Ctrl-C does, by `KeyboardInterrupt`, so that it is cleaned up after."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handling(handle, signal.SIGTERM):
        yield


@contextlib.contextmanager
def _signals(
    loop: asyncio.AbstractEventLoop, interrupt: Callable[[], None], leave: Callable[[], None]
) -> Iterator[None]:
    """Handle SIGINT and SIGTERM.

    Not by `loop.add_signal_handler`: its callback runs on the event loop, which blocking agent code can hold up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave_now() -> None:
        leave()
        exits.exit_now(INTERRUPTED)

    handled = threading.Event()

    def wait_for_loop() -> None:
        if not any(handled.wait(SIGNAL_TICK) for _ in range(SIGNAL_TICKS)):
            leave_now()

    def on_loop() -> None:
        handled.set()
        interrupt()

    def handle(number: int, _frame: FrameType | None) -> None:
        if came:
            leave_now()  # the second signal
        came.append(number)
        threading.Thread(target=wait_for_loop, daemon=True).start()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            loop.call_soon_threadsafe(on_loop)

    came: list[int] = []
    with _handling(handle, signal.SIGINT, signal.SIGTERM):
        try:
            with _woken_by_signals(loop):
                yield
        finally:
            handled.set()


_REPLACED: list[Mapping[int, Any]] = []
"""The handlers that those of ATP stand in for, outermost first."""


@contextlib.contextmanager
def _handling(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals in this process, and not in forks of the user's code, for which the signals are meant then."""
    before: dict[int, Any] = {number: signal.signal(number, handler) for number in numbers}
    _REPLACED.append(before)
    try:
        yield
    finally:
        _REPLACED.remove(before)
        _restore(before)


def _restore_in_fork() -> None:
    # Not by the handler itself: a fork that waits for a lock, as workers of `multiprocessing` do, may never get to run
    # it, and whoever ends the fork by SIGTERM waits for ever.
    for before in reversed(_REPLACED):
        _restore(before)


os.register_at_fork(after_in_child=_restore_in_fork)


def _restore(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextlib.contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let signals wake the loop, also when the system delivers them to another thread: handlers run in this one."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    loop.add_reader(ours, lambda: ours.recv(4096))
    try:
        yield
    finally:
        loop.remove_reader(ours)
        signal.set_wakeup_fd(before)
        ours.close()
        theirs.close()
