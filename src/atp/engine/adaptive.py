"""Runs of cases whose number is not fixed beforehand (`--runs auto`): each case gets runs until its gate is decided."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from atp.engine.planned_trial import Trial
from atp.journal.records import Case as CaseLine
from atp.suite.result import StoppedBy, TrialResult

FindLine = Callable[[Trial], CaseLine | None]
"""Finds the line that closed the case of a trial before the run went on, if it is still valid."""


ERRORS_AT_MOST = 5
"""A case whose first trials all end in errors that are not the agent's gets no more than so many: nobody is there."""


class AdaptiveRuns:
    """Hands out the runs of the adaptive cases that are open, and says when each case is decided.

    A case is open from its first trial to its last; there are hardly more open cases than workers, because a new one
    is opened only when no open case can use a further run.
    """

    def __init__(self, find_line: FindLine) -> None:
        self._find_line = find_line
        self._open: dict[tuple[int, str, int], AdaptiveCase] = {}
        self._ready: deque[AdaptiveCase] = deque()
        """Open cases that may have runs to hand out."""

    @property
    def is_waiting(self) -> bool:
        """True if results of open cases decide whether there are further trials."""
        return bool(self._open)

    def open(self, first: Trial, plan: Iterator[Trial]) -> None:
        """Open the case of a trial that the plan yielded. Its other variations are the plan's next trials."""
        case = AdaptiveCase([first, *islice(plan, first.siblings // first.runs - 1)], self._find_line(first))
        self._open[_place(first)] = case
        self._ready.append(case)

    def next(self) -> Trial | None:
        """A trial that an open case needs whatever its trials under way come to; None if there is none at present."""
        while self._ready:
            trial = self._ready[0].next()
            if trial is not None:
                return trial
            self._ready.popleft()
        return None

    def add(self, trial: Trial, result: TrialResult, *, ran: bool) -> CaseLine | None:
        """Add the result of a trial. Returns the line that closes its case, once all trials under way have ended.

        `ran`: the trial ran now, and was not taken over from before the run went on.
        """
        case = self._open[_place(trial)]
        case.add(trial, result, ran=ran)
        if case.is_done:
            del self._open[_place(trial)]
            return case.line(None)
        if case not in self._ready:
            self._ready.append(case)
        return None

    def stop(self, by: StoppedBy) -> Iterator[tuple[Trial, CaseLine]]:
        """Close the cases that a stop of the run left open. Yields a trial of each, and the line that closes it."""
        for case in self._open.values():
            if case.begun:
                yield case.first, case.line(by)
        self._open.clear()
        self._ready.clear()


def _place(trial: Trial) -> tuple[int, str, int]:
    return id(trial.suite), trial.agent, trial.case.index


class AdaptiveCase:
    """A case with `--runs auto`: which of its runs were handed out, and what the sequential test says of ended runs."""

    def __init__(self, variations: list[Trial], recorded: CaseLine | None) -> None:
        """`variations` are the trials of the first run; `recorded` is the line that closed the case before."""
        from atp.stats.sequential import Design, SequentialTest  # only runs with `--runs auto` need the test

        first, gate = variations[0], variations[0].gate
        assert gate.rate is not None
        design = Design(gate.rate, gate.margin, gate.alpha, first.min_runs, first.runs, len(variations))
        self._variations = variations
        self._recorded = recorded
        self._test = SequentialTest(design)
        self._results: dict[tuple[int, int], tuple[bool, bool] | None] = {}
        """Results that wait for those of earlier runs, by run and variation."""
        self._handed_out = 0
        self._under_way = 0
        self._ended = 0
        self._entered = 0
        self._errors = 0
        self._unusable = False
        self._gave_up = False

    @property
    def first(self) -> Trial:
        """The first trial of the case."""
        return self._variations[0]

    @property
    def begun(self) -> bool:
        """True once a trial has ended. A trial that was handed out may still wait for its agent."""
        return self._ended > 0

    def next(self) -> Trial | None:
        """The next trial in run order, unless the case may be decided without it."""
        number, variations = self._handed_out, len(self._variations)
        if number >= self._wanted_runs * variations:
            return None
        self._handed_out += 1
        self._under_way += 1
        run, variation = divmod(number, variations)
        return self._variations[variation].of_run(run + 1)

    @property
    def _wanted_runs(self) -> int:
        """How many runs are needed at least, by what is known so far."""
        if self.first.recorded_runs:
            return self.first.recorded_runs
        if self._recorded is not None:
            return self._recorded.runs + self._recorded.surplus_runs
        return 0 if self._unusable or self._gave_up else self._test.runs + self._test.least_more_runs

    def add(self, trial: Trial, result: TrialResult, *, ran: bool) -> None:
        """Add a result, and let the test look at all runs that are whole and have no gap before them."""
        from atp.stats.case_gate import as_result

        if ran:
            self._recorded = None  # something has changed since the case was closed
        self._under_way -= 1
        self._ended += 1
        if result.status != "cancelled":  # then the run was stopped, which closes the case
            self._results[trial.run, trial.variation] = as_result(result)
        while not self._test.stop and not self._unusable and not self._gave_up:
            run, variation = divmod(self._entered, len(self._variations))
            if (run + 1, variation) not in self._results:
                break
            entered = self._results.pop((run + 1, variation))
            if entered is None:  # blocked or skipped: further runs would come to no more
                self._unusable = True
                break
            self._test.add(*entered)
            self._entered += 1
            self._errors += entered == (False, True)
            only_errors = self._errors == self._entered and not self._test.stop
            self._gave_up = only_errors and self._entered >= ERRORS_AT_MOST and not self.first.recorded_runs

    @property
    def is_done(self) -> bool:
        """True if no trial is under way and none is needed any more."""
        if self._under_way or self._handed_out < self._wanted_runs * len(self._variations):
            return False
        if self._recorded is not None or self._unusable or self._gave_up or self._test.stop is not None:
            return True
        return self.first.recorded_runs > 0

    def line(self, stopped_by: StoppedBy | None) -> CaseLine:
        """The line that closes the case; `stopped_by` says what stopped the run, if that did."""
        if self._recorded is not None and stopped_by is None:
            return self._recorded
        trial, test, variations = self.first, self._test, len(self._variations)
        interval = test.interval() if test.runs else None
        return CaseLine(
            agent=trial.agent,
            case=trial.case.id,
            index=trial.case.index,
            file=trial.file,
            key=trial.key,
            decision=test.decision or "inconclusive",
            stopped_by=test.stopped_by or ("errors" if self._gave_up else stopped_by or trial.recorded_stop),
            runs=test.runs,
            surplus_runs=-(-self._handed_out // variations) - test.runs,
            estimate=test.estimate,
            interval=None if interval is None else (interval.low, interval.high),
            gate=trial.gate,
            min_runs=trial.min_runs,
            max_runs=trial.runs,
        )
