"""The distributions that intervals and tests are made of: beta, binomial, normal, Student's t; and a root finder.

Tails are computed as logarithms, so that a probability too small for a float still compares rightly.
"""

from collections.abc import Callable
from functools import lru_cache
from math import erfc, exp, expm1, inf, lgamma, log, log1p, log2, sqrt

_TINY = 1e-300
_ITERATIONS = 10_000


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def log_beta_tails(x: float, a: float, b: float) -> tuple[float, float]:
    """The logarithms of P(X ≤ x) and P(X > x) for X with a beta distribution, a and b above 0."""
    if x <= 0:
        return -inf, 0.0
    if x >= 1:
        return 0.0, -inf
    density = a * log(x) + b * log1p(-x) - log_beta(a, b)
    if x < (a + 1) / (a + b + 2):  # the side on which the continued fraction converges quickly
        lower = min(density - log(a) + log(_beta_fraction(x, a, b)), 0.0)
        return lower, _log_complement(lower)
    upper = min(density - log(b) + log(_beta_fraction(1 - x, b, a)), 0.0)
    return _log_complement(upper), upper


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, from its front (modified Lentz)."""
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ITERATIONS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _nonzero(1 + even * d)
        c = _nonzero(1 + even / c)
        value *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _nonzero(1 + odd * d)
        c = _nonzero(1 + odd / c)
        change = c * d
        value *= change
        if abs(change - 1) < 1e-15:
            return value
    raise ArithmeticError(f"the incomplete beta function of {x}, {a}, {b} did not converge")


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _log_complement(log_share: float) -> float:
    """The logarithm of 1 - e^x, without loss of digits at either end."""
    if log_share >= 0:
        return -inf
    return log(-expm1(log_share)) if log_share > -0.6931 else log1p(-exp(log_share))


def binomial_at_least(count: int, n: int, share: float) -> float:
    """The probability of `count` or more successes in `n` tries, each with probability `share`."""
    if count <= 0:
        return 1.0
    return 0.0 if count > n else exp(log_beta_tails(share, count, n - count + 1)[0])


def binomial_at_most(count: int, n: int, share: float) -> float:
    """The probability of `count` or fewer successes in `n` tries, each with probability `share`."""
    if count >= n:
        return 1.0
    return 0.0 if count < 0 else exp(log_beta_tails(share, count + 1, n - count)[1])


def normal_tail(z: float) -> float:
    """The probability that a standard normal variable exceeds `z`."""
    return erfc(z / sqrt(2)) / 2


@lru_cache(256)
def normal_quantile(share: float) -> float:
    """The value below which a standard normal variable stays with probability `share`."""
    if share < 0.5:
        return -normal_quantile(1 - share)
    return root(lambda z: log2(normal_tail(z)) - log2(1 - share), 0.0, 38.0) if share < 1 else inf


def student_tail(t: float, df: float) -> float:
    """The probability that a variable with Student's distribution exceeds `t`."""
    if t < 0:
        return 1 - student_tail(-t, df)
    if t == 0:
        return 0.5
    return exp(log_beta_tails(df / (df + t * t), df / 2, 0.5)[0]) / 2


@lru_cache(1024)
def student_quantile(share: float, df: float) -> float:
    """The value below which a variable with Student's distribution stays with probability `share`."""
    if share < 0.5:
        return -student_quantile(1 - share, df)
    if share == 0.5:
        return 0.0
    high = 1.0
    while student_tail(high, df) > 1 - share:
        high *= 2
    return root(lambda t: log(student_tail(t, df)) - log(1 - share), 0.0, high)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a monotone function is 0 between `low` and `high` (regula falsi, Illinois variant, with bisection).

    Infinite values at the ends are allowed: the step is then a bisection.
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0:
        return low
    side = 0
    for step in range(200):
        middle = high - at_high * (high - low) / (at_high - at_low) if step % 4 else (low + high) / 2
        if not low < middle < high:  # also when an end is infinite, which makes the step not a number
            middle = (low + high) / 2
        if high - low <= 1e-15 * (abs(low) + abs(high)) or not low < middle < high:
            return middle
        value = function(middle)
        if value == 0:
            return middle
        if (value > 0) == (at_high > 0):
            high, at_high = middle, value
            at_low = at_low / 2 if side == 1 else at_low
            side = 1
        else:
            low, at_low = middle, value
            at_high = at_high / 2 if side == -1 else at_high
            side = -1
    return (low + high) / 2
