"""Intervals: their formulas against scipy and statsmodels, their coverage by enumeration and simulation."""

from collections.abc import Callable, Sequence
from itertools import combinations
from math import fsum, inf, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from tests.stats.exact import binomial

from atp.stats.distributions import student_quantile
from atp.stats.intervals import (
    Interval,
    agreement,
    case_interval,
    clopper_pearson,
    lower_limit,
    mean_interval,
    mean_of_known,
    pass_at_k,
    pass_hat_k,
    percentile,
    percentile_interval,
    percentile_lower_limit,
    percentile_upper_limit,
    se_runs,
    suite_interval,
    suite_lower_limit,
    suite_upper_limit,
    upper_limit,
    wilson,
)

GRID = [number / 200 for number in range(1, 200)]


@st.composite
def counts(draw: st.DrawFn, most: int = 400) -> tuple[int, int]:
    n = draw(st.integers(1, most))
    return draw(st.integers(0, n)), n


def test_wilson_agrees_with_statsmodels() -> None:
    for n in (1, 3, 10, 100, 10_000):
        for passed in {0, 1, n // 2, int(0.9 * n), n}:
            for confidence in (0.8, 0.95, 0.99):
                expected = proportion_confint(passed, n, 1 - confidence, method="wilson")
                assert wilson(passed, n, confidence) == pytest.approx(expected, abs=1e-12)


def test_clopper_pearson_agrees_with_statsmodels() -> None:
    for n in (1, 3, 10, 100, 10_000):
        for passed in {0, 1, n // 2, int(0.9 * n), n}:
            expected = proportion_confint(passed, n, 0.05, method="beta")
            assert clopper_pearson(passed, n) == pytest.approx(expected, abs=1e-10)


def test_nine_of_ten() -> None:
    low, high = wilson(9, 10)
    assert (round(low, 2), round(high, 2)) == (0.60, 0.98)
    assert wilson(0, 0) == Interval(0, 1)
    assert wilson(10, 10).high == 1
    assert wilson(0, 10).low == 0


def test_more_passed_than_there_were_is_an_error() -> None:
    for formula in (wilson, lambda s, n: lower_limit(s, n, 0.05), lambda c, n: pass_at_k(n, c, 1)):
        with pytest.raises(ValueError, match="4 of 3 is not a share"):
            formula(4, 3)


@given(counts(), st.floats(0.5, 0.999))
def test_intervals_hold_the_observed_share_and_are_symmetric(count: tuple[int, int], confidence: float) -> None:
    passed, n = count
    for interval in (wilson, clopper_pearson):
        low, high = interval(passed, n, confidence)
        assert 0 <= low <= passed / n <= high <= 1
        assert interval(n - passed, n, confidence) == pytest.approx((1 - high, 1 - low), abs=1e-9)
        wider = interval(passed, n, (1 + confidence) / 2)
        assert wider.low <= low
        assert wider.high >= high


@given(counts(most=60))
def test_limits_rise_with_each_pass(count: tuple[int, int]) -> None:
    passed, n = count
    if passed < n:
        assert wilson(passed, n).low <= wilson(passed + 1, n).low
        assert wilson(passed, n).high <= wilson(passed + 1, n).high
        assert lower_limit(passed, n, 0.05) < lower_limit(passed + 1, n, 0.05)
        assert upper_limit(passed, n, 0.05) < upper_limit(passed + 1, n, 0.05)


def _coverage(interval: Callable[[int, int], Interval], n: int) -> list[float]:
    """The probability, at each rate of the grid, that the interval holds the rate. Exact: every count is tried."""
    made = [interval(passed, n) for passed in range(n + 1)]
    return [
        fsum(chance for chance, (low, high) in zip(binomial(n, rate), made, strict=True) if low <= rate <= high)
        for rate in GRID
    ]


@pytest.mark.parametrize("n", [3, 5, 10, 20, 50, 100])
def test_wilson_covers_95_percent_on_average(n: int) -> None:
    covered = _coverage(wilson, n)
    assert 0.945 < fsum(covered) / len(covered) < 0.957
    assert min(covered) > 0.83


@pytest.mark.parametrize("n", [5, 20, 100])
def test_each_clopper_pearson_limit_is_wrong_with_probability_alpha_at_most(n: int) -> None:
    for alpha in (0.05, 0.01):
        assert min(_coverage(lambda s, n, a=alpha: Interval(lower_limit(s, n, a), 1.0), n)) >= 1 - alpha  # type: ignore[misc]
        assert min(_coverage(lambda s, n, a=alpha: Interval(0.0, upper_limit(s, n, a)), n)) >= 1 - alpha  # type: ignore[misc]


@given(counts(most=40), st.data())
def test_a_case_interval_holds_the_rate_whatever_the_errors_would_have_been(
    count: tuple[int, int], data: st.DataObject
) -> None:
    passed, judged = count
    errors = data.draw(st.integers(0, 20))
    would_have_passed = data.draw(st.integers(0, errors))
    low, high = case_interval(passed, judged, errors)
    assert low <= passed / judged <= high
    inner = wilson(passed + would_have_passed, judged + errors)
    assert low <= inner.low
    assert inner.high <= high
    if not errors:
        assert (low, high) == wilson(passed, judged)


def test_a_suite_of_fewer_than_five_cases_has_no_interval() -> None:
    assert suite_interval([1.0] * 4, [5] * 4) is None
    assert suite_lower_limit([1.0] * 4, [5] * 4, 0.05) is None
    assert suite_upper_limit([1.0] * 4, [5] * 4, 0.05) is None


def test_a_suite_in_which_all_passes_is_not_certain() -> None:
    interval = suite_interval([1.0] * 10, [1] * 10)
    assert interval is not None
    t = student_quantile(0.975, 9)
    assert interval == pytest.approx((10 / (10 + t * t), 1.0))
    # More runs of the same cases say nothing of other cases.
    assert suite_interval([1.0] * 10, [50] * 10) == interval


def test_a_suite_interval_follows_the_spread_between_cases() -> None:
    even = suite_interval([0.5] * 9 + [0.6], [10] * 10)
    spread = suite_interval([0.0, 1.0] * 5, [10] * 10)
    assert even is not None
    assert spread is not None
    assert even.high - even.low < (spread.high - spread.low) / 2


def test_errors_of_others_widen_a_suite_interval() -> None:
    without = suite_interval([0.8] * 6, [5] * 6)
    with_errors = suite_interval([0.8] * 6, [5] * 6, highest_rates=[1.0] * 6)
    assert without is not None
    assert with_errors is not None
    assert with_errors.low == without.low
    assert with_errors.high > without.high


def test_a_suite_needs_the_trials_of_every_case() -> None:
    with pytest.raises(ValueError, match="trials_per_case"):
        suite_interval([0.8] * 6, [5] * 5)


MIXES: dict[str, Sequence[float]] = {
    "mostly easy": [1.0] * 8 + [0.9, 0.5],
    "half and half": [1.0, 0.95, 0.8, 0.2, 0.0],
    "all alike": [0.8],
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize(("cases", "runs"), [(5, 1), (10, 3), (30, 1), (30, 5)])
def test_suite_intervals_cover_the_rate_of_all_such_cases(mix: str, cases: int, runs: int) -> None:
    random = Random(f"{mix} {cases} {runs}")
    rates = MIXES[mix]
    truth = fsum(rates) / len(rates)
    held = below = 0
    rounds = 600
    for _ in range(rounds):
        drawn = [random.choice(rates) for _ in range(cases)]
        seen = [sum(random.random() < rate for _ in range(runs)) / runs for rate in drawn]
        interval = suite_interval(seen, [runs] * cases)
        limit = suite_lower_limit(seen, [runs] * cases, 0.05)
        assert interval is not None
        assert limit is not None
        held += interval.low <= truth <= interval.high
        below += limit <= truth
    assert held / rounds > 0.92
    assert below / rounds > 0.92


def test_the_error_of_other_runs_is_unbiased() -> None:
    assert se_runs([(3, 4), (4, 4)]) == pytest.approx(sqrt(0.75 * 0.25 / 3) / 2)
    assert se_runs([(3, 4), (1, 1)]) is None
    assert se_runs([]) is None
    expected = fsum(
        float(stats.binom.pmf(passed, 5, 0.7)) * (se_runs([(passed, 5)]) or 0.0) ** 2 for passed in range(6)
    )
    assert expected == pytest.approx(0.7 * 0.3 / 5)


def test_pass_at_k_counts_the_samples() -> None:
    runs = [True, True, False, False, False]
    for k in range(1, 6):
        samples = list(combinations(runs, k))
        assert pass_at_k(5, 2, k) == pytest.approx(sum(map(any, samples)) / len(samples))
        assert pass_hat_k(5, 2, k) == pytest.approx(sum(map(all, samples)) / len(samples))
    assert pass_at_k(5, 2, 6) is None
    assert pass_hat_k(5, 5, 6) is None
    assert pass_hat_k(0, 0, 1) is None


@given(counts(most=30), st.integers(1, 30))
def test_pass_hat_k_falls_and_pass_at_k_rises_with_k(count: tuple[int, int], k: int) -> None:
    passed, n = count
    if k < n:
        assert (pass_at_k(n, passed, k) or 0) <= (pass_at_k(n, passed, k + 1) or 0) + 1e-12
        assert (pass_hat_k(n, passed, k) or 0) >= (pass_hat_k(n, passed, k + 1) or 0) - 1e-12


def test_a_mean_with_an_unknown_part_is_unknown() -> None:
    assert mean_of_known([0.5, 1.0]) == 0.75
    assert mean_of_known([0.5, None]) is None
    assert mean_of_known([]) is None


def test_agreement_is_the_share_of_equal_pairs() -> None:
    assert agreement(["a", "a", "b"]) == pytest.approx(1 / 3)
    assert agreement(["a", "a"]) == 1
    assert agreement(["a"]) is None


def test_a_percentile_is_an_observed_value() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(1, 101), 0.95) == 95
    assert percentile(range(1, 21), 0.95) == 19
    assert percentile([7], 0.95) == 7


def test_a_percentile_interval_is_open_where_too_few_values_were_seen() -> None:
    assert percentile_interval([], 0.5) is None
    assert percentile_interval([1, 2, 3], 0.5) == (-inf, inf)
    assert percentile_interval(range(1, 11), 0.5) == (2, 9)  # the classical interval of a median of ten
    assert percentile_upper_limit(range(58), 0.95, 0.05) == inf
    assert percentile_upper_limit(range(59), 0.95, 0.05) == 58  # 0.95^59 < 5 %
    assert percentile_lower_limit(range(59), 0.95, 0.05) == 52


@given(st.integers(1, 300), st.floats(0.05, 0.95), st.sampled_from([0.05, 0.01]))
def test_percentile_limits_are_wrong_with_probability_alpha_at_most(n: int, share: float, alpha: float) -> None:
    ranks = range(1, n + 1)
    high, low = percentile_upper_limit(ranks, share, alpha), percentile_lower_limit(ranks, share, alpha)
    # The value of rank r is below the percentile if r or more values are.
    if high < inf:
        assert stats.binom.sf(high - 1, n, share) <= alpha + 1e-12
        assert stats.binom.sf(high - 2, n, share) > alpha
    if low > -inf:
        assert stats.binom.cdf(low - 1, n, share) <= alpha + 1e-12
        assert stats.binom.cdf(low, n, share) > alpha


def test_a_mean_has_students_interval() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, 0.9) == pytest.approx((expected.low, expected.high))
    assert mean_interval(values[:4]) is None


@pytest.mark.parametrize(("draw", "mean", "least"), [("gauss", 0.0, 0.94), ("expovariate", 1.0, 0.91)])
def test_mean_intervals_cover_the_mean(draw: str, mean: float, least: float) -> None:
    random = Random(draw)
    rounds = 1500
    held = 0
    for _ in range(rounds):
        interval = mean_interval([random.gauss() if draw == "gauss" else random.expovariate(1) for _ in range(30)])
        assert interval is not None
        held += interval.low <= mean <= interval.high
    assert least < held / rounds < 0.96
