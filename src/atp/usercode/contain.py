"""Runs functions that are not ours, sync or async, so that neither their exceptions nor a hang affect the run.

Coroutines run in a task of their own: a `CancelledError` that the user's code raises can't be mistaken for a
cancellation of the caller, and a coroutine that ignores its cancellation doesn't block the caller. asyncio ends the
loop on `SystemExit`; here it is returned as a value.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from .exits import exit_if_forked, forks
from .threads import Raised, Thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator

GRACE = 0.5
"""Seconds that cancelled code gets to clean up."""
_PLAIN = frozenset((str, dict, list, int, float, bool, type(None)))
"""The classes of most values. None of them can be awaited."""


async def value_of(
    call: Callable[[], Any],
    context: contextvars.Context,
    *,
    blocks: bool = True,
    on_yield: Callable[[Any], None] | None = None,
) -> Any:
    """Call a function in `context`, and return its value. Raises `Raised` with whatever the function raised.

    `blocks` is false if the call only makes a coroutine or an async generator: any other call runs in a thread.
    `on_yield` is called with each item of a generator, in the caller's context, and what `on_yield` raises is raised
    unchanged. Without `on_yield`, the generator itself is the value.
    """
    value = _value(await Thread(context).call(call, last=True)) if blocks else context.run(call)
    if _is_a(value, CoroutineType):
        value = _value(await contained(value, context))
    elif _is_awaitable(value):
        value = _value(await contained(_awaited(value), context))
    if on_yield is None or not _is_a(value, (AsyncGeneratorType, GeneratorType)):
        return value
    if _is_a(value, GeneratorType):
        return await _iterate(value, Thread(context), on_yield)
    ours = contextvars.copy_context()
    value = _value(await contained(_stream(value, lambda item: ours.run(on_yield, item)), context))
    if type(value) is _OnYieldRaised:
        raise value.error
    return value


def _is_a(value: Any, kind: type | tuple[type, ...]) -> bool:
    """True for a value of a class. Not by `isinstance`: the value's `__class__` may be the user's code."""
    return issubclass(type(value), kind)


def _is_awaitable(value: Any) -> bool:
    """True for what `await` accepts, as `inspect.isawaitable` says, but without a call of the user's code."""
    if type(value) in _PLAIN:
        return False
    if _is_a(value, GeneratorType):
        return bool(value.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE)
    return inspect.getattr_static(type(value), "__await__", None) is not None


def _value(outcome: Any) -> Any:
    if type(outcome) is Raised:
        raise outcome
    return outcome


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


class _OnYieldRaised:
    """Wraps what `on_yield` raised inside the user's generator, to distinguish it from what the generator raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _stream(generator: AsyncGenerator[Any, Any], on_item: Callable[[Any], None]) -> _OnYieldRaised | None:
    try:
        async for item in generator:
            try:
                on_item(item)
            except BaseException as error:
                return _OnYieldRaised(error)
        return None
    finally:
        with contextlib.suppress(BaseException):  # the generator has ended already, or is abandoned
            await generator.aclose()


async def _iterate(generator: Generator[Any, Any, Any], thread: Thread, on_item: Callable[[Any], None]) -> Any:
    """Iterate over a generator that may block. All its steps run in the same thread."""
    try:
        while True:
            outcome = await thread.call(lambda: next(generator))
            if type(outcome) is Raised and type(outcome.error) is StopIteration:
                return outcome.error.value
            on_item(_value(outcome))
    finally:
        thread.release(generator.close)


class _Detachable:
    """Awaits a coroutine, and can abandon the coroutine before its end."""

    __slots__ = ("_abandoned", "_coroutine", "_forks")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._abandoned = False
        self._forks = forks()

    def __await__(self) -> Any:
        return self

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        try:
            return self._coroutine.send(None)
        finally:
            exit_if_forked(self._forks)

    def throw(self, *error: Any) -> Any:
        if self._abandoned:
            raise asyncio.CancelledError
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def abandon(self) -> None:
        """Close the coroutine. If it refuses to end, throw nothing into it any more."""
        self._abandoned = True
        try:
            self._coroutine.close()
        except BaseException:
            threading.Thread(target=_keep_alive, args=(self._coroutine,), daemon=True).start()


def _keep_alive(_coroutine: object) -> None:
    """Keep a coroutine that would not end from being garbage-collected, even when the interpreter exits.

    The collection throws `GeneratorExit` into the coroutine, which may catch it and loop for ever.
    """
    threading.Event().wait()


async def contained(coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Any:
    """Return a coroutine's result, or `Raised` with its exception. Raises only the caller's own cancellation."""
    detachable = _Detachable(coroutine)
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    task = context.run(loop.create_task, _set_outcome(detachable, result))
    try:
        return await result
    except asyncio.CancelledError:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=GRACE)
        finally:
            detachable.abandon()
            task.cancel()
        raise


async def _set_outcome(detachable: _Detachable, result: asyncio.Future[Any]) -> None:
    outcome: Any
    try:
        outcome = await detachable
    except BaseException as error:
        outcome = Raised(error)
    if not result.done():
        result.set_result(outcome)
