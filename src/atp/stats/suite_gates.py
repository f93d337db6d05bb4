"""Evaluates gates on the numbers of a run: passed, failed or inconclusive. What was not measured never passes."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, inf, isfinite, log
from typing import Literal

from msgspec import Struct

from atp.base.near import near_miss
from atp.base.numbers import counted
from atp.stats.averages import mean
from atp.stats.case_counts import CaseCounts, VariationCounts
from atp.stats.gates import decide_percentile, decide_suite
from atp.stats.intervals import (
    LEAST_CASES,
    mean_interval,
    mean_of_known,
    pass_at_k,
    pass_hat_k,
    percentile,
    percentile_lower_limit,
    percentile_upper_limit,
    suite_lower_limit,
    suite_upper_limit,
)
from atp.stats.judges import JudgeCriterion
from atp.stats.run_numbers import RunNumbers
from atp.suite.gates import PASS_RATE, RunGate, SuiteGate
from atp.suite.metrics import FIRST_TOKEN, MEASURED
from atp.suite.result import Decision

Limits = tuple[float | None, float | None]
"""An interval; None for an end that is infinite."""
_ROUNDING = 1e-9
_SHOWN_ALPHA = 0.025
"""Of each end of an interval that is shown beside an observed value."""


class GateResult(Struct, omit_defaults=True, kw_only=True):
    """What a gate came to. Values have the unit that the gate's text has."""

    gate: str
    """The gate as text."""
    outcome: Decision
    """Whether the cases reach what the gate asks for, or that is not known."""
    value: float | None = None
    """The observed value, if there is one."""
    interval: Limits | None = None
    """Where the value lies in the long run; with a confidence, the limits by which the gate was decided."""
    basis: Literal["observed", "approximate", "exact"] = "observed"
    """What decided: the observed value; or, with a confidence, a test that is approximate or exact."""
    cases: int = 0
    """How many cases the gate is about."""
    known_cases: int = 0
    """Of how many of them there is a value; the observed value is of these."""
    judged_runs: int = 0
    """How many runs of the cases say something of the agent."""
    errors: int = 0
    """How many runs ended in errors that are not the agent's."""
    with_errors: tuple[float, float] | None = None
    """From where to where the observed value would lie if the runs in error had been judged, where that matters."""
    agent: str | None = None
    """The agent, if the run has several."""
    file: str | None = None
    """The file of the suite that has the gate."""
    reason: str | None = None
    """Why the gate is inconclusive, if it is."""
    doubt: str | None = None
    """Why the outcome may be wrong: the gate rests on a judge that was never calibrated. Not in the journal."""


def evaluate_gates(gates: Iterable[RunGate], numbers: RunNumbers, *, complete: bool) -> list[GateResult]:
    """The results of all gates; of a gate that names no agent, one for each agent of its cases.

    The name of an agent that has columns means each of them.
    A run that is not `complete` decides no gate: cases that never ran might have changed it.
    """
    found: list[GateResult] = []
    for one in gates:
        try:
            gate = SuiteGate.model_validate(one.gate)
        except ValueError:  # of a journal that was changed, or that a later version wrote
            found.append(GateResult(gate=one.gate, outcome="inconclusive", reason="the gate can't be read"))
            continue
        agents: Sequence[str | None] = [gate.agent] if len(numbers.agents) < 2 else numbers.agents
        if gate.agent is not None:
            columns = [name for name in numbers.agents if name.startswith(f"{gate.agent} [")]
            agents = [gate.agent] if gate.agent in numbers.agents or not columns else columns
        selected = [numbers.select(tag=gate.tag, agent=agent, file=one.file, by_file=one.of_suite) for agent in agents]
        for agent, rows in zip(agents, selected, strict=True):
            if not rows and any(selected):
                continue  # the suite does not test that agent
            result = _Evaluation(gate, numbers, rows, complete=complete).result()
            result.agent, result.file = agent, one.file
            found.append(result)
    return found


def judges_behind(result: GateResult, numbers: RunNumbers) -> set[JudgeCriterion]:
    """The judges, each with a criterion, whose verdicts a gate rests on. None for gates on time, cost and the like."""
    try:
        gate = SuiteGate.model_validate(result.gate)
    except ValueError:
        return set()
    if gate.metric not in (PASS_RATE, "score") and gate.k is None:
        return set()
    by_file = result.file is not None and result.file in numbers.files
    return numbers.judges(numbers.select(tag=gate.tag, agent=result.agent, file=result.file, by_file=by_file))


class _Evaluation:
    """The evaluation of one gate on some rows, each another case."""

    def __init__(self, gate: SuiteGate, numbers: RunNumbers, rows: Sequence[int], *, complete: bool) -> None:
        self._gate = gate
        self._numbers = numbers
        self._rows = rows
        self._complete = complete
        self._counts = [numbers.counts(row) for row in rows]
        self._errors = sum(one.errors for one in self._counts)
        self._missing = sum(one.missing for one in self._counts)
        self._result = GateResult(
            gate=gate.text,
            outcome="inconclusive",
            cases=len(rows),
            judged_runs=sum(one.judged for one in self._counts),
            errors=self._errors,
        )

    def result(self) -> GateResult:
        """The gate's result."""
        result = self._result
        if not self._rows:
            result.reason = self._no_case()
        elif self._gate.metric == PASS_RATE:
            self._decide_pass_rate()
        elif self._gate.k is not None:
            self._decide_pass_k(self._gate.k)
        elif not any(self._values()):
            result.reason = self._no_value()
        elif self._gate.share is None:
            self._decide_mean()
        else:
            self._decide_percentile(self._gate.share)
        if self._rows and not self._complete:
            self._leave_open("the run did not come to its end")
        elif result.outcome == "passed" and self._missing:
            self._leave_open(f"{counted(self._missing, 'run')} never came to an end")
        return result

    def _leave_open(self, reason: str) -> None:
        self._result.outcome, self._result.reason = "inconclusive", reason

    def _decide_pass_rate(self) -> None:
        gate, result = self._gate, self._result
        known = [one for one in self._counts if one.variations]
        rates = [one.rate for one in known if one.rate is not None]
        result.value, result.known_cases = mean(rates), len(rates)
        lowest, highest = [one.lowest or 0.0 for one in known], [one.highest or 0.0 for one in known]
        self._add_errors(mean(lowest), mean(highest))
        runs = [one.judged + one.errors for one in known]
        alpha = _SHOWN_ALPHA if gate.confidence is None else 1 - gate.confidence
        if len(known) >= LEAST_CASES:
            result.interval = suite_lower_limit(lowest, runs, alpha), suite_upper_limit(highest, runs, alpha)
        if gate.confidence is None:
            self._compare(mean(lowest), mean([_best_rate(one) for one in self._counts]))
            return
        result.basis = "approximate"
        if len(known) < LEAST_CASES:
            result.reason = f"a confidence needs {LEAST_CASES} cases, and there are {len(known)}"
            return
        result.outcome = decide_suite(lowest, runs, gate.limit, gate.margin or 0.0, alpha, highest)
        if result.outcome == "inconclusive":
            lowest_good = gate.limit - (gate.margin or 0.0)
            result.reason = (
                f"it passes when the whole interval is above {lowest_good:g}, and fails when it is below "
                f"{gate.limit:g}; more runs or more cases make it narrower"
            )
        elif result.outcome == "failed" and self._missing:
            self._leave_open(f"{counted(self._missing, 'run')} never came to an end")

    def _decide_pass_k(self, k: int) -> None:
        figure = pass_at_k if self._gate.metric.startswith("pass@") else pass_hat_k
        result = self._result
        result.value = _mean_figure(self._counts, lambda one: figure(one.judged, one.passed, k))
        result.known_cases = len(self._counts) if result.value is not None else 0
        if result.value is None:
            fewest = min((two.judged for one in self._counts for two in one.first or one.variations), default=0)
            result.reason = f"it needs {k} judged runs of every case, and one has {fewest}"
            return
        low = _mean_figure(self._counts, lambda one: figure(one.judged + one.errors, one.passed, k))
        high = _mean_figure(self._counts, lambda one: figure(one.judged + one.errors, one.passed + one.errors, k))
        self._add_errors(low, high)
        self._compare(low, 1.0 if self._missing else high)

    def _decide_mean(self) -> None:
        means = [sum(own) / len(own) for own in self._values() if own]
        result = self._result
        result.value, result.known_cases = mean(means), len(means)
        interval = mean_interval(means)
        result.interval = None if interval is None else _limits(*interval)
        if unknown := self._unknown():
            result.reason = f"{counted(unknown, 'run')} did not report `{self._gate.metric}`"
        else:
            self._compare(result.value, result.value)

    def _decide_percentile(self, share: float) -> None:
        gate, result, cases = self._gate, self._result, len(self._rows)
        known = [value for own in self._values() for value in own]
        unknown = self._unknown()
        lowest, highest = [*known, *[-inf] * unknown], [*known, *[inf] * unknown]
        result.value, result.known_cases = percentile(known, share), sum(map(bool, self._values()))
        alpha = _SHOWN_ALPHA if gate.confidence is None else 1 - gate.confidence
        limits = (
            percentile_lower_limit(lowest, share, alpha, cases),
            percentile_upper_limit(highest, share, alpha, cases),
        )
        result.interval = _limits(*limits)
        if gate.confidence is None:
            self._compare(percentile(lowest, share), percentile(highest, share))
            return
        result.basis = "exact" if len(known) + unknown == cases else "approximate"
        at_most = gate.at_least is None
        for values in (lowest, highest):
            decision = decide_percentile(values, share, gate.limit, alpha, at_most=at_most, cases=cases)
            # What a run without a value would have had must not matter.
            if decision == ("passed" if (values is highest) == at_most else "failed"):
                result.outcome = decision
                return
        needed = ceil(log(alpha) / log(share if at_most else 1 - share))
        few = f"it takes at least {needed} cases to be so sure, and there are {cases}" if cases < needed else ""
        result.reason = few or f"{gate.limit:g} is within the interval; more cases make it narrower"

    def _add_errors(self, low: float | None, high: float | None) -> None:
        """Say where the value would lie if the runs in error had all failed, or all passed."""
        if self._result.value is not None and low is not None and high is not None and low < high:
            self._result.with_errors = low, high

    def _compare(self, low: float | None, high: float | None) -> None:
        """Decide by the observed value, if what is not known makes no difference: it lies from `low` to `high`."""
        gate, result = self._gate, self._result
        if low is None or high is None:
            result.reason = "no run was judged"
            return
        rounding = _ROUNDING * max(1.0, abs(gate.limit))
        worst, best = (low, high) if gate.at_least is not None else (-high, -low)
        limit = gate.limit if gate.at_least is not None else -gate.limit
        if worst >= limit - rounding:
            result.outcome = "passed"
        elif best < limit - rounding:
            result.outcome = "failed"
        elif self._missing:
            result.reason = f"{counted(self._missing, 'run')} never came to an end"
        elif self._errors:
            result.reason = "errors that are not the agent's leave it open"
        else:
            result.reason = f"{counted(self._unknown(), 'run')} did not report `{gate.metric}`"

    def _values(self) -> list[Sequence[float]]:
        return [self._numbers.values(self._gate.metric, row) for row in self._rows]

    def _unknown(self) -> int:
        """How many runs have no value, for whatever reason."""
        return sum(one.judged for one in self._counts) + self._errors + self._missing - sum(map(len, self._values()))

    def _no_case(self) -> str:
        gate, numbers = self._gate, self._numbers
        for name, value, known in (("tag", gate.tag, numbers.tags), ("agent", gate.agent, numbers.agents)):
            if value is not None and value not in known:
                return f"no case that ran has the {name} `{value}`{_meant(value, known)}"
        return "no case ran that the gate is about"

    def _no_value(self) -> str:
        name = self._gate.metric
        return f"no run reported `{name}`{_meant(name, {*self._numbers.metrics, *MEASURED, FIRST_TOKEN} - {name})}"


def _meant(word: str, known: Iterable[str]) -> str:
    meant = near_miss(word, sorted(known))
    return f"; did you mean `{meant}`?" if meant else ""


def _best_rate(counts: CaseCounts) -> float:
    """The pass rate of a case if every run in error, and every one that never came to an end, had passed."""
    if not counts.missing:
        return counts.highest or 0.0
    runs = counts.judged + counts.errors + counts.missing
    return (runs - counts.judged + counts.passed) / runs


def _mean_figure(counts: Sequence[CaseCounts], figure: Callable[[VariationCounts], float | None]) -> float | None:
    """The mean over cases of the mean over variations; None if one is not known."""
    return mean_of_known(
        mean_of_known(map(figure, one.variations if one.first is None else one.first)) for one in counts
    )


def _limits(low: float, high: float) -> Limits:
    return low if isfinite(low) else None, high if isfinite(high) else None
