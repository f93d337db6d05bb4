"""Running coroutines of code that isn't ours, so that nothing they raise or refuse gets past us.

Each runs in a task of its own: a cancellation that the agent raises can't be taken for one of ours, and a coroutine
that swallows its cancellation doesn't keep us waiting. asyncio lets `SystemExit` end the loop; here it is a value.
"""

import asyncio
import contextvars
import os
import threading
from collections.abc import Coroutine, Generator
from typing import Any

from atp.usercode.eager import start
from atp.usercode.exits import end_copy
from atp.usercode.threads import Raised

GRACE = 0.5
"""Seconds that cancelled code gets to clean up."""


class _Loose(Generator[Any, Any, Any]):
    """Awaits a coroutine, and can let go of it in the middle."""

    __slots__ = ("_coroutine", "_gone", "_process")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._gone = False
        self._process = os.getpid()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

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
        """From now on, whatever is thrown at the coroutine passes it by."""
        self._gone = True
        try:
            self._coroutine.close()
        except BaseException:
            threading.Thread(target=_hold, args=(self._coroutine,), daemon=True).start()


def _hold(_stubborn: object) -> None:
    """Keep a coroutine that would not end out of the hands of the garbage collection, at the interpreter's end too.

    That would throw at it once more, and with no loop to wait on it might go round and round for ever.
    """
    threading.Event().wait()


async def _settle(loose: _Loose, over: "asyncio.Future[Any]") -> None:
    outcome: Any
    try:
        outcome = await loose
    except BaseException as error:
        outcome = Raised(error)
    if not over.done():
        over.set_result(outcome)


async def contained(coroutine: Coroutine[Any, Any, Any], context: contextvars.Context) -> Any:
    """What a coroutine gives back, or `Raised` with what it raised. Only our own cancellation is raised from here."""
    loop = asyncio.get_running_loop()
    loose = _Loose(coroutine)
    over = loop.create_future()
    task = start(_settle(loose, over), context)
    try:
        return over.result() if over.done() else await over
    except asyncio.CancelledError:
        task.cancel()
        try:
            await asyncio.wait({task}, timeout=GRACE)
        finally:
            loose.let_go()
            task.cancel()
        raise
