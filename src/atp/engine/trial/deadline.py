"""The deadline of a trial."""

import asyncio
from collections.abc import Callable

GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""


class Deadline:
    """Cancels the current task when its time is up, and calls `give_up` if it has not ended `GRACE` seconds later."""

    def __init__(self, seconds: float, give_up: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._give_up = give_up
        self._expired = False
        self._left = 0.0
        self._timer = self._loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        assert self._task is not None
        self._task.cancel()
        self._timer = self._loop.call_later(GRACE, self._give_up)

    def is_cause_of_cancellation(self) -> bool:
        """True if the task was cancelled by this deadline alone. The cancellation is taken back then."""
        return self._expired and self._task is not None and self._task.uncancel() == 0

    def pause(self, limit: float) -> None:
        """Don't count the time from now on, because the trial can't begin yet; after `limit` seconds, time is up."""
        if not self._expired:
            self._left = self._timer.when() - self._loop.time()
            self._restart(limit)

    def resume(self) -> None:
        """Count the time again."""
        if not self._expired:
            self._restart(self._left)

    def _restart(self, seconds: float) -> None:
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._expire)

    def cancel(self) -> None:
        """Forget the deadline: the trial has ended."""
        self._timer.cancel()
