"""How sure a figure is: intervals of pass rates, of a suite's rate, of means and percentiles; pass@k, agreement.

Shares are from 0 to 1. `docs/design/statistics.md` says which formula each figure has, and why.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from math import ceil, comb, exp, expm1, fsum, inf, isfinite, log, sqrt
from typing import NamedTuple

from atp.stats.averages import deviation, mean
from atp.stats.distributions import (
    binomial_at_least,
    binomial_at_most,
    log_beta_tails,
    normal_quantile,
    root,
    student_quantile,
)

LEAST_CASES = 5
"""With fewer cases there is no interval of a suite's rate or of a mean over cases."""
_ROUNDING = 1e-9


class Interval(NamedTuple):
    """Where a figure lies in the long run, with the confidence that was asked for."""

    low: float
    """The lower limit."""
    high: float
    """The upper limit."""


NOTHING_KNOWN = Interval(0.0, 1.0)
"""The interval of a share of which nothing was observed."""


def wilson(passed: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a pass rate, two-sided: the one to show."""
    _check_counts(passed, n)
    return wilson_of_share(passed / n, n, confidence) if n else NOTHING_KNOWN


def wilson_of_share(share: float, n: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval for a share that is worth `n` independent observations, two-sided."""
    z = normal_quantile((1 + confidence) / 2)
    return Interval(_score_limit(share, n, -z), _score_limit(share, n, z))


def _score_limit(share: float, n: float, z: float) -> float:
    """A limit of Wilson's interval for `share` of `n`: the lower one for a negative `z`, the upper for a positive."""
    if share == (0.0 if z < 0 else 1.0):
        return share
    middle = share + z * z / (2 * n)
    limit = (middle + z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return min(max(limit, 0.0), share) if z < 0 else max(min(limit, 1.0), share)


def lower_limit(passed: float, n: float, alpha: float) -> float:
    """The exact one-sided lower limit of a pass rate (Clopper–Pearson): too high with probability ≤ `alpha`.

    Numbers that are not whole are those of weighted or dependent values, as many as say the same (Korn and Graubard).
    """
    _check_counts(passed, n)
    if passed == 0:
        return 0.0
    if passed == n:
        return exp(log(alpha) / n)
    return root(lambda p: log_beta_tails(p, passed, n - passed + 1)[0] - log(alpha), 0.0, 1.0)


def upper_limit(passed: float, n: float, alpha: float) -> float:
    """The exact one-sided upper limit of a pass rate (Clopper–Pearson): too low with probability ≤ `alpha`."""
    _check_counts(passed, n)
    if passed == n:
        return 1.0
    if passed == 0:
        return -expm1(log(alpha) / n)
    return root(lambda p: log_beta_tails(p, passed + 1, n - passed)[1] - log(alpha), 0.0, 1.0)


def clopper_pearson(passed: float, n: float, confidence: float = 0.95) -> Interval:
    """The exact two-sided interval of a share."""
    alpha = (1 - confidence) / 2
    return Interval(lower_limit(passed, n, alpha), upper_limit(passed, n, alpha))


def case_interval(passed: int, judged: int, other_errors: int, confidence: float = 0.95) -> Interval:
    """The interval of a case's pass rate, to show.

    Errors that are not the agent's are not dropped: the lower limit takes them as failed, the upper as passed, so that
    the interval holds the rate whatever their results would have been.
    """
    n = judged + other_errors
    return Interval(wilson(passed, n, confidence).low, wilson(passed + other_errors, n, confidence).high)


def suite_interval(
    case_rates: Sequence[float],
    trials_per_case: Sequence[int],
    highest_rates: Sequence[float] | None = None,
    confidence: float = 0.95,
) -> Interval | None:
    """The interval of the mean of case rates, for other cases like these; None below 5 cases.

    `highest_rates` are the rates with every other error taken as passed, if there are such errors; `case_rates` then
    take every one as failed. The lower limit is made of the one, the upper of the other.
    """
    if len(case_rates) < LEAST_CASES:
        return None
    alpha = (1 - confidence) / 2
    return Interval(
        _suite_limit(case_rates, trials_per_case, alpha, -1),
        _suite_limit(case_rates if highest_rates is None else highest_rates, trials_per_case, alpha, 1),
    )


def suite_lower_limit(case_rates: Sequence[float], trials_per_case: Sequence[int], alpha: float) -> float | None:
    """The one-sided lower limit of the mean of case rates, approximate; None below 5 cases."""
    return _suite_limit(case_rates, trials_per_case, alpha, -1) if len(case_rates) >= LEAST_CASES else None


def suite_upper_limit(case_rates: Sequence[float], trials_per_case: Sequence[int], alpha: float) -> float | None:
    """The one-sided upper limit of the mean of case rates, approximate; None below 5 cases."""
    return _suite_limit(case_rates, trials_per_case, alpha, 1) if len(case_rates) >= LEAST_CASES else None


def _suite_limit(case_rates: Sequence[float], trials_per_case: Sequence[int], alpha: float, side: int) -> float:
    """Wilson's limit with an effective number of runs, and Student's quantile with cases - 1 in place of z.

    Runs of a case are not independent of each other, so the effective number is what the spread between cases says:
    μ(1-μ)/SE², not below the number of cases and not above that of trials.
    """
    cases, trials = len(case_rates), sum(trials_per_case)
    if len(trials_per_case) != cases or min(trials_per_case) < 1:
        raise ValueError("trials_per_case must give at least one trial for each case")
    rate = min(max(fsum(case_rates) / cases, 0.0), 1.0)
    squared_error = fsum((one - rate) ** 2 for one in case_rates) / (cases - 1) / cases
    effective = float(cases)
    if squared_error > 0:
        effective = min(max(rate * (1 - rate) / squared_error, cases), trials)
    return _score_limit(rate, effective, side * student_quantile(1 - alpha, cases - 1))


def se_runs(counts: Iterable[tuple[int, int]]) -> float | None:
    """The standard error of a suite's rate for the same cases and other runs; None if a case has fewer than 2 runs.

    `counts` has (passed, judged runs) of each case.
    """
    variances = []
    for passed, judged in counts:
        if judged < 2:
            return None
        share = passed / judged
        variances.append(share * (1 - share) / (judged - 1))
    return sqrt(fsum(variances)) / len(variances) if variances else None


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The probability that at least one of `k` runs passes, when `c` of `n` did; None if n < k."""
    _check_counts(c, n)
    return 1 - comb(n - c, k) / comb(n, k) if 1 <= k <= n else None


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The probability that all of `k` runs pass (pass^k), when `c` of `n` did; None if n < k."""
    _check_counts(c, n)
    return comb(c, k) / comb(n, k) if 1 <= k <= n else None


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """The mean of figures of variations or cases; None if one of them is not known, or there is none."""
    known = list(values)
    return None if None in known else mean([value for value in known if value is not None])


def agreement(values: Iterable[Hashable]) -> float | None:
    """The share of pairs that are equal; None if there is no pair."""
    counts = Counter(values)
    n = counts.total()
    return sum(count * (count - 1) for count in counts.values()) / (n * (n - 1)) if n > 1 else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of the values don't exceed, always one that was observed."""
    return sorted(values)[_rank(len(values), share) - 1] if values else None


def _rank(n: int, share: float) -> int:
    return max(1, ceil(n * share - _ROUNDING))


def percentile_interval(
    values: Sequence[float], share: float, confidence: float = 0.95, cases: int | None = None
) -> Interval | None:
    """The interval of a percentile between two observed values; -∞ or ∞ where too few values were seen.

    `cases`: how many cases the values are of, where cases have several. Runs of a case are not independent, so the
    ranks are those of as many values as there are cases, which is right at worst.
    """
    if not values:
        return None
    alpha = (1 - confidence) / 2
    low, high = percentile_lower_limit(values, share, alpha, cases), percentile_upper_limit(values, share, alpha, cases)
    return Interval(low, high)


def percentile_upper_limit(values: Sequence[float], share: float, alpha: float, cases: int | None = None) -> float:
    """The least observed value that is below the percentile with probability ≤ `alpha`; ∞ if there is none.

    The value of rank u is below it only if u or more values are, which is a binomial probability.
    """
    ordered, n = sorted(values), cases or len(values)
    rank = _upper_rank(n, share, alpha) if ordered else None
    return inf if rank is None else ordered[-(-rank * len(ordered) // n) - 1]


@lru_cache(1024)  # most metrics of a group have as many values
def _upper_rank(n: int, share: float, alpha: float) -> int | None:
    if binomial_at_least(n, n, share) > alpha:
        return None
    low, high = _rank(n, share), n
    while low < high:  # the probability falls with the rank
        middle = (low + high) // 2
        low, high = (low, middle) if binomial_at_least(middle, n, share) <= alpha else (middle + 1, high)
    return low


def percentile_lower_limit(values: Sequence[float], share: float, alpha: float, cases: int | None = None) -> float:
    """The greatest observed value that is above the percentile with probability ≤ `alpha`; -∞ if there is none."""
    ordered, n = sorted(values), cases or len(values)
    rank = _lower_rank(n, share, alpha) if ordered else None
    return -inf if rank is None else ordered[(rank - 1) * len(ordered) // n]


@lru_cache(1024)
def _lower_rank(n: int, share: float, alpha: float) -> int | None:
    if binomial_at_most(0, n, share) > alpha:
        return None
    low, high = 1, max(1, _rank(n, share))
    while low < high:  # the probability rises with the rank
        middle = (low + high + 1) // 2
        low, high = (middle, high) if binomial_at_most(middle - 1, n, share) <= alpha else (low, middle - 1)
    return low


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Student's interval of the mean of a metric, one value a case, for other cases like these, approximately.

    None below 5 cases, where all values are the same (then their spread is not known, and not 0), and where the spread
    is larger than any float.
    """
    n = len(values)
    middle, spread = mean(values), deviation(values, sample=True)
    if n < LEAST_CASES or middle is None or spread is None or min(values) == max(values):
        return None
    width = student_quantile((1 + confidence) / 2, n - 1) * spread / sqrt(n)
    return Interval(middle - width, middle + width) if isfinite(width) else None


def _check_counts(passed: float, n: float) -> None:
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} of {n} is not a share")
