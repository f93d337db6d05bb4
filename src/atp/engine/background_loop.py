"""An event loop in a thread of its own, for callers that aren't async and come and go."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from atp.usercode.threads import DaemonExecutor

Result = TypeVar("Result")
PATIENCE = 5.0
"""Seconds that tasks get to end when it is over."""


class BackgroundLoop:
    """Runs coroutines for whoever waits for them."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        """The loop."""
        self._closing = False
        self.loop.set_default_executor(DaemonExecutor())
        self._thread = threading.Thread(target=self._run, name="atp-backstage", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # asyncio lets a `SystemExit` of any task out of the loop, also of one that the user's code left behind.
        while True:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue
            if self._closing:
                return

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What a coroutine gives. Whoever is interrupted while waiting has it cancelled."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Cancel what is left, and end the loop. A task that won't end is left alone."""
        self.wait(self._cancel_rest())
        self._closing = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        if not self._thread.is_alive():
            self.loop.close()

    async def _cancel_rest(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=PATIENCE)
        await self.loop.shutdown_asyncgens()
