"""The one deadline of a trial."""

import asyncio
from collections.abc import Callable

GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""


class Deadline:
    """Cancels the current task when its time is up, and gives it up if it has not ended a moment later."""

    __slots__ = ("_expired", "_give_up", "_task", "_timer")

    def __init__(self, seconds: float, give_up: Callable[[], None]) -> None:
        self._task = asyncio.current_task()
        self._give_up = give_up
        self._expired = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        assert self._task is not None
        self._task.cancel()
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._give_up)

    def passed(self) -> bool:
        """Whether a cancellation was ours. It is taken back then, unless somebody else asked for one, too."""
        return self._expired and self._task is not None and self._task.uncancel() == 0

    def lift(self) -> None:
        """The trial has ended."""
        self._timer.cancel()
