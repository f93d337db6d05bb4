"""The distributions agree with scipy's."""

from math import exp, inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from atp.stats.distributions import (
    binomial_at_least,
    binomial_at_most,
    log_beta_tails,
    normal_quantile,
    root,
    student_quantile,
    student_tail,
)

SIZES = (1, 2, 5, 30, 200, 10_000)


@pytest.mark.parametrize("n", SIZES)
def test_binomial_tails_agree_with_scipy(n: int) -> None:
    for share in (0.001, 0.2, 0.5, 0.8, 0.9, 0.999):
        for count in {0, 1, n // 3, n // 2, int(0.8 * n), int(0.9 * n), n - 1, n}:
            assert binomial_at_least(count, n, share) == pytest.approx(stats.binom.sf(count - 1, n, share), rel=1e-9)
            assert binomial_at_most(count, n, share) == pytest.approx(stats.binom.cdf(count, n, share), rel=1e-9)


def test_impossible_and_certain_counts() -> None:
    assert binomial_at_least(0, 3, 0.5) == binomial_at_most(3, 3, 0.5) == 1
    assert binomial_at_least(4, 3, 0.5) == binomial_at_most(-1, 3, 0.5) == 0
    assert binomial_at_least(1, 3, 0.0) == binomial_at_most(2, 3, 1.0) == 0


def test_a_tail_too_small_for_a_float_has_a_logarithm() -> None:
    assert log_beta_tails(0.2, 10_000, 1)[0] == pytest.approx(10_000 * log(0.2), rel=1e-12)
    assert log_beta_tails(0.8, 1, 10_000)[1] == pytest.approx(10_000 * log(0.2), rel=1e-12)
    assert log_beta_tails(0.0, 2, 3) == (-inf, 0)
    assert log_beta_tails(1.0, 2, 3) == (0, -inf)


@given(st.floats(0.001, 0.999), st.floats(0.5, 500), st.floats(0.5, 500))
def test_beta_tails_agree_with_scipy_and_add_up(x: float, a: float, b: float) -> None:
    low, high = log_beta_tails(x, a, b)
    assert exp(low) + exp(high) == pytest.approx(1)
    assert exp(low) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-8, abs=1e-300)
    assert log_beta_tails(1 - x, b, a) == pytest.approx((high, low), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("df", [1, 2, 4, 9, 29, 99, 9999])
def test_students_distribution_agrees_with_scipy(df: int) -> None:
    for share in (0.001, 0.05, 0.3, 0.5, 0.9, 0.95, 0.975, 0.995, 0.99999):
        assert student_quantile(share, df) == pytest.approx(stats.t.ppf(share, df), rel=1e-9, abs=1e-12)
    for t in (-3.0, -0.5, 0.0, 0.1, 2.0, 40.0):
        assert student_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9)


def test_normal_quantiles_agree_with_scipy() -> None:
    for share in (1e-9, 0.025, 0.3, 0.5, 0.8, 0.95, 0.975, 0.9999, 1 - 1e-9):
        assert normal_quantile(share) == pytest.approx(stats.norm.ppf(share), rel=1e-9, abs=1e-12)
    assert normal_quantile(1.0) == inf


def test_a_root_is_found_between_infinite_ends() -> None:
    assert root(lambda x: log(x / (1 - x)) if 0 < x < 1 else (x - 0.5) * inf, 0.0, 1.0) == pytest.approx(0.5)
    assert root(lambda x: 2 - x, 2.0, 5.0) == 2.0
