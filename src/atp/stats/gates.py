"""Decides whether a pass rate, or a percentile, is good enough: passed, failed or inconclusive.

A gate asks for the rate `p` with a `margin` m, at level `alpha`. Two hypotheses are tested: that the long-run rate is
at most p - m, and that it is at least p. Rejecting the first is `passed`, the second `failed`. So a case whose rate is
p - m or lower passes with probability ≤ alpha, and one whose rate is p or higher fails with probability ≤ alpha.
"""

from collections.abc import Iterable, Sequence
from math import fsum, log

from atp.stats.distributions import binomial_at_least, binomial_at_most
from atp.stats.intervals import (
    percentile_lower_limit,
    percentile_upper_limit,
    suite_lower_limit,
    suite_upper_limit,
)
from atp.suite.result import Decision

MOST_RUNS = 10_000
"""More runs than that are not proposed."""


def decide(passed: int, judged: int, other_errors: int, p: float, margin: float, alpha: float) -> Decision:
    """The decision of a case's gate when the number of runs was fixed beforehand and all have run.

    Exact binomial tests (one-sided Clopper–Pearson limits). Errors that are not the agent's count as failed where the
    gate would pass, and as passed where it would fail. Where the rate is shown to lie between p - m and p, the gate
    passes: the margin says that such a rate is good enough.
    """
    check_gate(p, margin, alpha)
    n = judged + other_errors
    if not 0 <= passed <= judged or other_errors < 0:
        raise ValueError(f"{passed} passed of {judged} judged runs and {other_errors} errors is not possible")
    if n and binomial_at_least(passed, n, p - margin) <= alpha:
        return "passed"
    if n and binomial_at_most(passed + other_errors, n, p) <= alpha:
        return "failed"
    return "inconclusive"


def check_gate(p: float, margin: float, alpha: float) -> None:
    """Raise ValueError for a gate that can't be tested: it must have 0 ≤ margin < p ≤ 1 and 0 < alpha < 1."""
    if not (0 <= margin < p <= 1 and 0 < alpha < 1):
        raise ValueError(f"a gate needs 0 <= margin < p <= 1 and 0 < alpha < 1, not {p=}, {margin=}, {alpha=}")


def least_runs(p: float, margin: float, alpha: float) -> int | None:
    """The fewest runs, all passed, with which a case's gate passes; None if no number is enough (p - m = 1)."""
    check_gate(p, margin, alpha)
    share = p - margin
    if share >= 1 - 1e-12:
        return None
    runs = max(1, int(log(alpha) / log(share)))
    while binomial_at_least(runs, runs, share) > alpha:
        runs += 1
    return runs


def runs_to_tell(passed: int, judged: int, p: float, margin: float, alpha: float) -> int | None:
    """About how many more runs would decide a case's gate, if the observed rate is the long-run rate.

    0 if it is decided; None if not even 10,000 runs would be enough, because the observed rate is too near to the gate,
    or nothing was observed.
    """
    check_gate(p, margin, alpha)
    if not judged:
        return None
    rate = passed / judged

    def decided(runs: int) -> bool:
        return decide(round(rate * runs), runs, 0, p, margin, alpha) != "inconclusive"

    if decide(passed, judged, 0, p, margin, alpha) != "inconclusive":
        return 0
    low, high = judged, 2 * judged
    while high < MOST_RUNS and not decided(high):
        low, high = high, 2 * high
    high = min(high, MOST_RUNS)
    if low >= high or not decided(high):
        return None
    while high - low > 1:  # decisions jump with the rounding of counts, so the number is one of several: hence "about"
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return high - judged


def fixed_runs(p: float, margin: float, alpha: float) -> int | None:
    """The fewest runs, fixed beforehand, with which a case at p passes with probability ≥ 1 - alpha; None above 10,000.

    One at p - m passes with probability ≤ alpha, as always. What `--runs auto` needs is compared with it.
    """
    check_gate(p, margin, alpha)
    least = 1  # the fewest passes with which the gate passes: that number rises with the runs
    for runs in range(1, MOST_RUNS + 1):
        while binomial_at_least(least, runs, p - margin) > alpha:
            least += 1
        if binomial_at_least(least, runs, p) >= 1 - alpha:
            return runs
    return None


def expected_wrong_decisions(alphas: Iterable[float]) -> float:
    """The expected number of wrong decisions over all cases, at most, given the level of each case's gate.

    A case can be decided wrongly in one way only, whatever its rate: it is too low to pass, or too high to fail.
    """
    return fsum(alphas)


def decide_suite(
    case_rates: Sequence[float],
    trials_per_case: Sequence[int],
    p: float,
    margin: float,
    alpha: float,
    highest_rates: Sequence[float] | None = None,
) -> Decision:
    """The decision of a gate on the mean of case rates; approximate, and inconclusive below 5 cases.

    `highest_rates` are the rates with every error that is not the agent's taken as passed; `case_rates` then take
    every one as failed.
    """
    check_gate(p, margin, alpha)
    low = suite_lower_limit(case_rates, trials_per_case, alpha)
    high = suite_upper_limit(case_rates if highest_rates is None else highest_rates, trials_per_case, alpha)
    if low is not None and low > p - margin:
        return "passed"
    return "failed" if high is not None and high < p else "inconclusive"


def decide_percentile(
    values: Sequence[float],
    share: float,
    threshold: float,
    alpha: float,
    *,
    at_most: bool = True,
    cases: int | None = None,
) -> Decision:
    """The decision of a gate on a percentile: `p95 <= threshold`, or `>=` without `at_most`.

    By the binomial order-statistic limit, which needs independent values: one a case, or those of one case. `cases`
    says how many cases the values are of, where cases have several.
    """
    low = percentile_lower_limit(values, share, alpha, cases)
    high = percentile_upper_limit(values, share, alpha, cases)
    if at_most:
        return "passed" if high <= threshold else "failed" if low > threshold else "inconclusive"
    return "passed" if low >= threshold else "failed" if high < threshold else "inconclusive"
