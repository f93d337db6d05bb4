"""The test of `--runs auto`: takes the results of a case in run order, and says after each run whether they are enough.

For each of the gate's two hypotheses (`gates.py`) the test keeps a mixture of likelihood ratios, uniform over the rates
beyond the hypothesis. While the hypothesis is true, the mixture's expectation does not exceed 1 and it ever reaches
1/alpha with probability ≤ alpha (Ville's inequality). So the decision may be looked for after every run, and a stop for
any other reason leaves it valid.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import ceil, inf, log, log1p
from typing import Literal, NamedTuple

from atp.stats.averages import mean
from atp.stats.distributions import log_beta, log_beta_tails, root
from atp.stats.gates import MOST_RUNS, check_gate
from atp.stats.intervals import Interval
from atp.suite.result import Decision

StoppedBy = Literal["decided", "max-runs", "futility"]
"""Why the test itself ended a case."""


class Stop(NamedTuple):
    """The end of a case's runs."""

    by: StoppedBy
    """Why no further run is needed."""
    decision: Literal["passed", "failed"] | None = None
    """The gate's decision; None is inconclusive."""


MOST_COUNTED_RUNS = 1000
"""Up to so many runs the estimate counts the ways to the stop, which takes a tenth of a second."""


def log_evidence_above(passed: int, n: int, rate: float) -> float:
    """The logarithm of the evidence against a pass rate of `rate` or lower: the mixture over all higher rates."""
    if rate >= 1:
        return -inf
    a, b = passed + 1, n - passed + 1
    return log_beta(a, b) + log_beta_tails(rate, a, b)[1] - _log_likelihood(passed, n, rate) - log1p(-rate)


def log_evidence_below(passed: int, n: int, rate: float) -> float:
    """The logarithm of the evidence against a pass rate of `rate` or higher: the mixture over all lower rates."""
    if rate >= 1 and passed < n:
        return inf
    a, b = passed + 1, n - passed + 1
    return log_beta(a, b) + log_beta_tails(rate, a, b)[0] - _log_likelihood(passed, n, rate) - log(rate)


def _log_likelihood(passed: int, n: int, rate: float) -> float:
    failed = n - passed
    return passed * log(rate) + (failed * log1p(-rate) if failed else 0.0)


def anytime_interval(passed: int, judged: int, other_errors: int = 0, confidence: float = 0.95) -> Interval:
    """The interval of a pass rate that holds at whatever moment the runs were stopped.

    Each limit is the rate at which the one-sided evidence reaches 2/(1 - confidence). As in `case_interval`, the lower
    limit takes other errors as failed, the upper as passed.
    """
    n, threshold = judged + other_errors, log(2 / (1 - confidence))
    low, high = 0.0, 1.0
    if passed:
        low = root(lambda rate: log_evidence_above(passed, n, rate) - threshold, 1e-300, passed / n)
    most = passed + other_errors
    if most < n:
        high = root(lambda rate: log_evidence_below(most, n, rate) - threshold, max(most / n, 1e-300), 1.0)
    return Interval(low, high)


MOSTLY_PASS = 1.0, 0.3
"""The beta distribution of rates that the evidence of a difference is mixed with: most cases pass nearly always.

The p-value is right with any. With this one a case that falls from 99% to 50% is found four times as often as with
the uniform distribution.
"""


def log_evidence_between(one: tuple[int, int], other: tuple[int, int]) -> float:
    """The logarithm of the evidence that two pass rates differ, from (passed, judged) of each.

    For every rate that both may have, the likelihood ratios of either side are mixed, and the mixtures multiplied; the
    least product counts, which is that of the pooled rate. Each side may have been stopped at whatever moment.
    """
    a, b = MOSTLY_PASS
    mixtures = sum(log_beta(passed + a, n - passed + b) - log_beta(a, b) for passed, n in (one, other))
    passed, n = one[0] + other[0], one[1] + other[1]
    return mixtures - (_log_likelihood(passed, n, passed / n) if passed else 0.0)


class Boundaries:
    """The counts at which the gate is decided: for each number of trials, computed once and kept."""

    def __init__(self, p: float, margin: float, alpha: float) -> None:
        check_gate(p, margin, alpha)
        self._low, self._high, self._threshold = p - margin, p, -log(alpha)
        self._at = [(-1, 1)]

    def at(self, n: int) -> tuple[int, int]:
        """The most passes of `n` that fail the gate, and the fewest that pass it: -1 and n + 1 if none do."""
        while len(self._at) <= n:
            trials = len(self._at)
            fail, passing = self._at[-1]  # each rises by 0 or 1 with a trial
            if log_evidence_below(fail + 1, trials, self._high) >= self._threshold:
                fail += 1
            if log_evidence_above(passing, trials, self._low) < self._threshold:
                passing += 1
            self._at.append((fail, passing))
        return self._at[n]


@lru_cache(64)
def boundaries(p: float, margin: float, alpha: float) -> Boundaries:
    """The boundaries of a gate, shared by its cases."""
    return Boundaries(p, margin, alpha)


class Design(NamedTuple):
    """When the runs of a case stop, by the counts alone."""

    p: float
    """The rate that the gate asks for."""
    margin: float
    """How far below `p` a rate may lie and still pass."""
    alpha: float
    """The probability of either wrong decision, at most."""
    min_runs: int = 1
    """The runs don't stop before so many."""
    max_runs: int | None = None
    """The runs stop after so many."""
    variations: int = 1
    """How many trials a run has."""

    def look(self, runs: int, low: int, high: int) -> Stop | None:
        """Whether `runs` are enough, of whose trials `low` passed, or `high` with other errors taken as passed."""
        if runs < self.min_runs:
            return None
        limits, n = boundaries(self.p, self.margin, self.alpha), runs * self.variations
        fail, passing = limits.at(n)
        if low >= passing:
            return Stop("decided", "passed")
        if high <= fail:
            return Stop("decided", "failed")
        if self.max_runs is None:
            return None
        if runs >= self.max_runs:
            return Stop("max-runs")
        # A pass raises the evidence of every later moment, so only the last moment has to be looked at.
        last = self.max_runs * self.variations
        fail, passing = limits.at(last)
        return Stop("futility") if low + last - n < passing and high > fail else None


class SequentialTest:
    """The results of one case so far, and what the two tests say of them.

    A run is one trial of every variation. Results are added in run order, never in the order of arrival: slow runs fail
    more often. The test looks at whole runs only, because variations may differ in difficulty.
    """

    def __init__(self, design: Design) -> None:
        check_gate(design.p, design.margin, design.alpha)
        if design.min_runs < 1 or design.variations < 1 or (design.max_runs or design.min_runs) < design.min_runs:
            raise ValueError(f"min_runs and variations must be 1 or more, and max_runs not below min_runs: {design}")
        self.design = design
        """The gate, and between how many runs it is decided."""
        self.runs = 0
        """How many whole runs the test has looked at."""
        self.stop: Stop | None = None
        """Why no further run is needed, once none is."""
        self._low = self._high = 0
        self._unlooked: list[tuple[bool, bool]] = []
        self._first: list[tuple[bool, bool]] = []

    def add(self, passed_low: bool, passed_high: bool) -> None:
        """Add the next trial's result, in run order and within a run by variation.

        `passed_low` is the result where the gate would pass, `passed_high` where it would fail. They differ for an
        error that is not the agent's: False, True. After the stop, results are surplus and can't be added.
        """
        if self.stop:
            raise ValueError(f"the test stopped after {self.runs} runs: later results are surplus")
        if passed_low and not passed_high:
            raise ValueError("a result can't pass against the lower rate and fail against the higher")
        self._unlooked.append((passed_low, passed_high))
        if len(self._unlooked) < self.design.variations:
            return
        if self.runs < self.design.min_runs:
            self._first += self._unlooked
        self._low += sum(low for low, _ in self._unlooked)
        self._high += sum(high for _, high in self._unlooked)
        self._unlooked.clear()
        self.runs += 1
        self.stop = self.design.look(self.runs, self._low, self._high)

    @property
    def decision(self) -> Literal["passed", "failed"] | None:
        """The gate's decision, if there is one."""
        return self.stop.decision if self.stop else None

    @property
    def stopped_by(self) -> StoppedBy | None:
        """Why no further run is needed, once none is."""
        return self.stop.by if self.stop else None

    @property
    def least_more_runs(self) -> int:
        """The fewest further runs after which the test can stop; 0 once it has.

        So many may run in parallel without one of them being surplus, unless an error that is not the agent's comes in
        between.
        """
        if self.stop:
            return 0
        runs, low, high, variations = self.runs, self._low, self._high, self.design.variations
        limits = boundaries(self.design.p, self.design.margin, self.design.alpha)
        most = (self.design.max_runs or MOST_RUNS) - runs
        to_pass = _first(lambda more: low + more * variations >= limits.at((runs + more) * variations)[1], most)
        to_fail = _first(lambda more: high <= limits.at((runs + more) * variations)[0], most)
        fewest = min(to_pass, to_fail, most)
        if self.design.max_runs is not None:
            last = self.design.max_runs * variations
            fail, passing = limits.at(last)
            failures_left = max(0, last - passing + 1 - (runs * variations - low))
            fewest = min(fewest, ceil((failures_left + max(0, fail + 1 - high)) / variations))
        return max(fewest, self.design.min_runs - runs, 1)

    def interval(self, confidence: float = 0.95) -> Interval:
        """The anytime-valid interval of the long-run pass rate, by the runs that the test has looked at."""
        errors = self._high - self._low
        return anytime_interval(self._low, self.runs * self.design.variations - errors, errors, confidence)

    @property
    def estimate(self) -> float | None:
        """The estimate of the long-run pass rate; None if no run was judged.

        The share of all runs is biased, because they stopped when the share was far from the gate. The mean of the
        first `min_runs` is not. Where the counts of passed and failed alone decided the stop, the estimate is the
        expectation of that mean given the counts, which has no bias either and varies less (Girshick, Mosteller,
        Savage).
        """
        variations = self.design.variations
        if self.stop and variations == 1 and self._low == self._high and self.runs <= MOST_COUNTED_RUNS:
            return first_run_passed(self.design, self.runs, self._low)
        rates = [_rate(self._first[variation::variations]) for variation in range(variations)]
        return mean([rate for rate in rates if rate is not None])


def _rate(results: list[tuple[bool, bool]]) -> float | None:
    """The share of judged results that passed."""
    return mean([float(low) for low, high in results if low == high])


def _first(holds: Callable[[int], bool], most: int) -> int:
    """The first number from 1 to `most` for which a condition holds that holds for all later ones; most + 1 if none."""
    low, high = 1, 1
    while high <= most and not holds(high):
        low, high = high + 1, 2 * high
    high = min(high, most + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@lru_cache(4096)
def first_run_passed(design: Design, runs: int, passed: int) -> float:
    """The share of ways to stop at `passed` of `runs` whose first run passed.

    Ways are weighed by their probability at the observed rate. That is the same for all ways to one count, and keeps
    the numbers within the range of a float.
    """
    rate = min(max(passed / runs, 0.5 / runs), 1 - 0.5 / runs)
    ways, first_passed = {0: 1 - rate, 1: rate}, {0: 0.0, 1: rate}
    for n in range(1, runs):
        further, further_first = dict.fromkeys(range(passed + 1), 0.0), dict.fromkeys(range(passed + 1), 0.0)
        for count, weight in ways.items():
            if not weight or n - count > runs - passed or design.look(n, count, count):
                continue
            for after, share in ((count, 1 - rate), (count + 1, rate)):
                if after <= passed:
                    further[after] += share * weight
                    further_first[after] += share * first_passed[count]
        ways, first_passed = further, further_first
    return first_passed[passed] / ways[passed]


def decide_in_order(
    results: Iterable[tuple[bool, bool]], p: float, margin: float, alpha: float, variations: int = 1
) -> Decision:
    """The decision of a case's gate when its runs were stopped, or resumed with another number.

    `results` are in run order and within a run by variation, each as in `SequentialTest.add`.
    """
    test = SequentialTest(Design(p, margin, alpha, variations=variations))
    for low, high in results:
        test.add(low, high)
        if test.decision:
            return test.decision
    return "inconclusive"
