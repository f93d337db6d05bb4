"""The engine: workers pull trials, each result goes to the journal first and then to whoever listens."""

import asyncio
from functools import partial
from itertools import count

from atp.engine.feed import Feed
from atp.engine.prepare.plan import Plan, Trial
from atp.engine.prepare.resume import Done
from atp.engine.stop import Stop
from atp.engine.trial.deadline import GRACE
from atp.engine.trial.trial import TrialRunner
from atp.journal.collect import Collector
from atp.journal.listeners import Listener
from atp.journal.records import Before, Kept
from atp.journal.records import Trial as TrialLine
from atp.journal.write import Journal
from atp.stats.summary import Summary
from atp.suite.result import CaseInfo, TrialResult

BREATH = 8
"""Trials after which a worker lets the loop do its own work: agents that answer at once would never let it."""


class Engine:
    """Carries out a plan."""

    def __init__(
        self, plan: Plan, runner: TrialRunner, journal: Journal, done: Done, stop: Stop, audience: Listener
    ) -> None:
        self._plan = plan
        self._runner = runner
        runner.befores.heard = self._hear_before
        self._journal = journal
        self._done = done
        self._stop = stop
        self._audience = audience
        self._collector = Collector()
        self._feed = Feed(plan.trials())
        self._workers: dict[asyncio.Task[None], Trial | None] = {}
        """Those at work, each with its trial."""
        self._over: asyncio.Future[None] | None = None
        self.summary = Summary()
        self.problems: list[str] = []
        """What went wrong beside the trials."""

    async def run(self) -> None:
        """Run all trials, or as many as there is leave to."""
        self._stop.act = self._act
        self._over = asyncio.get_running_loop().create_future()
        for _ in range(min(self._plan.options.parallel, max(self._plan.counts()[1], 1))):
            self._hire()
        try:
            await self._over
        finally:
            # All are done, or one broke (a full disk), or whoever called us has had enough.
            self._act(cancel=True)
            if self._workers:
                await asyncio.wait(self._workers, timeout=2 * GRACE)
            await self._close_agents()

    def _hire(self) -> None:
        worker = asyncio.get_running_loop().create_task(self._work())
        self._workers[worker] = None
        worker.add_done_callback(self._left)

    def _left(self, worker: "asyncio.Task[None]") -> None:
        """A worker has no more to do, or broke; one that was given up before is no news."""
        if worker in self._workers:
            del self._workers[worker]
            assert self._over is not None
            if not worker.cancelled() and (error := worker.exception()) and not self._over.done():
                self._over.set_exception(error)
            if not self._workers and not self._over.done():
                self._over.set_result(None)
        elif not worker.cancelled():
            worker.exception()

    def _abandon(self, worker: "asyncio.Task[None]", trial: Trial, result: TrialResult) -> None:
        """A trial won't end: report it without waiting for it, and have somebody else do its worker's work."""
        if worker in self._workers:
            self._hire()
            del self._workers[worker]
            self._record(trial, result)

    def _abandon_all(self) -> None:
        """Whoever was told to stop and has not done so."""
        for worker, trial in list(self._workers.items()):
            if trial is not None:
                lost = TrialResult(key=trial.key, agent=trial.tested.name, case=trial.case.id, index=trial.case.index)
                lost.variation, lost.run, lost.status, lost.error = trial.variation, trial.run, "cancelled", "cancelled"
                self._abandon(worker, trial, lost)

    def tell_rest(self) -> None:
        """Report the cases that a stop left incomplete."""
        for case in self._collector.rest():
            self.summary.add_case(case)
            self._audience.case(case)

    async def _close_agents(self) -> None:
        for tested in self._plan.tested():
            try:
                await tested.close()
            except Exception as error:  # a plugin's: the results are all there, and so is the next agent to close
                self.problems.append(f"agent {tested.name} could not be closed: {type(error).__name__}: {error}")

    def _act(self, cancel: bool) -> None:
        self._feed.close()
        if cancel and self._workers:
            own = asyncio.current_task()
            for worker in self._workers:
                if worker is not own:  # that one sees that the feed is closed
                    worker.cancel()
            asyncio.get_running_loop().call_later(GRACE, self._abandon_all)

    async def _work(self) -> None:
        own = asyncio.current_task()
        assert own is not None
        for number in count(1):
            try:
                if number % BREATH == 0:
                    await asyncio.sleep(0)
                trial = await self._feed.next()
            except asyncio.CancelledError:
                return  # waiting for work, and there will be none
            if trial is None:
                return
            result = self._done.get(trial.key)
            if result is not None:
                self._keep(trial, result)
                continue
            self._audience.began(trial)
            self._workers[own] = trial
            result = await self._runner.run(trial, partial(self._abandon, own, trial))
            if own not in self._workers:
                return  # came to its end after all, but nobody waits for it any more
            self._workers[own] = None
            self._record(trial, result)

    def _hear_before(self, trial: Trial, result: TrialResult) -> None:
        """A case was replayed only for others to go on from: it costs, but it is no trial of the plan."""
        self._journal.write(Before(result=result, file=trial.source.suite.path or ""))
        self._stop.see_before(result)

    def _record(self, trial: Trial, result: TrialResult) -> None:
        about = self._collector.about(trial)
        self._journal.write(TrialLine(result=result, file=trial.source.suite.path or "", about=about))
        self._stop.see(result)
        self._heard(trial, result, about)

    def _keep(self, trial: Trial, result: TrialResult) -> None:
        """A trial is done already: the journal says so, that it tells the run from here on by itself."""
        about = self._collector.about(trial)
        file, index = trial.source.suite.path or "", trial.case.index
        self._journal.write(Kept(key=trial.key, index=index, file=file, about=about))
        self._stop.see_again(result)
        self._heard(trial, result, about)

    def _heard(self, trial: Trial, result: TrialResult, about: CaseInfo | None) -> None:
        self._feed.done(trial)
        self._audience.ended(trial, result)
        case = self._collector.add(trial, result, about)
        if case is not None:
            self.summary.add_case(case)
            self._audience.case(case)
