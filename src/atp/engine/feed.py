"""Workers pull trials from here. Never more in memory than are running, and a few that wait for their agent."""

import asyncio
from collections import deque
from collections.abc import Iterator

from atp.engine.prepare.plan import Trial

MOST_WAITING = 1000
"""Trials that may be put aside because their agent is busy, so that other agents' trials can go first."""


class Feed:
    """The next trial for a worker, whose agent has room for it."""

    def __init__(self, trials: Iterator[Trial]) -> None:
        self._trials = trials
        self._waiting: dict[int, deque[Trial]] = {}
        self._aside = 0
        self._room = asyncio.Event()
        self._exhausted = False
        self.closed = False

    def close(self) -> None:
        """Hand out nothing more."""
        self.closed = True
        self._room.set()

    async def next(self) -> Trial | None:
        """A trial to run now, or nothing when there is none left. Give it back with `done`."""
        while not self.closed:
            trial = self._pick()
            if trial is not None:
                trial.tested.active += 1
                return trial
            if self._exhausted and not self._aside:
                return None
            self._room.clear()
            await self._room.wait()
        return None

    def done(self, trial: Trial) -> None:
        """A trial ended: its agent has room again."""
        trial.tested.active -= 1
        if self._aside or self.closed:
            self._room.set()

    def _pick(self) -> Trial | None:
        for queue in self._waiting.values():
            if queue and _has_room(queue[0]):
                self._aside -= 1
                return queue.popleft()
        while not self._exhausted and self._aside < MOST_WAITING:
            trial = next(self._trials, None)
            if trial is None:
                self._exhausted = True
                self._room.set()  # others may be waiting to hear that there is nothing more
                break
            if _has_room(trial):
                return trial
            self._waiting.setdefault(id(trial.tested), deque()).append(trial)
            self._aside += 1
        return None


def _has_room(trial: Trial) -> bool:
    return trial.tested.limit is None or trial.tested.active < trial.tested.limit
