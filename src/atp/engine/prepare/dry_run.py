"""`--dry-run`: lists the trials, the judge of each expectation, the number of calls, and the highest cost."""

from collections.abc import Iterator
from typing import Any

from atp.base.diagnostics_text import printable
from atp.base.durations import duration
from atp.base.numbers import counted
from atp.base.secrets import secrets_of
from atp.checks.before_run import compiled_expectations, wordings
from atp.checks.case_checks import assertions_of, by_turns
from atp.checks.judged import AgentAssertion, LlmEval
from atp.engine.planned_trial import Trial
from atp.engine.run import Run
from atp.engine.run_info import gates_of
from atp.suite.assertion import Assertion, Group
from atp.suite.case import MOST_TURNS, Case
from atp.suite.expectation import read_expectation

MOST = 200
"""The most trials that the text lists."""


class DryRun:
    """Lists the trials of a plan and adds up their calls and costs."""

    def __init__(self, run: Run) -> None:
        self._plan = run.plan
        self._judgings = run.judgings
        self._calls_agents = run.calls_agents
        self._options = run.options
        self._secrets = run.secrets
        self._gates = gates_of(run)
        self._listed = 0
        self._calls = 0
        self._judge_calls = 0
        self._usd = 0.0
        self._open_ended = 0

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield an event `trial` for each trial and one event `plan`, for programs."""
        for trial in self._trials():
            case = trial.case
            event = {
                "type": "trial",
                "agent_id": trial.tested.name,
                "id": case.id,
                "variation": trial.variation,
                "run": trial.run,
                **({"min_runs": trial.min_runs, "max_runs": trial.runs} if trial.min_runs else {}),
                "turns": _turns(trial),
                "assertions": _checks(case),
                "timeout_seconds": trial.timeout,
            }
            if case.expectations:
                event["expectations"] = [
                    {"text": text, "check": check} | ({"exact_if": exact_if} if exact_if else {})
                    for text, check, exact_if in wordings(case)
                ]
            if calls := judge_calls(case, each=self._options.judge_each):
                event["judge_calls"] = calls
            yield secrets_of(self._secrets).mask(event, numbers=False)
        cases, trials = self._plan.counts()
        yield {
            "type": "plan",
            "total_cases": cases,
            "total_runs": trials,
            "calls": self._calls,
            "judge_calls": self._judge_calls,
            "skipped": self._skipped(),
            "cost_usd_at_most": None if self._open_ended else self._usd,
            **({"gates": [one.gate for one in self._gates]} if self._gates else {}),
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan as text. The expectations of a case come with its first trial."""
        last: tuple[str | None, int] | None = None
        number = -1
        for number, trial in enumerate(self._trials()):
            if number < MOST:
                yield _line(trial)
                if last != (last := (trial.source.suite.path, trial.case.index)):
                    yield from (printable(secrets_of(self._secrets).mask_text(line)) for line in _expected(trial.case))
        cases, trials = self._plan.counts()
        if number >= MOST:
            yield f"… and {number + 1 - MOST} more"
        yield ""
        asked = f"{counted(self._calls, 'call')} of agents"
        most = "at most " if self._plan.adaptive else ""
        yield f"{counted(cases, 'case')}, {most}{counted(trials, 'trial')}, {asked}, {self._options.parallel} at a time"
        if to_make := trials - self._listed:
            have = "has" if to_make == 1 else "have"
            yield f"{counted(to_make, 'trial')} {have} prompts that are still to be made; their calls are not counted"
        if self._judge_calls:
            yield f"{counted(self._judge_calls, 'call')} of judges, if nothing is judged already"
        if skipped := self._skipped():
            yield f"{counted(skipped, 'case')} skipped by {'its file' if skipped == 1 else 'their files'}"
        if self._calls_agents:
            yield f"cost: {self._cost()}"
        for gate in self._gates:
            of_suite = f" ({printable(gate.file or 'the suite')})" if gate.of_suite else ""
            yield f"gate: {printable(gate.gate)}{of_suite}"
        if self._options.budget_usd is not None:
            yield f"the run stops at ${self._options.budget_usd:g}"

    def _trials(self) -> Iterator[Trial]:
        for trial in self._plan.trials():
            runs = trial.runs if trial.min_runs else 1  # only the first is listed where their number is not fixed
            self._listed += runs
            self._judge_calls += runs * self._judgings * judge_calls(trial.case, each=self._options.judge_each)
            if not self._calls_agents:
                yield trial
                continue
            self._calls += runs * _turns(trial)
            limit = trial.case.limits.budget_usd
            self._usd += runs * (limit or 0.0)
            self._open_ended += runs * (limit is None)
            yield trial

    def _skipped(self) -> int:
        return sum(len(unit.source.survey.skipped) for unit in self._plan.units)

    def _cost(self) -> str:
        if not self._usd:
            return "no limit on cost in the cases"
        rest = f"; {counted(self._open_ended, 'trial')} without a limit" if self._open_ended else ""
        return f"at most ${self._usd:g} by the cases' own limits{rest}"


def judge_calls(case: Case, *, each: bool) -> int:
    """Return the number of calls of judges for one trial."""
    in_words = compiled_expectations(case)[1]
    return len(in_words if each else by_turns(case, in_words)) + sum(map(_asks, assertions_of(case)))


def _asks(assertion: Assertion) -> int:
    match assertion:
        case LlmEval():
            return assertion.votes
        case AgentAssertion():
            return 1
        case Group():
            return sum(map(_asks, assertion.assertions))
    return 0


def _expected(case: Case) -> Iterator[str]:
    for text, check, exact_if in wordings(case):
        hint = f" (exact if it says: {exact_if})" if exact_if else ""
        shown = " by its own turns" if read_expectation(text).own_turns else ""
        yield f"    expects: {' '.join(text.split())} → {check or f'the assessor decides{shown}'}{hint}"


def _line(trial: Trial) -> str:
    turns = _turns(trial)
    most = "at most " if trial.mode == "dialogue" else ""
    comes_to = f"{most}{counted(turns, 'turn')}, {counted(_checks(trial.case), 'check')}"
    if trial.mode == "script":
        comes_to = "turns and checks as its function says"
    return (
        f"{trial.tested.name} × {trial.case.id}  variation {trial.variation + 1}, {_runs(trial)}, "
        f"{comes_to}, at most {duration(trial.timeout)}"
    )


def _runs(trial: Trial) -> str:
    return f"{trial.min_runs} to {trial.runs} runs" if trial.min_runs else f"run {trial.run}/{trial.runs}"


def _turns(trial: Trial) -> int:
    """Return the turns of a trial: the most of a dialogue; one of a test in Python, whose turns are unknown."""
    if trial.mode == "dialogue":
        return trial.case.max_turns or MOST_TURNS
    return len(trial.chain) if trial.chain else 1


def _checks(case: Case) -> int:
    return len(assertions_of(case)) + len(case.expectations) + len(case.checkpoints)
