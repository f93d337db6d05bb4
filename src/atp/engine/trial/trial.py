"""One trial, from the first word to the verdicts. Whatever happens in it stays in it."""

import asyncio
import time
from collections.abc import Callable

from atp.engine.prepare.plan import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.attempt import Attempt
from atp.engine.trial.befores import Befores, Replayed, why_not
from atp.engine.trial.deadline import Deadlines
from atp.engine.trial.ending import Ending
from atp.engine.trial.snapshot import Snapshot
from atp.suite.result import Status, TrialResult

Abandon = Callable[[TrialResult], None]
"""Told the result of a trial that won't end."""


class TrialRunner:
    """Runs the trials of a run, one call each."""

    def __init__(self, context: RunContext) -> None:
        self.befores = Befores()
        """What trials go on from."""
        self._context = context
        self._deadlines = Deadlines()

    async def run(self, trial: Trial, abandon: Abandon) -> TrialResult:
        """The result of a trial. Nothing that happens in it comes out of here as an exception.

        It runs in the task that calls, for speed. Should it refuse to end when its time is up, `abandon` is told the
        result, and this call may never return.
        """
        if trial.before is None and not trial.leads:
            return (await self._hold(trial, None, abandon))[0]
        try:
            if not trial.leads:
                return (await self._play(trial, abandon)).result

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(trial, result)
                abandon(result)

            return (await self.befores.own(trial, lambda own: self._play(own, give_up))).result
        except asyncio.CancelledError:  # while somebody else's befores were under way
            return unfinished(trial, "cancelled", "cancelled")

    async def _play(self, trial: Trial, abandon: Abandon) -> Replayed:
        """Run a trial, going on from its befores, which are run first if nobody has yet."""
        start: Snapshot | None = None
        if (before := trial.before) is not None:

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(before, result)
                abandon(unfinished(trial, "blocked", why_not(result)))

            replayed = await self.befores.of(before, lambda one: self._play(one, give_up))
            if replayed.snapshot is None:
                return Replayed(unfinished(trial, "blocked", replayed.why), None, replayed.why)
            start = replayed.snapshot
        if trial.case.skip:
            why = f"before `{trial.case.id}` is skipped by its file"
            return Replayed(unfinished(trial, "skipped", why), None, why)
        result, snapshot = await self._hold(trial, start, abandon)
        return Replayed(result, snapshot, "" if snapshot else why_not(result))

    async def _hold(
        self, trial: Trial, start: Snapshot | None, abandon: Abandon
    ) -> tuple[TrialResult, Snapshot | None]:
        result = _new_result(trial)
        self._context.services.recordings.begin_trial()
        attempt = Attempt(trial, result, self._context, start)
        deadline = self._deadlines.begin(trial.timeout, lambda: abandon(attempt.late()))
        try:
            await attempt.hold(deadline)
        except asyncio.CancelledError:
            if deadline.passed():
                attempt.timed_out()
            else:
                attempt.end(Ending("cancelled", "cancelled"))
            # Code that was left to itself, in a thread for example, must not write on into what is reported.
            result = attempt.copy_result()
        finally:
            deadline.lift()
        result.duration_ms = attempt.duration_ms
        await attempt.clean_up()
        return result, attempt.snapshot


def _new_result(trial: Trial) -> TrialResult:
    return TrialResult(
        key=trial.key,
        agent=trial.tested.name,
        case=trial.case.id,
        index=trial.case.index,
        variation=trial.variation,
        origin=trial.origin,
        run=trial.run,
        started_at=time.time(),
    )


def unfinished(trial: Trial, status: Status, why: str) -> TrialResult:
    """The result of a trial that never began."""
    result = _new_result(trial)
    result.status, result.error = status, why
    return result
