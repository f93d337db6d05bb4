"""Holding a turn with an agent in a worker: how it is called, and what is told of what it gives back."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic  # the agent may put another in its place
from typing import Any

from ..json_values import plain, refusal
from ..signature import Callee
from .events import AT_ONCE
from .jsonable import words
from .raised import said, traceback_text


class _Raised(Exception):
    """Something came out of the agent's code, as against our own."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class _Refused(Exception):
    """The agent gave back what is not JSON."""


class Turns:
    """Calls an agent, one turn at a time."""

    def __init__(
        self, callee: Callee, tell: Callable[[dict[str, Any]], None], end: Callable[[dict[str, Any]], None]
    ) -> None:
        self._callee = callee
        self._tell = tell
        self._end = end
        # One thread: the steps of a generator belong into the same one.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agent")

    async def hold(self, given: dict[str, Any]) -> None:
        """Call it, and say how it ended."""
        AT_ONCE.set(self._yielded)
        if "workspace" in given:
            given["workspace"] = Path(given["workspace"])
        try:
            end = await self._call(given)
        except _Refused as refused:
            end = {"refused": str(refused)}
        except _Raised as raised:
            end = {"raised": {"said": words(said(raised.error)), "traceback": words(traceback_text(raised.error))}}
        self._end(end)

    async def _call(self, given: dict[str, Any]) -> dict[str, Any]:
        args, kwargs = self._callee.arguments(given)
        function = self._callee.function
        try:
            if self._callee.is_async:
                made = function(*args, **kwargs)
            else:
                made = await self._in_thread(lambda: function(*args, **kwargs))
            if inspect.isawaitable(made):
                made = await made
            if inspect.isasyncgen(made):
                return await self._stream(made)
            if inspect.isgenerator(made):
                return await self._drive(made)
        except (_Refused, _Raised):
            raise
        except BaseException as error:  # an exit or a cancellation that the agent raises is only its answer
            raise _Raised(error) from error
        return {"returned": _checked(made)}

    async def _stream(self, made: AsyncGenerator[Any, Any]) -> dict[str, Any]:
        try:
            async for item in made:
                self._yielded(item)
            return {"ended": True}
        finally:
            with contextlib.suppress(BaseException):  # whatever it says to its end changes nothing
                await made.aclose()

    async def _drive(self, made: Generator[Any, Any, Any]) -> dict[str, Any]:
        while True:
            try:
                item = await self._in_thread(lambda: next(made))
            except _Raised as raised:
                if not isinstance(raised.error, StopIteration):
                    raise
                value = raised.error.value
                return {"ended": True} if value is None else {"returned": _checked(value)}
            self._yielded(item)

    def _yielded(self, item: Any) -> None:
        self._tell({"yielded": _checked(item), "at": monotonic()})

    async def _in_thread(self, function: Callable[[], Any]) -> Any:
        def call() -> Any:
            try:
                return function()
            except BaseException as error:  # a future would not carry a `StopIteration` unharmed
                return _Raised(error)

        context = contextvars.copy_context()
        outcome = await asyncio.get_running_loop().run_in_executor(self._thread, context.run, call)
        if isinstance(outcome, _Raised):
            raise outcome
        return outcome


def _checked(value: Any) -> Any:
    try:
        return plain(value)
    except BaseException as error:
        raise _Refused(refusal(error)) from error
