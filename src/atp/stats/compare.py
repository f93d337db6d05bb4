"""Whether B is worse than A: tests over the cases of two runs, case by case, and of the figures of the cases.

Differences are B - A, of shares from 0 to 1. `docs/design/compare.md` says which test each answer has, and why.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import comb, exp, fsum, log, sqrt
from operator import add, getitem
from random import Random
from typing import NamedTuple

from atp.stats.comparison import Class, Observed
from atp.stats.distributions import normal_quantile, normal_tail, student_quantile
from atp.stats.intervals import LEAST_CASES, Interval, wilson
from atp.stats.sequential import anytime_interval, log_evidence_between

ALPHA = 0.05
"""The level of the overall test, two-sided, and the share of false discoveries among cases."""
LEAST_DIFFERENT = 6
"""Cases with a difference. With fewer, no result of the overall test can reach 5%: 2 of 2^5 flips are 6%."""
LEAST_RUNS = 4
"""Judged runs on either side of a case. With fewer, no case is said to have regressed: 3/3 to 0/3 has p = 0.1."""
MOST_EXACT = 20
"""Differences up to which every flip of their signs is counted."""
FLIPS = 100_000
"""Random flips for more differences than that."""
_FLIPPED = FLIPS * 1_000
"""Signs that are flipped in all: beyond 1,000 differences there are fewer random flips, down to `_FEWEST_FLIPS`."""
_FEWEST_FLIPS = 5_000
_DRAWN = 3_000_000
"""Cases that are drawn in all where runs are given to the sides at random."""
_MOST_EXACT_RANKS = 50
"""Figures up to which the signed-rank distribution is counted out; above it is normal to three digits."""
_ROUNDING = 1e-9


class Counts(NamedTuple):
    """The judged runs of a case on one side."""

    passed: int
    """Runs that passed."""
    judged: int
    """Runs that say something of the agent."""
    sequential: bool = False
    """True if how many there are depends on how they came out (`--runs auto`)."""


class Shift(NamedTuple):
    """How a figure moved over the cases: a difference, or the logarithm of a ratio."""

    estimate: float
    """The Hodges-Lehmann shift: the median of the means of all pairs of cases."""
    interval: Interval | None
    """The interval of the shift; None with fewer cases than a 95% interval needs."""
    p_value: float
    """Wilcoxon's signed-rank test, two-sided."""


def observed(difference: float) -> Observed:
    """What was observed, whether or not it is sure."""
    if abs(difference) < _ROUNDING:
        return "equal"
    return "worse" if difference < 0 else "better"


def sign_flip(differences: Iterable[float], seed: int = 0) -> float:
    """The two-sided p-value of the hypothesis that the differences of cases are as likely to have the other sign.

    The share of all flips of signs whose sum is at least as far from 0 as the observed one. The studentised sum gives
    the same share: a flip changes no square, so the studentised sum grows with the sum. Cases without a difference
    change nothing. With single runs all differences are 1 or -1, and the test is McNemar's exact one.
    """
    sizes = sorted(abs(one) for one in differences if abs(one) >= _ROUNDING)
    total = abs(fsum(one for one in differences if abs(one) >= _ROUNDING))
    if not sizes:
        return 1.0
    least = total - _ROUNDING * len(sizes)
    if sizes[-1] - sizes[0] < _ROUNDING:
        positive = round((len(sizes) + total / sizes[0]) / 2)
        return min(1.0, 2 * sum(comb(len(sizes), k) for k in range(positive, len(sizes) + 1)) / (1 << len(sizes)))
    if len(sizes) <= MOST_EXACT:
        return _all_flips(sizes, least)
    return _random_flips(sizes, least, seed)


def _all_flips(sizes: Sequence[float], least: float) -> float:
    """The share of all flips with a sum of at least `least` on either side.

    The flips of one half of the differences are sorted, so that those of the other half need only be looked up.
    """
    left, right = sorted(_sums(sizes[::2])), _sums(sizes[1::2])
    extreme = sum(len(left) - bisect_left(left, least - one) + bisect_right(left, -least - one) for one in right)
    return min(1.0, extreme / (len(left) * len(right)))


def _sums(sizes: Sequence[float]) -> list[float]:
    """The sums of all flips: the one with number k has a plus where k has a bit."""
    sums = [0.0]
    for size in sizes:
        sums = [one - size for one in sums] + [one + size for one in sums]
    return sums


def _random_flips(sizes: Sequence[float], least: float, seed: int) -> float:
    """The share of random flips, the observed one included: (b + 1) / (B + 1).

    A byte flips eight differences at once, by a table of their 256 sums.
    """
    tables = [_sums(sizes[start : start + 8]) for start in range(0, len(sizes), 8)]
    tables[-1] *= 256 // len(tables[-1])
    random = Random(seed)  # noqa: S311  (the same p-value each time, no secret)
    flips, width = min(FLIPS, max(_FEWEST_FLIPS, _FLIPPED // len(sizes))), len(tables)
    extreme = sum(abs(sum(map(getitem, tables, random.randbytes(width)))) >= least for _ in range(flips))
    return (extreme + 1) / (flips + 1)


def overall_p_value(pairs: Sequence[tuple[Counts, Counts]], differences: Sequence[float]) -> float:
    """The p-value of all cases together: that B is as good as A, on average over the cases.

    `differences` has the difference of the rates of each case. Flipped signs are right only where both sides have as
    many runs: with 1 run against 5, a difference of -95 points is much rarer than one of 5, although nothing changed.
    So where numbers of runs differ, the hypothesis must also be rejected when the runs of each case are given to the
    two sides at random.
    """
    p_value = sign_flip(differences)
    if p_value > ALPHA or all(a.judged == b.judged for a, b in pairs):
        return p_value
    return max(p_value, random_sides(pairs))


def random_sides(pairs: Sequence[tuple[Counts, Counts]], seed: int = 0) -> float:
    """The share of random ways to give the runs of each case to A and B that differ as much in the mean, two-sided."""
    draws = min(FLIPS, max(2_000, _DRAWN // len(pairs)))
    random = Random(seed)  # noqa: S311  (the same p-value each time, no secret)
    sums = [0.0] * draws
    for a, b in pairs:
        weights = _table_weights(a.judged, b.judged, a.passed + b.passed)
        fewest = max(0, a.passed + b.passed - b.judged)
        possible = range(fewest, fewest + len(weights))
        values = [(a.passed + b.passed - k) / b.judged - k / a.judged for k in possible]
        if len(values) > 1:
            limits = [one / sum(weights) for one in accumulate(weights)]  # as shares: the counts can be beyond floats
            drawn = random.choices(values, cum_weights=limits, k=draws)
            sums = list(map(add, sums, drawn))
        else:
            sums = [one + values[0] for one in sums]
    least = abs(fsum(b.passed / b.judged - a.passed / a.judged for a, b in pairs)) - _ROUNDING * len(pairs)
    return (sum(abs(one) >= least for one in sums) + 1) / (draws + 1)


def few_cases_interval(pairs: Sequence[tuple[Counts, Counts]], confidence: float = 0.95) -> Interval:
    """The interval of the mean difference over a few cases, from that of each; there is at least one.

    Where there are too few cases for `overall_interval`, which needs to see how much cases differ.
    """
    n = len(pairs)
    all_limits = [difference_interval(a, b, confidence) for a, b in pairs]
    differences = [b.passed / b.judged - a.passed / a.judged for a, b in pairs]
    mean = fsum(differences) / n
    low = sqrt(fsum((one - limits.low) ** 2 for one, limits in zip(differences, all_limits, strict=True))) / n
    high = sqrt(fsum((limits.high - one) ** 2 for one, limits in zip(differences, all_limits, strict=True))) / n
    return Interval(mean - low, mean + high)


def overall_interval(differences: Sequence[float], runs: Sequence[int], confidence: float = 0.95) -> Interval | None:
    """The interval of the mean difference over these cases, in the long run; None below 5 cases.

    `runs` has the judged runs of each case, on the side that has fewer. Student's interval, with two differences added
    to the spread, one of each sign: without those the interval would have no width where no difference was seen. Each
    is that of one run; where fewer than 6 cases differ, that of a case of which all runs differ, because how much cases
    differ can't be known from so few.
    """
    n = len(differences)
    if n < LEAST_CASES:
        return None
    different = sum(abs(one) >= _ROUNDING for one in differences)
    added = n / fsum(runs) if different >= LEAST_DIFFERENT else 1.0
    mean = fsum(differences) / n
    spread = fsum((one - mean) ** 2 for one in differences) + 2 * added * added
    width = student_quantile((1 + confidence) / 2, n - 1) * sqrt(spread / (n - 1) / n)
    return Interval(max(-1.0, mean - width), min(1.0, mean + width))


def classify_overall(
    differences: Sequence[float], p_value: float, interval: Interval | None, margin: float | None = None
) -> Class:
    """The class of all cases together, by the overall test alone; `same` if no case differs."""
    if p_value <= ALPHA:
        return "regressed" if fsum(differences) < 0 else "improved"
    alike = all(abs(one) < _ROUNDING for one in differences)
    return "same" if alike or _is_within(interval, margin) else "inconclusive"


def is_non_inferior(interval: Interval | None, margin: float) -> bool:
    """True if B is shown to be worse than A by less than `margin`, in the long run."""
    return interval is not None and interval.low > -margin


def _is_within(interval: Interval | None, margin: float | None) -> bool:
    return interval is not None and margin is not None and -margin < interval.low and interval.high < margin


def case_p_value(a: Counts, b: Counts) -> float:
    """The p-value of one case: that B passes as often as A, in the long run.

    Fisher's test takes the numbers of runs for given. Where those of a side depend on its results, the p-value is the
    inverse of the evidence of a test that holds at any stop.
    """
    if a.sequential or b.sequential:
        return exp(min(0.0, -log_evidence_between(a[:2], b[:2])))
    return fisher(a, b)


@lru_cache(4096)
def fisher(a: Counts, b: Counts) -> float:
    """Fisher's exact test of two pass rates, two-sided: the tables that are no more likely than the observed one."""
    weights = _table_weights(a.judged, b.judged, a.passed + b.passed)
    own = weights[a.passed - max(0, a.passed + b.passed - b.judged)]
    return sum(one for one in weights if one <= own) / sum(weights)


@lru_cache(4096)
def least_p_value(a: Counts, b: Counts) -> float:
    """The smallest p-value that the test can have with these runs and as many passes in all; 0 if that is not known."""
    if a.sequential or b.sequential:
        return 0.0
    weights = _table_weights(a.judged, b.judged, a.passed + b.passed)
    least = min(weights)
    return sum(one for one in weights if one <= least) / sum(weights)


@lru_cache(64)
def _table_weights(runs_a: int, runs_b: int, passed: int) -> list[int]:
    """In how many ways A can have each number of all passes, from the fewest that are possible."""
    return [comb(runs_a, k) * comb(runs_b, passed - k) for k in range(max(0, passed - runs_b), min(runs_a, passed) + 1)]


def discoveries(p_values: Sequence[float], least_p_values: Sequence[float], q: float = ALPHA) -> list[bool]:
    """Which hypotheses are rejected with at most a share `q` of false ones among them, on average.

    Gilbert's procedure for discrete tests: hypotheses whose smallest possible p-value could never be rejected (Tarone)
    don't count as tests, so that they take no power from the others; then Benjamini and Hochberg's on the rest.
    """
    smallest = sorted(least_p_values)
    k = next((k for k in range(1, len(smallest) + 1) if bisect_right(smallest, q / k) <= k), 0)
    tested = [place for place, least in enumerate(least_p_values) if k and least <= q / k]
    ordered = sorted(tested, key=lambda place: p_values[place])
    last = max((rank for rank, place in enumerate(ordered, 1) if p_values[place] <= q * rank / len(ordered)), default=0)
    rejected = set(ordered[:last])
    return [place in rejected for place in range(len(p_values))]


def classify_cases(pairs: Sequence[tuple[Counts, Counts]], margin: float | None = None) -> list[tuple[Class, float]]:
    """The class and the p-value of each case, from its judged runs in A and in B; each has at least one.

    `same` is a case with equal rates, or with a difference that lies within ±`margin` in the long run.
    """
    tested = [min(a.judged, b.judged) >= LEAST_RUNS for a, b in pairs]
    p_values = [case_p_value(a, b) for a, b in pairs]
    least = [least_p_value(a, b) if is_tested else 1.0 for (a, b), is_tested in zip(pairs, tested, strict=True)]
    found: list[tuple[Class, float]] = []
    for (a, b), p_value, rejected in zip(pairs, p_values, discoveries(p_values, least), strict=True):
        difference = b.passed / b.judged - a.passed / a.judged
        kind: Class = "inconclusive"
        if rejected:
            kind = "regressed" if difference < 0 else "improved"
        elif abs(difference) < _ROUNDING or (margin is not None and _is_within(difference_interval(a, b), margin)):
            kind = "same"
        found.append((kind, p_value))
    return found


def difference_interval(a: Counts, b: Counts, confidence: float = 0.95) -> Interval:
    """The interval of the difference of a case's pass rates; one that holds at any stop, where results decided that."""
    if not (a.sequential or b.sequential):
        return newcombe(a, b, confidence)
    each = (1 + confidence) / 2  # both hold the rate with the confidence that is asked for
    (low_a, high_a), (low_b, high_b) = (anytime_interval(one.passed, one.judged, 0, each) for one in (a, b))
    return Interval(low_b - high_a, high_b - low_a)


def newcombe(a: Counts, b: Counts, confidence: float = 0.95) -> Interval:
    """Newcombe's interval of the difference of two pass rates, from Wilson's of each."""
    rate_a, rate_b = a.passed / a.judged, b.passed / b.judged
    low_a, high_a = wilson(a.passed, a.judged, confidence)
    low_b, high_b = wilson(b.passed, b.judged, confidence)
    difference = rate_b - rate_a
    low = difference - sqrt((rate_b - low_b) ** 2 + (high_a - rate_a) ** 2)
    high = difference + sqrt((high_b - rate_b) ** 2 + (rate_a - low_a) ** 2)
    return Interval(max(-1.0, low), min(1.0, high))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several comparisons, corrected for how many there are (Holm)."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - rank)))
        corrected[place] = highest
    return corrected


_LARGEST_LOG_RATIO = log(1e100)
"""Figures further apart than that are compared by their difference: the change in percent would have 100 digits."""


def log_ratios(pairs: Iterable[tuple[float, float]]) -> list[float] | None:
    """The logarithm of B/A for each case; None if a figure is 0 or negative, or a ratio is beyond any percentage."""
    known = list(pairs)
    if any(a <= 0 or b <= 0 for a, b in known):
        return None
    ratios = [log(b) - log(a) for a, b in known]  # B/A itself may be more than a float can hold, or 0
    return ratios if max(map(abs, ratios), default=0.0) <= _LARGEST_LOG_RATIO else None


def shift(values: Sequence[float], confidence: float = 0.95) -> Shift | None:
    """How a figure moved, from one difference or log-ratio for each case; None without cases."""
    if not values:
        return None
    ordered = sorted(values)
    pairs = len(ordered) * (len(ordered) + 1) // 2
    middle = (_walsh(ordered, (pairs + 1) // 2) + _walsh(ordered, pairs // 2 + 1)) / 2
    rank = _interval_rank(len(ordered), (1 - confidence) / 2)
    interval = Interval(_walsh(ordered, rank), _walsh(ordered, pairs + 1 - rank)) if rank else None
    return Shift(middle, interval, signed_rank(values))


def signed_rank(values: Iterable[float]) -> float:
    """Wilcoxon's signed-rank test, two-sided, with mean ranks for ties; zeros are left out, as Wilcoxon did."""
    nonzero = sorted((one for one in values if one), key=abs)
    n = len(nonzero)
    if not n:
        return 1.0
    sizes = [abs(one) for one in nonzero]
    # Twice the mean rank, which is whole: ranks begin at 1.
    ranks = [bisect_left(sizes, one) + bisect_right(sizes, one) + 1 for one in sizes]
    positive = sum(rank for rank, one in zip(ranks, nonzero, strict=True) if one > 0)
    total = sum(ranks)
    extreme = max(positive, total - positive)
    if n <= _MOST_EXACT_RANKS:
        ways = _rank_sums(tuple(ranks))
        return min(1.0, 2 * sum(ways[extreme:]) / (1 << n))
    # Of a sum of twice the ranks: the next possible value is 2 away, so the correction for continuity is 1.
    z = (extreme - total / 2 - 1) / sqrt(sum(rank * rank for rank in ranks) / 4)
    return min(1.0, 2 * normal_tail(max(0.0, z)))


@lru_cache(64)
def _rank_sums(ranks: tuple[int, ...]) -> list[int]:
    """In how many ways the ranks can have each sum."""
    ways = [1] + [0] * sum(ranks)
    for rank in ranks:
        for place in range(len(ways) - 1, rank - 1, -1):
            ways[place] += ways[place - rank]
    return ways


def _interval_rank(n: int, alpha: float) -> int:
    """The rank, from 1, of the mean of a pair that is the lower limit; 0 if there are too few values."""
    if n <= _MOST_EXACT_RANKS:
        below = accumulate(_rank_sums(tuple(range(1, n + 1))))
        return next(rank for rank, ways in enumerate(below) if ways > alpha * 2**n)
    width = normal_quantile(1 - alpha) * sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return max(0, int(n * (n + 1) / 4 - width))


def _walsh(ordered: Sequence[float], rank: int) -> float:
    """The mean of a pair of values (each with itself, too) that has this rank among all of them, to 12 digits."""
    low, high = ordered[0], ordered[-1]
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high or high - low <= 1e-13 * max(abs(low), abs(high)):
            break
        low, high = (low, middle) if _pairs_below(ordered, middle) >= rank else (middle, high)
    return low if _pairs_below(ordered, low) >= rank else high


def _pairs_below(ordered: Sequence[float], mean: float) -> int:
    """How many pairs have at most this mean."""
    count, last = 0, len(ordered) - 1
    for first, value in enumerate(ordered):
        while last >= first and value + ordered[last] > 2 * mean:
            last -= 1
        if last < first:
            break
        count += last - first + 1
    return count
