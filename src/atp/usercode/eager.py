"""Tasks that begin at once.

A task normally begins in the loop's next round. When a hundred agents answer at the same moment, a hundred trials would
then go through each of their steps side by side, and each would begin its next agent only after all of them had written
their results. Begun at once, each is off before the next result is looked at, and from then on they are spread out.
"""

import asyncio
import contextvars
import sys
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")


class _Begun(Coroutine[Any, Any, Any]):
    """A coroutine that has gone as far as it could; it hands over what it waits for and goes on from there."""

    __slots__ = ("_coroutine", "_ended", "_waits_for")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._waits_for: tuple[Any] | None = None
        self._ended = True

    def begin(self) -> None:
        self._waits_for = (self._coroutine.send(None),)
        self._ended = False

    def __await__(self) -> Generator[Any, Any, Any]:
        raise TypeError("it is awaited by its task")

    def send(self, value: Any) -> Any:
        if self._waits_for is not None:
            (first,), self._waits_for = self._waits_for, None
            return first
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        self._waits_for = None
        if self._ended:
            raise asyncio.CancelledError
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()


def start(
    coroutine: Coroutine[Any, Any, Result], context: contextvars.Context | None = None
) -> "asyncio.Future[Result]":
    """A task for a coroutine, which has begun when this returns, and may have ended. Nothing is raised from here."""
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(coroutine, loop=loop, context=context, eager_start=True)
    return _start(coroutine, context or contextvars.copy_context(), loop)


def _start(
    coroutine: Coroutine[Any, Any, Result], context: contextvars.Context, loop: asyncio.AbstractEventLoop
) -> "asyncio.Future[Result]":
    begun = _Begun(coroutine)
    task = loop.create_task(begun, context=context)
    outer = asyncio.current_task(loop)
    # While it begins, it is the task that runs: code that asks for its own task, like `asyncio.timeout`, must get it.
    if outer is not None:
        asyncio.tasks._leave_task(loop, outer)
    asyncio.tasks._enter_task(loop, task)
    ended: asyncio.Future[Result] | None = None
    try:
        context.run(begun.begin)
    except StopIteration as end:
        ended = loop.create_future()
        ended.set_result(end.value)
    except asyncio.CancelledError:
        ended = loop.create_future()
        ended.cancel()
    except BaseException as error:
        ended = loop.create_future()
        ended.set_exception(error)
    finally:
        asyncio.tasks._leave_task(loop, task)
        if outer is not None:
            asyncio.tasks._enter_task(loop, outer)
    if ended is None:
        return task
    task.cancel()  # never ran, and has nothing left to do
    return ended
