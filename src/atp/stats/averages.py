"""The mean and the spread of values, exact, also of values whose sum or squares no float can hold."""

from collections.abc import Iterable, Sequence
from math import fsum, sqrt


def mean(values: Sequence[float]) -> float | None:
    """The arithmetic mean; None without values."""
    if not values:
        return None
    try:
        return fsum(values) / len(values)
    except OverflowError:  # a metric may be any number, and the mean of numbers is always one
        return fsum(value / len(values) for value in values)


def deviation(values: Sequence[float], *, sample: bool = False) -> float | None:
    """The standard deviation of the population, or the one estimated from a `sample`; None without enough values.

    Infinite if it is larger than any float.
    """
    middle, n = mean(values), len(values) - sample
    if middle is None or not n:
        return None
    try:
        return sqrt(_sum_of_squares(value - middle for value in values) / n)
    except OverflowError:
        largest = max(map(abs, values))
        return sqrt(_sum_of_squares(value / largest - middle / largest for value in values) / n) * largest


def _sum_of_squares(values: Iterable[float]) -> float:
    return fsum(value**2 for value in values)


def median(values: Sequence[float]) -> float | None:
    """The middle value, or the mean of the two in the middle; None without values."""
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
