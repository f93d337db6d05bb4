"""Gates: decisions, and the two probabilities of a wrong one, by enumeration."""

from math import fsum, inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.exact import binomial

from atp.stats.gates import (
    decide,
    decide_percentile,
    decide_suite,
    expected_wrong_decisions,
    fixed_runs,
    least_runs,
    runs_to_tell,
)
from atp.stats.intervals import lower_limit, percentile_upper_limit, upper_limit


@pytest.mark.parametrize(
    ("passed", "judged", "errors", "p", "margin", "decision"),
    [
        (29, 29, 0, 0.9, 0.0, "passed"),
        (28, 28, 0, 0.9, 0.0, "inconclusive"),
        (28, 28, 1, 0.9, 0.0, "inconclusive"),
        (5, 10, 0, 0.9, 0.0, "failed"),
        (5, 5, 5, 0.9, 0.0, "inconclusive"),
        (0, 0, 10, 0.9, 0.0, "inconclusive"),
        (0, 0, 0, 0.9, 0.0, "inconclusive"),
        (9, 10, 0, 1.0, 0.1, "failed"),
        (10, 10, 0, 1.0, 0.0, "inconclusive"),
        # Both hypotheses are rejected: the rate lies within the margin.
        (700, 1000, 0, 0.9, 0.4, "passed"),
    ],
)
def test_decisions(passed: int, judged: int, errors: int, p: float, margin: float, decision: str) -> None:
    assert decide(passed, judged, errors, p, margin, 0.05) == decision


@given(st.integers(1, 200), st.floats(0.2, 0.99), st.floats(0, 0.15), st.sampled_from([0.1, 0.05, 0.01]), st.data())
def test_decisions_are_those_of_the_clopper_pearson_limits(
    n: int, p: float, margin: float, alpha: float, data: st.DataObject
) -> None:
    errors = data.draw(st.integers(0, n))
    passed = data.draw(st.integers(0, n - errors))
    decision = decide(passed, n - errors, errors, p, margin, alpha)
    assert (decision == "passed") == (lower_limit(passed, n, alpha) >= p - margin)
    if decision == "failed":
        assert upper_limit(passed + errors, n, alpha) <= p


@pytest.mark.parametrize(("p", "margin"), [(0.9, 0.1), (0.9, 0.0), (0.95, 0.05), (0.5, 0.2), (1.0, 0.1)])
def test_both_errors_stay_below_alpha_at_the_ends_of_the_margin(p: float, margin: float) -> None:
    for n in range(5, 101):
        decisions = [decide(passed, n, 0, p, margin, 0.05) for passed in range(n + 1)]
        for rate, wrong in ((p - margin, "passed"), (p, "failed")):
            chances = zip(binomial(n, rate), decisions, strict=True)
            assert fsum(chance for chance, decision in chances if decision == wrong) <= 0.05 + 1e-12


def test_errors_that_are_not_the_agents_decide_nothing_by_themselves() -> None:
    # Slow runs fail half the time and end in an error of the judge instead: the gate must not become easier.
    for errors in range(12):
        assert decide(30 - errors, 30 - errors, errors, 0.9, 0.0, 0.05) == ("passed" if not errors else "inconclusive")


@pytest.mark.parametrize(("p", "margin", "runs"), [(0.9, 0.0, 29), (0.99, 0.0, 299), (0.9, 0.1, 14), (1.0, 0.0, None)])
def test_least_runs(p: float, margin: float, runs: int | None) -> None:
    assert least_runs(p, margin, 0.05) == runs


def test_runs_to_tell() -> None:
    assert runs_to_tell(9, 10, 0.75, 0.0, 0.05) == 19
    assert runs_to_tell(3, 3, 0.9, 0.0, 0.05) == 26
    assert runs_to_tell(40, 40, 0.9, 0.0, 0.05) == 0
    assert runs_to_tell(9, 10, 0.9, 0.0, 0.05) is None
    assert runs_to_tell(0, 0, 0.9, 0.0, 0.05) is None
    more = runs_to_tell(8, 10, 0.9, 0.0, 0.05)
    assert more is not None
    assert 10 < more < 80


def test_a_fixed_design_needs_135_runs() -> None:
    assert fixed_runs(0.9, 0.1, 0.05) == 135
    assert fixed_runs(1.0, 0.0, 0.05) is None


def test_expected_wrong_decisions_add_up() -> None:
    assert expected_wrong_decisions([0.05] * 100) == pytest.approx(5)
    assert expected_wrong_decisions([]) == 0


@pytest.mark.parametrize(("p", "margin", "alpha"), [(0.9, 0.9, 0.05), (0.0, 0.0, 0.05), (0.9, -0.1, 0.05), (0.9, 0, 1)])
def test_a_gate_that_cannot_be_tested_is_an_error(p: float, margin: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="a gate needs"):
        decide(1, 1, 0, p, margin, alpha)
    with pytest.raises(ValueError, match="not possible"):
        decide(2, 1, 0, 0.9, 0.0, 0.05)


def test_a_suite_is_decided_by_its_cases() -> None:
    assert decide_suite([1.0] * 60, [1] * 60, 0.9, 0.0, 0.05) == "passed"
    assert decide_suite([1.0] * 60, [1] * 60, 0.99, 0.0, 0.05) == "inconclusive"
    assert decide_suite([0.5, 0.6, 0.4, 0.5, 0.6, 0.4], [10] * 6, 0.9, 0.0, 0.05) == "failed"
    assert decide_suite([0.5] * 4, [10] * 4, 0.9, 0.0, 0.05) == "inconclusive"
    # The errors of others could have been passes.
    assert decide_suite([0.5] * 6, [10] * 6, 0.9, 0.0, 0.05, highest_rates=[1.0] * 6) == "inconclusive"


def test_a_percentile_is_decided_by_its_limits() -> None:
    values = [float(number) for number in range(1, 101)]
    limit = percentile_upper_limit(values, 0.9, 0.05)
    assert limit < inf
    assert decide_percentile(values, 0.9, limit, 0.05) == "passed"
    assert decide_percentile(values, 0.9, 90.0, 0.05) == "inconclusive"
    assert decide_percentile(values, 0.9, 70.0, 0.05) == "failed"
    assert decide_percentile(values, 0.9, 70.0, 0.05, at_most=False) == "passed"
    assert decide_percentile(values, 0.9, 99.0, 0.05, at_most=False) == "failed"
    assert decide_percentile([], 0.9, 1.0, 0.05) == "inconclusive"


def test_a_percentile_gate_is_wrong_with_probability_alpha_at_most() -> None:
    random = Random(14)
    rounds = 1000
    decisions = [
        decide_percentile([random.random() for _ in range(80)], 0.9, 0.9, 0.05) for _ in range(rounds)
    ]  # the 90th percentile is exactly the threshold: either decision is wrong, or right by luck
    assert decisions.count("passed") / rounds < 0.065
    assert decisions.count("failed") / rounds < 0.065
