"""Ends a process of ATP's own when code that is not ours keeps the event loop, or the whole interpreter, for good.

A thread wakes up once a second. It sees that the event loop has no turn any more, as with an `async def` that blocks.
Code that holds the interpreter, as a regular expression can for years, holds up that thread too. For this there are
timers that need no interpreter (`cpu_timers`), which the thread sets back each time. See docs/design/usercode.md.
"""

import asyncio
import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable

from atp.usercode.cpu_timers import CpuTimers
from atp.usercode.exits import EXIT_CODE, exit_now

TICK = 1.0
"""Seconds between two looks at the event loop."""
GRACE = 30.0
"""Seconds by which the code under test may exceed the longest timeout of the trials that are running."""
CPU_GRACE = 5.0
"""CPU seconds of each processor that may pass between two ticks: code that has let the interpreter go may use all."""
_ADVICE = (
    "so that no timeout could end it. What is finished is in the journal: go on with --resume. "
    "An agent with python: has a process of its own, which can be ended."
)
BLOCKED = f"the code under test has blocked the event loop for longer than a trial may take, {_ADVICE}"
HELD = f"the code under test has held the Python interpreter for longer than a trial may take, {_ADVICE}"
_STDERR = 2


class Watchdog:
    """Watches an event loop until the end of the `with` block. To be entered in the thread of the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit: Callable[[], float | None],
        usual: float,
        leave: Callable[[], None] = lambda: None,
    ) -> None:
        """`limit` returns for how many seconds the loop may be blocked, apart from the grace. Called in another thread.

        It returns None while there is no limit: `usual` seconds is then in force, but only for the interpreter. `leave`
        is called before the process ends, if the interpreter lets it.
        """
        self._loop = loop
        self._limit = limit
        self._usual = usual
        self._leave = leave
        self._loops_thread = threading.get_ident()
        self._timers = CpuTimers.create(HELD)
        self._setting = threading.Lock()
        self._ended = threading.Event()
        self._had_turn = False

    def __enter__(self) -> None:
        self.set_timers()
        threading.Thread(target=self._watch, name="atp-watchdog", daemon=True).start()

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        if self._timers is not None:
            self._timers.close()

    def set_timers(self) -> float | None:
        """Set the timers to the limit, and return it.

        To be called when the limit changes: code that begins to hold the interpreter now holds up the thread that
        would look for it.
        """
        with self._setting:  # a thread that has asked for the limit earlier must not set it later
            limit = self._limit()
            if self._timers is not None:
                self._timers.set(max((limit or self._usual) + GRACE, CPU_GRACE * (os.cpu_count() or 1)))
            return limit

    def _watch(self) -> None:
        # Counts its own turns, not the time. It has none while the process is stopped or the computer sleeps, and on a
        # busy computer the loop gets its turns when this thread does.
        missed = 0
        self._ask_for_turn()
        while not self._ended.wait(TICK):
            limit = self.set_timers()
            if self._had_turn or limit is None:
                missed = 0
                self._ask_for_turn()
                continue
            missed += 1
            if missed * TICK > limit + GRACE:
                self._end_process()

    def _ask_for_turn(self) -> None:
        self._had_turn = False
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run is over
            self._loop.call_soon_threadsafe(self._take_turn)

    def _take_turn(self) -> None:
        self._had_turn = True

    def _end_process(self) -> None:
        frame = sys._current_frames().get(self._loops_thread)
        stack = "".join(traceback.format_stack(frame, limit=10))
        with contextlib.suppress(OSError):
            os.write(_STDERR, f"atp: {BLOCKED}\n{stack}".encode(errors="backslashreplace"))
        self._leave()
        exit_now(EXIT_CODE)
