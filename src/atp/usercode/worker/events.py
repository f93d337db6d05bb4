"""Events of the protocol on their way from a framework's callbacks, in whatever thread, to whoever waits for them.

In a worker they are written down at once, in that thread: even if the agent ends its process in the next moment, what
it did before is known.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

AT_ONCE: ContextVar[Callable[[dict[str, Any]], None] | None] = ContextVar("atp_events_at_once", default=None)
"""Is given the events of this context; must bear being called in any thread."""


class _Outcome:
    """How some work ended; a value, because asyncio would let a `SystemExit` out of its loop."""

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error


class Events:
    """What is told while some work is done."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._take = AT_ONCE.get()
        self._taking = threading.RLock()
        self._process = os.getpid()
        self._queue: asyncio.Queue[dict[str, Any] | _Outcome] = asyncio.Queue()
        self.result: Any = None
        """What the work gave back, once it is done."""

    def tell(self, kind: str, **payload: Any) -> None:
        """Something happened. What is not known is left out."""
        known = {key: value for key, value in payload.items() if value is not None}
        self.hand_on({"event_type": kind, "payload": known})

    def hand_on(self, told: dict[str, Any]) -> None:
        """The agent itself says something, in the form in which code of the user's would yield it."""
        if os.getpid() != self._process:
            return  # a fork has our pipe, but not our lock, and may outlive the turn
        with self._taking:
            if self._take is None:
                self._put(told)
                return
            try:
                self._take(told)
            except BaseException as error:  # not for the framework to hear, but for whoever waits for the events
                self._take = None
                self._put(_Outcome(error=error))

    async def during(self, work: Awaitable[Any]) -> AsyncIterator[dict[str, Any]]:
        """The events, as they come, until the work is done; raises what it raises. Left early, the work is ended.

        Those that were taken at once don't come here.
        """
        task = asyncio.ensure_future(self._do(work))
        try:
            while True:
                item = await self._queue.get()
                if not isinstance(item, _Outcome):
                    yield item
                    continue
                if item.error is not None:
                    raise item.error
                self.result = item.value
                return
        finally:
            with self._taking:
                self._take = None  # what a thread tells that goes on belongs to no turn
            if not task.done():
                task.cancel()

    async def _do(self, work: Awaitable[Any]) -> None:
        try:
            outcome = _Outcome(await work)
        except BaseException as error:
            outcome = _Outcome(error=error)
        self._put(outcome)

    def _put(self, item: dict[str, Any] | _Outcome) -> None:
        if threading.get_ident() == self._thread:
            self._queue.put_nowait(item)
        else:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
