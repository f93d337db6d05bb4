"""Befores: each sequence of cases that others go on from is run once for each agent, judged, and kept."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from atp.engine.prepare.plan import Trial
from atp.engine.trial.snapshot import Snapshot
from atp.suite.result import TrialResult


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a before."""

    result: TrialResult
    """Everything about it."""
    snapshot: Snapshot | None
    """What it left; nothing if it did not pass."""
    why: str = ""
    """Why nobody can go on from it: the first of its sequence that did not pass."""


Play = Callable[[Trial], Awaitable[Replayed]]
"""Runs a before, whose own befores were looked up already."""


class Befores:
    """Runs befores when they are first needed."""

    def __init__(self) -> None:
        self.on_result: Callable[[Trial, TrialResult], None] = lambda trial, result: None
        """Set by the engine: called for every before that is run only for others to go on from."""
        self._played: dict[str, asyncio.Future[Replayed]] = {}

    async def of(self, before: Trial, play: Play) -> Replayed:
        """What came of a before; it is run by whoever asks first."""
        known = before.key in self._played
        replayed = await self.own(before, play)
        if not known:
            self.on_result(before, replayed.result)
        return replayed

    async def own(self, trial: Trial, play: Play) -> Replayed:
        """The same for a trial of the plan that others go on from: it is run once, for them and for itself."""
        found = self._played.get(trial.key)
        if found is not None:
            return await asyncio.shield(found)
        future = self._played[trial.key] = asyncio.get_running_loop().create_future()
        try:
            replayed = await play(trial)
        except BaseException:
            del self._played[trial.key]
            future.cancel()
            raise
        if not future.done():
            future.set_result(replayed)
        return replayed

    def give_up(self, trial: Trial, result: TrialResult) -> None:
        """A before won't end: nobody can go on from it, and nobody must wait for it."""
        future = self._played.get(trial.key)
        if future is not None and not future.done():
            future.set_result(Replayed(result, None, why_not(result)))


def why_not(result: TrialResult) -> str:
    """Why nobody can go on from a before."""
    return f"before `{result.case}` did not pass: {result.error or result.status}"
