"""`--dry-run`: what would run, how many calls that makes, and what it may cost at the most."""

from collections.abc import Iterator
from typing import Any

from atp.run.durations import duration
from atp.run.plan import Trial
from atp.run.session import Session

MOST = 200
"""How many trials are listed for people."""


class DryRun:
    """Goes through a plan and adds up what it comes to."""

    def __init__(self, session: Session) -> None:
        self._plan = session.plan
        self._options = session.options
        self._calls = 0
        self._usd = 0.0
        self._open_ended = 0

    def events(self) -> Iterator[dict[str, Any]]:
        """A `trial` for each, and the `plan`, for programs."""
        for trial in self._trials():
            yield {
                "type": "trial",
                "agent_id": trial.tested.name,
                "id": trial.case.id,
                "variation": trial.variation,
                "run": trial.run,
                "turns": _turns(trial),
                "assertions": _checks(trial),
                "timeout_seconds": trial.timeout,
            }
        cases, trials = self._plan.counts()
        yield {
            "type": "plan",
            "total_cases": cases,
            "total_runs": trials,
            "calls": self._calls,
            "skipped": self._skipped(),
            "cost_usd_at_most": None if self._open_ended else self._usd,
        }

    def lines(self) -> Iterator[str]:
        """The same in words."""
        for number, trial in enumerate(self._trials()):
            if number < MOST:
                yield _line(trial)
        cases, trials = self._plan.counts()
        if trials > MOST:
            yield f"… and {trials - MOST} more"
        yield ""
        yield f"{cases} cases, {trials} trials, {self._calls} calls of agents, {self._options.parallel} at a time"
        if skipped := self._skipped():
            yield f"{skipped} skipped by their files"
        yield f"cost: {self._cost()}"
        if self._options.budget_usd is not None:
            yield f"the run stops at ${self._options.budget_usd:g}"

    def _trials(self) -> Iterator[Trial]:
        for trial in self._plan.trials():
            self._calls += _turns(trial)
            limit = trial.case.limits.budget_usd
            self._usd += limit or 0.0
            self._open_ended += limit is None
            yield trial

    def _skipped(self) -> int:
        return sum(len(unit.source.survey.skipped) for unit in self._plan.units)

    def _cost(self) -> str:
        if not self._usd:
            return "no limit on cost in the cases"
        rest = f"; {self._open_ended} trials without a limit" if self._open_ended else ""
        return f"at most ${self._usd:g} by the cases' own limits{rest}"


def _line(trial: Trial) -> str:
    turns = _turns(trial)
    return (
        f"{trial.tested.name} × {trial.case.id}  variation {trial.variation}, run {trial.run}/{trial.runs}, "
        f"{turns} turn{'s' if turns > 1 else ''}, {_checks(trial)} checks, at most {duration(trial.timeout)}"
    )


def _turns(trial: Trial) -> int:
    return len(trial.chain) if trial.chain else 1


def _checks(trial: Trial) -> int:
    return len(trial.case.assertions) + len(trial.case.expectations)
