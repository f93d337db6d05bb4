"""Runs functions of any kind that are not ours, so that nothing they raise or refuse gets past us.

Coroutines run in a task of their own: a cancellation that the user's code raises can't be taken for one of ours, and a
coroutine that swallows its cancellation doesn't keep us waiting. asyncio lets `SystemExit` end the loop; here it is a
value.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import threading
from typing import TYPE_CHECKING, Any

from .exits import end_copy
from .threads import Raised, Thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator

GRACE = 0.5
"""Seconds that cancelled code gets to clean up."""


async def value_of(
    call: Callable[[], Any],
    context: contextvars.Context,
    *,
    blocks: bool = True,
    on_yield: Callable[[Any], None] | None = None,
) -> Any:
    """Call a function in `context`, and return its value. What it raises is raised as `Raised`.

    `blocks` is false if the call only makes a coroutine or an async generator: any other runs in a thread. `on_yield`
    gets what a generator yields, in the caller's context; what `on_yield` raises is raised as it is. Without it, a
    generator is the value.
    """
    value = _value(await Thread(context).call(call, last=True)) if blocks else context.run(call)
    if inspect.isawaitable(value):
        value = _value(await contained(value if inspect.iscoroutine(value) else _awaited(value), context))
    if on_yield is not None and inspect.isasyncgen(value):
        ours = contextvars.copy_context()
        value = _value(await contained(_stream(value, lambda item: ours.run(on_yield, item)), context))
        if isinstance(value, _OnYieldRaised):
            raise value.error
    elif on_yield is not None and inspect.isgenerator(value):
        value = await _drive(value, Thread(context), on_yield)
    return value


def _value(outcome: Any) -> Any:
    if isinstance(outcome, Raised):
        raise outcome
    return outcome


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


class _OnYieldRaised:
    """What `on_yield` raised within the user's generator: ours, so not to be taken for the generator's."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _stream(generator: AsyncGenerator[Any, Any], take: Callable[[Any], None]) -> _OnYieldRaised | None:
    try:
        async for item in generator:
            try:
                take(item)
            except BaseException as error:
                return _OnYieldRaised(error)
        return None
    finally:
        with contextlib.suppress(BaseException):  # it is stopped, and whatever it raises then changes nothing
            await generator.aclose()


async def _drive(generator: Generator[Any, Any, Any], thread: Thread, take: Callable[[Any], None]) -> Any:
    """Take what a generator yields that may block: all its steps run in the same thread."""
    try:
        while True:
            outcome = await thread.call(lambda: next(generator))
            if isinstance(outcome, Raised) and isinstance(outcome.error, StopIteration):
                return outcome.error.value
            take(_value(outcome))
    finally:
        thread.give_back(generator.close)


class _Detachable:
    """Awaits a coroutine, and can let go of it in the middle."""

    __slots__ = ("_coroutine", "_gone", "_process")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._gone = False
        self._process = os.getpid()

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any) -> Any:
        try:
            return self._coroutine.send(value)
        finally:
            end_copy(self._process)

    def throw(self, *error: Any) -> Any:
        if self._gone:
            raise asyncio.CancelledError
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def let_go(self) -> None:
        """End the coroutine now, or have whatever is thrown at it from now on pass it by."""
        self._gone = True
        try:
            self._coroutine.close()
        except BaseException:
            threading.Thread(target=_keep_for_ever, args=(self._coroutine,), daemon=True).start()


def _keep_for_ever(_stubborn: object) -> None:
    """Keep a coroutine that would not end from being collected as garbage, at the interpreter's end too.

    Collecting it would throw at it once more, and with no loop to wait on it might go round and round for ever.
    """
    threading.Event().wait()


async def contained(coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Any:
    """Return what a coroutine returns, or `Raised` with what it raised. Raises only the caller's own cancellation."""
    detachable = _Detachable(coroutine)
    over: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    task = context.run(asyncio.ensure_future, _settle(detachable, over))
    try:
        return await over
    except asyncio.CancelledError:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=GRACE)
        finally:
            detachable.let_go()
            task.cancel()
        raise


async def _settle(detachable: _Detachable, over: asyncio.Future[Any]) -> None:
    outcome: Any
    try:
        outcome = await detachable
    except BaseException as error:
        outcome = Raised(error)
    if not over.done():
        over.set_result(outcome)
