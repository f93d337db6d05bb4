"""The deadlines of trials."""

import asyncio
import math
from collections.abc import Callable

GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""


class Deadlines:
    """The deadlines of all trials that are running, with one timer of the event loop for the next of them.

    Nearly every trial ends long before its deadline. A timer for each would be set and cancelled in vain.
    """

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._next = math.inf
        """When the timer fires, by the clock of the event loop."""

    def add(self, deadline: "Deadline") -> None:
        """Call `deadline.on_due` when the deadline is due."""
        self._open.add(deadline)
        if deadline.due < self._next:
            self._set_timer(deadline.due)

    def remove(self, deadline: "Deadline") -> None:
        """Forget a deadline. The timer stays: it is set again for the next deadline when it fires."""
        self._open.discard(deadline)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = when
        self._timer = asyncio.get_running_loop().call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        """Call one deadline that is due. The timer is set again first, because the call may raise."""
        # The loop may call a little early, by the resolution of its clock.
        now = max(self._next, asyncio.get_running_loop().time())
        self._timer, self._next = None, math.inf
        due = min((one for one in self._open if one.due <= now), key=lambda one: one.due, default=None)
        if due is not None:
            self._open.discard(due)
        if self._open:
            self._set_timer(min(one.due for one in self._open))
        if due is not None:
            due.on_due()


class Deadline:
    """Cancels the current task when its time is up, and calls `give_up` if it has not ended `GRACE` seconds later."""

    def __init__(self, deadlines: Deadlines, seconds: float, give_up: Callable[[], None]) -> None:
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._give_up = give_up
        self._expired = False
        self._left = 0.0
        self.due = self._loop.time() + seconds
        """When the time is up, by the clock of the event loop."""
        deadlines.add(self)

    def on_due(self) -> None:
        """Cancel the task, or call `give_up` if that was in vain."""
        if self._expired:
            self._give_up()
            return
        self._expired = True
        assert self._task is not None
        self._task.cancel()
        self._set(GRACE)

    def is_over(self) -> bool:
        """True if the time is up, also if the event loop could not say so yet."""
        return self._loop.time() >= self.due

    def is_cause_of_cancellation(self) -> bool:
        """True if the task was cancelled by this deadline alone. The cancellation is taken back then."""
        return self._expired and self._task is not None and self._task.uncancel() == 0

    def pause(self, limit: float) -> None:
        """Don't count the time from now on, because the trial can't begin yet; after `limit` seconds, time is up."""
        if not self._expired:
            self._left = self.due - self._loop.time()
            self._set(limit)

    def resume(self) -> None:
        """Count the time again."""
        if not self._expired:
            self._set(self._left)

    def _set(self, seconds: float) -> None:
        self.due = self._loop.time() + seconds
        self._deadlines.add(self)

    def cancel(self) -> None:
        """Forget the deadline: the trial has ended."""
        self._deadlines.remove(self)
        self._give_up = _nothing  # the trial holds its deadline, and would be held in turn


def _nothing() -> None:
    """Stands for the `give_up` of a deadline that was cancelled."""
