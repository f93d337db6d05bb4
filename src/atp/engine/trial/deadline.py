"""The one deadline of a trial."""

import asyncio
from collections.abc import Callable

GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""


class Deadlines:
    """Keeps the deadlines of all trials with one timer: hardly any passes, and a timer each costs more than many take.

    The timer is for the first of them that was known when it was set. Going off, it is set anew for those still open.
    """

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float, give_up: Callable[[], None]) -> "Deadline":
        """Cancel the current task when its time is up, and give it up if it has not ended a moment later."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._timer = loop, None
        deadline = Deadline(self, asyncio.current_task(loop), loop.time() + seconds, give_up)
        self._open.add(deadline)
        self._see_to(deadline, loop)
        return deadline

    def move(self, deadline: "Deadline", seconds: float) -> float:
        """Let one that is still to come pass so many seconds from now instead. How many were left."""
        loop = self._loop
        assert loop is not None
        now = loop.time()
        left, deadline.at = deadline.at - now, now + seconds
        self._see_to(deadline, loop)
        return left

    def lift(self, deadline: "Deadline") -> None:
        """Forget one: its trial has ended."""
        self._open.discard(deadline)

    def _see_to(self, deadline: "Deadline", loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None or deadline.at < self._timer.when():
            self._set_timer(loop)

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        first = min((one.at for one in self._open), default=None)
        self._timer = None if first is None else loop.call_at(first, self._go_off, loop, first)

    def _go_off(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        now = max(when, loop.time())  # which by its own clock may be a hair too early
        for deadline in [one for one in self._open if one.at <= now]:
            deadline.pass_by(now)
        self._timer = None
        self._set_timer(loop)


class Deadline:
    """Cancels a task when its time is up, and gives it up if it has not ended a moment later."""

    __slots__ = ("_expired", "_give_up", "_keeper", "_left", "_task", "at")

    def __init__(
        self, keeper: Deadlines, task: "asyncio.Task[None] | None", at: float, give_up: Callable[[], None]
    ) -> None:
        self._keeper = keeper
        self._task = task
        self.at = at
        """When it passes, by the loop's clock."""
        self._give_up = give_up
        self._expired = False
        self._left = 0.0

    def pass_by(self, now: float) -> None:
        """The time has come."""
        if self._expired:
            self.lift()
            self._give_up()
        else:
            self._expired = True
            self.at = now + GRACE
            assert self._task is not None
            self._task.cancel()

    def passed(self) -> bool:
        """Whether a cancellation was ours. It is taken back then, unless somebody else asked for one, too."""
        return self._expired and self._task is not None and self._task.uncancel() == 0

    def stand_still(self, most: float) -> None:
        """The trial can't begin yet: its time stands still, for so many seconds at most."""
        if not self._expired:
            self._left = self._keeper.move(self, most)

    def go_on(self) -> None:
        """Its time counts again."""
        if not self._expired:
            self._keeper.move(self, self._left)

    def lift(self) -> None:
        """The trial has ended."""
        self._keeper.lift(self)
