"""Why a run ends before its plan does: a signal, the first failure, a budget."""

import asyncio
from collections.abc import Callable

from atp.base.durations import duration
from atp.engine.prepare.options import Options
from atp.journal.write import JournalError
from atp.stats.stability import blames_agent, is_other_error
from atp.suite.gates import Gate
from atp.suite.meter import read_meter
from atp.suite.result import CaseResult, StoppedBy, TrialResult


class Stop:
    """Decides when a run ends early, and keeps the reason."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._has_budget = options.budget_usd is not None or options.budget_tokens is not None
        self._usd = 0.0
        self._tokens = 0
        self._errors = 0
        self._counted: set[str] = set()
        """Befores whose cost is counted: as trials of their own they cost nothing more."""
        self._timer: asyncio.TimerHandle | None = None
        self.reason: str | None = None
        """Why the run ends early."""
        self.kind: StoppedBy = "interrupted"
        """The reason in a word, for cases that it leaves undecided."""
        self.interrupted = False
        """A signal ended the run."""
        self.over_budget = False
        """A budget ran out, or something broke: the run is incomplete through no fault of the agents."""
        self.journal_broken = False
        """The journal can't be written, or what was written is gone: whatever the results were, they don't count."""
        self.exhausted: str | None = None
        """The budget that is used up: going on is in vain until it is raised."""
        self.act: Callable[[bool], None] = lambda cancel: None
        """Set by whoever runs something: start nothing new, and cancel what runs if `cancel` is true."""

    def watch_clock(self) -> None:
        """Start the clock of `--max-time`."""
        if self._options.max_time is not None:
            text = f"the run's time is up ({duration(self._options.max_time)})"
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._options.max_time, lambda: self._budget(text, cancel=True, kind="time"))

    def unwatch_clock(self) -> None:
        """Stop the clock of `--max-time`."""
        if self._timer is not None:
            self._timer.cancel()

    def interrupt(self) -> None:
        """Stop because of a signal."""
        self.interrupted = True
        self._stop("interrupted", cancel=True)

    def on_result(self, result: TrialResult, gate: Gate, *, excused: bool = False) -> None:
        """Count a trial that ended, and stop the run if that was one too many.

        A failed trial is no failure if it is `excused`, nor where a test decides on the case: then `on_case` is called.
        """
        if result.status != "passed":
            self._on_failure(result, excused=excused or gate.is_tested)
        self.add_cost(result)

    def _on_failure(self, result: TrialResult, *, excused: bool) -> None:
        options = self._options
        self._errors += is_other_error(result)
        if options.fail_fast and not excused and blames_agent(result):
            self._stop(f"first failure: {result.case}", cancel=True, kind="fail-fast")
        if options.max_errors is not None and self._errors >= options.max_errors:
            what = "error that is" if self._errors == 1 else "errors that are"
            self._budget(f"{self._errors} {what} not the agent's", cancel=True, kind="budget")

    def on_case(self, case: CaseResult) -> None:
        """Stop the run at the first case whose gate is missed."""
        if self._options.fail_fast and case.gate.is_tested and case.status == "failed" and not case.excused:
            self._stop(f"first failure: {case.case}", cancel=True, kind="fail-fast")

    def add_cost(self, result: TrialResult) -> None:
        """Count what a trial cost, also one that is taken over from before, and stop when a budget is used up."""
        if not self._has_budget or result.key in self._counted:
            return
        options = self._options
        used, roles = read_meter(result.transcript), result.role_usage
        self._usd += (used.usd or 0.0) + (roles.cost_usd or 0.0 if roles else 0.0)
        self._tokens += (used.tokens or 0) + (roles.tokens or 0 if roles else 0)
        if options.budget_usd is not None and self._usd > options.budget_usd:
            self._exhaust("budget_usd", f"${self._usd:.4g} of ${options.budget_usd:g}")
        if options.budget_tokens is not None and self._tokens > options.budget_tokens:
            self._exhaust("budget_tokens", f"{self._tokens} of {options.budget_tokens} tokens")

    def on_before_result(self, result: TrialResult) -> None:
        """Count what a replayed before cost: it is no trial, so its failure doesn't count."""
        self.add_cost(result)
        self._counted.add(result.key)

    def abort(self, reason: str) -> None:
        """Stop because something that the whole run needs is broken."""
        self._budget(reason, cancel=True)

    def on_broken_journal(self, error: JournalError) -> None:
        """Stop because the journal can't be trusted any more."""
        self.journal_broken = True
        self.abort(str(error))

    def leave_rest(self, reason: str) -> None:
        """Note that the rest of the plan is not run, though nothing is wrong."""
        self._stop(reason, cancel=False)

    def _exhaust(self, setting: str, how_far: str) -> None:
        self.exhausted = self.exhausted or setting
        self._budget(f"the budget is used up: {how_far}", kind="budget")

    def _budget(self, reason: str, cancel: bool = False, kind: StoppedBy = "interrupted") -> None:
        self.over_budget = True
        self._stop(reason, cancel, kind)

    def _stop(self, reason: str, cancel: bool, kind: StoppedBy = "interrupted") -> None:
        if self.reason is None:
            self.reason, self.kind = reason, kind
        self.act(cancel)
