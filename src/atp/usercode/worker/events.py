"""Passes events from the callbacks of a framework, in any thread, to the driver's generator or to the worker's pipe.

A worker writes each event immediately, in the thread of the callback, so that the event is known even if the agent
ends the process right after.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

SEND_EVENT: ContextVar[Callable[[dict[str, Any]], None] | None] = ContextVar("atp_send_event", default=None)
"""Called with each event of this context, in any thread. None outside of a worker."""


class _Outcome:
    """The result or the exception of some work. A value, because a `SystemExit` in a task ends the loop."""

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error


class Events:
    """The events of some work."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._send = SEND_EVENT.get()
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._queue: asyncio.Queue[dict[str, Any] | _Outcome] = asyncio.Queue()
        self.result: Any = None
        """The result of the work, once it is done."""

    def report(self, kind: str, **payload: Any) -> None:
        """Emit an event of the protocol. Values that are None are left out of its payload."""
        known = {key: value for key, value in payload.items() if value is not None}
        self.emit({"event_type": kind, "payload": known})

    def emit(self, item: dict[str, Any]) -> None:
        """Emit an item in the form in which a `custom` agent would yield it."""
        if os.getpid() != self._process:
            return  # a fork shares the pipe but not the lock, and may outlive the turn
        with self._lock:
            if self._send is None:
                self._put(item)
                return
            try:
                self._send(item)
            except BaseException as error:  # raised in `during`, not in the framework's callback
                self._send = None
                self._put(_Outcome(error=error))

    async def during(self, work: Awaitable[Any]) -> AsyncIterator[dict[str, Any]]:
        """Yield the events of the work until it is done, and raise what it raises. If closed early, cancel the work.

        Events that `SEND_EVENT` was called with are not yielded.
        """
        task = asyncio.ensure_future(self._run(work))
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
            with self._lock:
                self._send = None  # events of a thread that outlives the work belong to no turn
            if not task.done():
                task.cancel()

    async def _run(self, work: Awaitable[Any]) -> None:
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
