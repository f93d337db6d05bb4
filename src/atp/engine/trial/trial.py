"""Runs one trial: first the befores that it goes on from, then its attempts, all within its deadline."""

import asyncio
import time
from collections.abc import Callable

from atp.engine.planned_trial import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.befores import Befores, Replayed, Snapshot, why_not
from atp.engine.trial.deadline import Deadline, Deadlines
from atp.engine.trial.ending import Ending
from atp.engine.trial.judging import JudgedTrial
from atp.engine.trial.running import RunningTrial
from atp.suite.metrics import collect_metrics
from atp.suite.result import Status, TrialResult

Abandon = Callable[[TrialResult], None]
"""Called with the result of a trial that won't end."""


class TrialRunner:
    """Runs the trials of a run, one call each."""

    def __init__(self, context: RunContext) -> None:
        self.befores = Befores()
        """The befores of the run."""
        self._context = context
        self._deadlines = Deadlines()

    async def run(self, trial: Trial, abandon: Abandon) -> TrialResult:
        """The result of a trial. Nothing that happens in it is raised from here.

        The trial runs in the task that calls. Should it refuse to end when its time is up, `abandon` is called with
        the result, and this call may never return.
        """
        if trial.before is None and not trial.is_before:
            return (await self._run(trial, None, abandon))[0]
        try:
            if not trial.is_before:
                return (await self._run_after_befores(trial, abandon)).result

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(trial, result)
                abandon(result)

            return (await self.befores.run_once(trial, lambda own: self._run_after_befores(own, give_up))).result
        except asyncio.CancelledError:  # while another trial was running the befores
            return unfinished(trial, "cancelled", "cancelled")

    def take_over(self, trial: Trial, result: TrialResult) -> bool:
        """Take over the result of a trial that is done. Returns False if the trial has to run again.

        It has to if others would judge it now, or simulate its user: a run would mix the opinions of two. So too if
        the golden files are not those that it was compared with, or that it wrote.
        """
        if not self._is_judged_by_the_same(trial, result):
            return False
        golden = self._context.golden_files(trial) if trial.has_snapshots else None
        if golden is not None and result.golden_digest is not None:
            if golden.digest() != result.golden_digest:
                return False
            if result.status == "passed":
                golden.settle()
        return True

    def _is_judged_by_the_same(self, trial: Trial, result: TrialResult) -> bool:
        now = _new_result(trial)
        self._identify_roles(trial, now)
        pairs = ((result.judge_digest, now.judge_digest), (result.simulator_digest, now.simulator_digest))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)  # earlier versions did not write them

    def _identify_roles(self, trial: Trial, result: TrialResult) -> None:
        if trial.source.survey.deciders:
            result.judge_digest = self._context.roles.judge_digest(trial.case, trial.source)
        if trial.mode == "dialogue":
            result.simulator_digest = self._context.roles.simulator_digest(trial.case, trial.source)

    async def _run_after_befores(self, trial: Trial, abandon: Abandon) -> Replayed:
        """Run a trial, going on from its befores, which are run first if no other trial has run them."""
        start: Snapshot | None = None
        if (before := trial.before) is not None:

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(before, result)
                abandon(unfinished(trial, "blocked", why_not(result)))

            replayed = await self.befores.replay(before, lambda one: self._run_after_befores(one, give_up))
            if replayed.snapshot is None:
                return Replayed(unfinished(trial, "blocked", replayed.why), None, replayed.why)
            start = replayed.snapshot
        if trial.case.skip:
            why = f"before `{trial.case.id}` is skipped by its file"
            return Replayed(unfinished(trial, "skipped", why), None, why)
        result, snapshot = await self._run(trial, start, abandon)
        return Replayed(result, snapshot, "" if snapshot else why_not(result))

    def _time_limit(self, trial: Trial) -> float:
        """The seconds that a trial may take."""
        return trial.timeout

    def _new_trial(self, trial: Trial, result: TrialResult, start: Snapshot | None) -> JudgedTrial:
        return RunningTrial(trial, result, self._context, start)

    async def _run(self, trial: Trial, start: Snapshot | None, abandon: Abandon) -> tuple[TrialResult, Snapshot | None]:
        result = _new_result(trial)
        self._identify_roles(trial, result)
        self._context.services.recordings.begin_trial()
        running = self._new_trial(trial, result, start)
        deadline = Deadline(self._deadlines, self._time_limit(trial), lambda: abandon(running.abandoned()))
        try:
            await running.run(deadline)
        except asyncio.CancelledError:
            if deadline.is_cause_of_cancellation():
                running.time_out()
            else:
                running.end(Ending("cancelled", "cancelled"))
            # Code that was left to itself, in a thread for example, must not write on into what is reported.
            result = running.copy_result()
        finally:
            deadline.cancel()
        result.duration_ms = running.duration_ms
        collect_metrics(result)
        await running.clean_up()
        return result, running.snapshot


def _new_result(trial: Trial) -> TrialResult:
    return TrialResult(
        key=trial.key,
        case_digest=trial.case_digest,
        agent_digest=trial.tested.inputs.digest,
        agent=trial.agent,
        case=trial.case.id,
        index=trial.case.index,
        variation=trial.variation,
        origin=trial.origin,
        run=trial.run,
        started_at=time.time(),
    )


def unfinished(trial: Trial, status: Status, why: str) -> TrialResult:
    """The result of a trial that never began, or that won't end."""
    result = _new_result(trial)
    result.status, result.error = status, why
    return result
