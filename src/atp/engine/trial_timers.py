"""Sets the timers of the watchdog when a trial begins."""

import asyncio
from collections.abc import Callable

from atp.journal.listeners import Listener
from atp.suite.result import TrialRef
from atp.usercode.watchdog import Watchdog


class TrialTimers(Listener):
    """Sets the timers whenever a trial begins: its code may hold the interpreter before the watchdog looks again."""

    def __init__(self, new_watchdog: Callable[[asyncio.AbstractEventLoop], Watchdog]) -> None:
        self._new_watchdog = new_watchdog
        self._watchdog: Watchdog | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> Watchdog:
        """Return the watchdog of the loop that the run is in."""
        self._watchdog = self._new_watchdog(loop)
        return self._watchdog

    def began(self, trial: TrialRef) -> None:
        """Set the timers."""
        if self._watchdog is not None:
            self._watchdog.set_timers()
