"""The engine: workers pull trials, each result goes to the journal first and then to whoever listens."""

import asyncio

from atp.run.collect import Collector
from atp.run.feed import Feed
from atp.run.journal import Journal
from atp.run.journal import Trial as TrialLine
from atp.run.listener import Listener
from atp.run.plan import Plan, Trial
from atp.run.resume import Done
from atp.run.stop import Stop
from atp.run.trial import TrialRunner
from atp.stats.summary import Summary
from atp.suite.result import TrialResult


class Engine:
    """Carries out a plan."""

    def __init__(
        self, plan: Plan, runner: TrialRunner, journal: Journal, done: Done, stop: Stop, audience: Listener
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._journal = journal
        self._done = done
        self._stop = stop
        self._audience = audience
        self._collector = Collector()
        self._feed = Feed(plan.trials())
        self._workers: list[asyncio.Task[None]] = []
        self.summary = Summary()
        self.problems: list[str] = []
        """What went wrong beside the trials."""

    async def run(self) -> None:
        """Run all trials, or as many as there is leave to."""
        self._stop.act = self._act
        self._stop.watch_clock()
        number = min(self._plan.options.parallel, max(self._plan.counts()[1], 1))
        self._workers = [asyncio.ensure_future(self._work()) for _ in range(number)]
        try:
            await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            # All are done, or one broke (a full disk), or whoever called us has had enough.
            self._act(cancel=True)
            await asyncio.wait(self._workers)
            self._stop.end()
            await self._close_agents()
        for worker in self._workers:
            if not worker.cancelled():
                worker.result()

    def tell_rest(self) -> None:
        """Report the cases that a stop left incomplete."""
        for case in self._collector.rest():
            self.summary.add_case(case)
            self._audience.case(case)

    async def _close_agents(self) -> None:
        for tested in self._plan.tested():
            try:
                await tested.adapter.close()
            except Exception as error:  # a plugin's: the results are all there, and so is the next agent to close
                self.problems.append(f"agent {tested.name} could not be closed: {type(error).__name__}: {error}")

    def _act(self, cancel: bool) -> None:
        self._feed.close()
        if cancel:
            own = asyncio.current_task()
            for worker in self._workers:
                if worker is not own:  # that one sees that the feed is closed
                    worker.cancel()

    async def _work(self) -> None:
        while True:
            try:
                trial = await self._feed.next()
            except asyncio.CancelledError:
                return  # waiting for work, and there will be none
            if trial is None:
                return
            result = self._done.get(trial.key)
            if result is None:
                self._audience.began(trial)
                result = await self._runner.run(trial)
                self._journal.write(TrialLine(result=result, file=trial.source.suite.path or ""))
                self._stop.see(result)
            else:
                self._stop.see_again(result)
            self._feed.done(trial)
            self._heard(trial, result)

    def _heard(self, trial: Trial, result: TrialResult) -> None:
        self._audience.ended(trial, result)
        case = self._collector.add(trial, result)
        if case is not None:
            self.summary.add_case(case)
            self._audience.case(case)
