"""Workers pull trials from a feed; each result goes to the journal first and then to the listeners."""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count

from atp.engine.adaptive import AdaptiveRuns
from atp.engine.planned_trial import Trial
from atp.engine.prepare.resume import FinishedTrials
from atp.engine.signals import without_exit
from atp.engine.stop import Stop
from atp.engine.trial.deadline import GRACE
from atp.engine.trial.trial import TrialRunner, unfinished
from atp.journal.collect import Collector
from atp.journal.listeners import Listener
from atp.journal.records import Before, Kept
from atp.journal.records import Case as CaseLine
from atp.journal.records import Trial as TrialLine
from atp.journal.write import Journal, JournalError
from atp.stats.summary import Summary
from atp.suite.result import CaseInfo, CaseResult, TrialResult

MOST_WAITING = 1000
"""Trials that may be put aside because their agent is busy, so that other agents' trials can go first."""
YIELD_EVERY = 8
"""A worker yields to the event loop after this many trials, because agents that answer immediately never do."""


class Feed:
    """Hands out the next trial whose agent has room for it. Only trials that wait for their agent are in memory."""

    def __init__(self, trials: Iterator[Trial], adaptive: AdaptiveRuns) -> None:
        self._trials = trials
        self._adaptive = adaptive
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
        """A trial to run now, or nothing when there is none left. Call `done` when it has ended."""
        while not self.closed:
            trial = self._pick()
            if trial is not None:
                trial.tested.active += 1
                return trial
            if self._exhausted and not self._aside and not self._adaptive.is_waiting:
                return None
            self._room.clear()
            await self._room.wait()
        return None

    def done(self, trial: Trial) -> None:
        """Make room at the agent of a trial that has ended, and for what its result asks for."""
        trial.tested.active -= 1
        if self._aside or self.closed or trial.min_runs:
            self._room.set()

    def _pick(self) -> Trial | None:
        for queue in self._waiting.values():
            if queue and _has_room(queue[0]):
                self._aside -= 1
                return queue.popleft()
        while self._aside < MOST_WAITING:
            trial = self._adaptive.next()
            if trial is None and not self._exhausted:
                trial = next(self._trials, None)
                if trial is None:
                    self._exhausted = True
                    self._room.set()  # other workers may be waiting, and must learn that there is nothing more
                elif trial.min_runs:
                    self._adaptive.open(trial, self._trials)
                    continue
            if trial is None:
                break
            if _has_room(trial):
                return trial
            self._waiting.setdefault(id(trial.tested), deque()).append(trial)
            self._aside += 1
        return None


def _has_room(trial: Trial) -> bool:
    return trial.tested.limit is None or trial.tested.active < trial.tested.limit


class Engine:
    """Runs trials, `parallel` at a time, and records each result before any listener hears of it."""

    def __init__(
        self,
        runner: TrialRunner,
        journal: Journal,
        done: FinishedTrials,
        stop: Stop,
        listeners: Listener,
        parallel: int,
    ) -> None:
        self._runner = runner
        runner.befores.on_result = self._on_before_result
        self._journal = journal
        self._done = done
        self._stop = stop
        self._listeners = listeners
        self._parallel = parallel
        self._collector = Collector()
        self._adaptive = AdaptiveRuns(done.case_line)
        self._feed = Feed(iter(()), self._adaptive)
        self._workers: dict[asyncio.Task[None], Trial | None] = {}
        """The running workers, each with the trial that it is running."""
        self._all_done: asyncio.Future[None] | None = None
        self.summary = Summary()

    async def run(self, trials: Iterable[Trial], planned: int) -> None:
        """Run trials until all have ended or the run is stopped. Raises `JournalError`."""
        loop = asyncio.get_running_loop()
        self._feed = Feed(iter(trials), self._adaptive)
        self._stop.act = self._act
        self._all_done = loop.create_future()
        for _ in range(min(self._parallel, max(planned, 1))):
            self._start_worker()
        try:
            await self._all_done
        finally:
            # All trials have ended, or a worker raised (a full disk), or this call was cancelled.
            self._act(cancel=True)
            if self._workers:
                await asyncio.wait(self._workers, timeout=2 * GRACE)

    def running_timeouts(self) -> Iterator[float]:
        """The timeouts of the trials that are running, and of the befores that they may be waiting for."""
        for trial in tuple(self._workers.values()):  # a copy: another thread may be asking
            one = trial
            while one is not None:
                yield one.timeout
                one = one.before

    def _start_worker(self) -> None:
        worker = asyncio.get_running_loop().create_task(without_exit(self._work()))
        self._workers[worker] = None
        worker.add_done_callback(self._on_worker_done)

    def _on_worker_done(self, worker: "asyncio.Task[None]") -> None:
        """Finish `run` when the last worker ends, and re-raise a worker's error. Abandoned workers are ignored."""
        if worker in self._workers:
            del self._workers[worker]
            assert self._all_done is not None
            if not worker.cancelled() and (error := worker.exception()) and not self._all_done.done():
                self._all_done.set_exception(error)
            if not self._workers and not self._all_done.done():
                self._all_done.set_result(None)
        elif not worker.cancelled():
            worker.exception()  # looked at, so that asyncio does not log it

    def _abandon(self, worker: "asyncio.Task[None]", trial: Trial, result: TrialResult) -> None:
        """Record a trial that won't end, without waiting for it, and start another worker in place of its own."""
        if worker in self._workers:
            self._start_worker()
            del self._workers[worker]
            self._record(trial, result)

    def _abandon_unfinished(self) -> None:
        """Record every trial that ignored its cancellation as cancelled."""
        for worker, trial in list(self._workers.items()):
            if trial is not None:
                self._abandon(worker, trial, unfinished(trial, "cancelled", "cancelled"))

    def report_incomplete_cases(self) -> None:
        """Report the cases of which a stop left trials out."""
        for trial, line in self._adaptive.stop(self._stop.kind):
            try:
                self._journal.write(line)
            except JournalError as error:
                self._stop.on_broken_journal(error)
            self._on_case(self._collector.close(trial, line))
        for case in self._collector.rest():
            self._on_case(case)

    def _act(self, cancel: bool) -> None:
        """Start no more trials, and cancel those that run if asked to."""
        self._feed.close()
        if cancel and self._workers:
            own = asyncio.current_task()
            for worker in self._workers:
                if worker is not own:  # that one finds the feed closed
                    worker.cancel()
            asyncio.get_running_loop().call_later(GRACE, self._abandon_unfinished)

    async def _work(self) -> None:
        own = asyncio.current_task()
        assert own is not None
        for number in count(1):
            try:
                if number % YIELD_EVERY == 0:
                    await asyncio.sleep(0)
                trial = await self._feed.next()
            except asyncio.CancelledError:
                return  # while it waited for a trial, and there will be none
            if trial is None:
                return
            result = self._done.get(trial.key)
            if result is not None and self._runner.take_over(trial, result):
                self._take_over(trial, result)
                continue
            self._workers[own] = trial
            self._listeners.began(trial)
            result = await self._runner.run(trial, partial(self._abandon, own, trial))
            if own not in self._workers:
                return  # the trial ended after all, but was abandoned and recorded before
            self._workers[own] = None
            self._record(trial, result)

    def _on_before_result(self, trial: Trial, result: TrialResult) -> None:
        """Record a replayed before. It counts towards the budget, but is not a trial of the plan."""
        self._journal.write(Before(result=result, file=trial.file))
        self._stop.on_before_result(result)

    def _about(self, trial: Trial) -> CaseInfo | None:
        if trial.gate.confidence is not None:
            trial.other_runs = trial.other_runs or self._done.planned_otherwise(trial)
        return self._collector.about(trial)

    def _record(self, trial: Trial, result: TrialResult) -> None:
        about = self._about(trial)
        self._journal.write(TrialLine(result=result, file=trial.file, about=about))
        self._stop.on_result(result, trial.gate, excused=trial.quarantine is not None)
        self._on_result(trial, result, about, ran=True)

    def _take_over(self, trial: Trial, result: TrialResult) -> None:
        """Record that a trial was done before the run went on, so that the lines from here on tell the whole run."""
        about = self._about(trial)
        self._journal.write(Kept(key=trial.key, index=trial.case.index, file=trial.file, about=about))
        self._stop.add_cost(result)
        self._on_result(trial, result, about, ran=False)

    def _on_result(self, trial: Trial, result: TrialResult, about: CaseInfo | None, *, ran: bool) -> None:
        self._feed.done(trial)
        self._listeners.ended(trial, result)
        case = self._collector.add(trial, result, about)
        if case is not None:
            self._on_case(case)
        elif trial.min_runs and (line := self._adaptive.add(trial, result, ran=ran)) is not None:
            self._close(trial, line)

    def _close(self, trial: Trial, line: CaseLine) -> None:
        """Record that no further run of a case is needed."""
        self._journal.write(line)
        self._on_case(self._collector.close(trial, line))

    def _on_case(self, case: CaseResult) -> None:
        self.summary.add_case(case)
        self._stop.on_case(case)
        self._listeners.case(case)
