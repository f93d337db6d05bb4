"""The mean and the spread of values, also of those whose sum or squares no float can hold."""

import statistics
import sys
from math import isclose

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atp.stats.averages import deviation, mean
from atp.stats.intervals import mean_interval

NUMBERS = st.lists(st.floats(0, 1e7), min_size=1, max_size=30)
ANY_SIZE = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
LARGEST = sys.float_info.max


@given(NUMBERS)
def test_mean_and_deviation_are_those_of_the_population(values: list[float]) -> None:
    assert mean(values) == pytest.approx(statistics.fmean(values))
    assert deviation(values) == pytest.approx(statistics.pstdev(values), abs=1e-6)


@given(NUMBERS.filter(lambda values: len(values) > 1))
def test_deviation_of_a_sample(values: list[float]) -> None:
    assert deviation(values, sample=True) == pytest.approx(statistics.stdev(values), abs=1e-6)


@given(ANY_SIZE)
@example([1e308, 1e308])
@example([LARGEST, -LARGEST])
@example([LARGEST, -LARGEST, LARGEST, 0.0, 5e-324])
def test_numbers_of_any_size(values: list[float]) -> None:
    middle, spread = mean(values), deviation(values)
    assert middle is not None
    assert spread is not None
    assert min(values) <= middle <= max(values) or isclose(middle, min(values)) or isclose(middle, max(values))
    half = max(values) / 2 - min(values) / 2
    assert 0 <= spread <= half or isclose(spread, half, rel_tol=1e-9, abs_tol=5e-324)


def test_nothing_has_no_mean() -> None:
    assert mean([]) is None
    assert deviation([]) is None


def test_one_value_has_no_spread_as_a_sample() -> None:
    assert deviation([3.0]) == 0
    assert deviation([3.0], sample=True) is None


def test_a_spread_that_no_float_can_hold_gives_no_interval() -> None:
    assert mean_interval([LARGEST, -LARGEST, LARGEST, -LARGEST, LARGEST]) is None
