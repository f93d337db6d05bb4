"""The test of `--runs auto`: its error rates, intervals and estimates, by following every count of passes."""

import heapq
from collections.abc import Iterator
from itertools import product
from math import exp, inf, log
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from tests.stats.exact import sequential_ends

from atp.stats.sequential import (
    Design,
    SequentialTest,
    Stop,
    anytime_interval,
    boundaries,
    decide_in_order,
    log_evidence_above,
    log_evidence_below,
)

DESIGN = Design(p=0.9, margin=0.1, alpha=0.05, min_runs=5, max_runs=200)
GATES = [(0.9, 0.1), (0.95, 0.1), (0.8, 0.2), (0.9, 0.0), (1.0, 0.1)]


def fed(design: Design, passed: str) -> SequentialTest:
    """A test with results in run order: 1 passed, 0 failed, x another's error."""
    test = SequentialTest(design)
    for one in passed:
        test.add(one == "1", one != "0")
    return test


@pytest.mark.parametrize("rate", [0.3, 0.8, 0.9])
def test_evidence_is_the_mixture_of_likelihood_ratios(rate: float) -> None:
    for passed, n in ((0, 1), (3, 5), (20, 20), (50, 70), (0, 30)):

        def ratio(q: float, passed: int = passed, n: int = n) -> float:
            return float((q / rate) ** passed * ((1 - q) / (1 - rate)) ** (n - passed))

        above, below = integrate.quad(ratio, rate, 1)[0] / (1 - rate), integrate.quad(ratio, 0, rate)[0] / rate
        assert exp(log_evidence_above(passed, n, rate)) == pytest.approx(above, rel=1e-6)
        assert exp(log_evidence_below(passed, n, rate)) == pytest.approx(below, rel=1e-6)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.01, 0.99))
def test_each_result_moves_the_evidence_the_right_way(passed: int, failed: int, rate: float) -> None:
    n = passed + failed
    above, below = log_evidence_above(passed, n, rate), log_evidence_below(passed, n, rate)
    assert -inf < above < inf
    assert -inf < below < inf
    assert log_evidence_above(passed + 1, n + 1, rate) > above - 1e-9 > log_evidence_above(passed, n + 1, rate) - 2e-9
    assert log_evidence_below(passed + 1, n + 1, rate) - 2e-9 < below - 1e-9 < log_evidence_below(passed, n + 1, rate)
    assert log_evidence_above(passed, n, rate / 2) >= above - 1e-9
    assert log_evidence_below(passed, n, rate / 2) <= below + 1e-9


def test_a_rate_of_one_is_refuted_by_one_failure_and_never_shown() -> None:
    assert log_evidence_below(99, 100, 1.0) == inf
    assert log_evidence_below(100, 100, 1.0) == pytest.approx(-log(101))
    assert log_evidence_above(100, 100, 1.0) == -inf
    assert fed(Design(1.0, 0.0, 0.05), "1110").decision == "failed"


def test_boundaries_are_those_of_the_evidence() -> None:
    limits, threshold = boundaries(0.9, 0.1, 0.05), log(20)
    for n in range(1, 120):
        fail, passing = limits.at(n)
        assert [log_evidence_below(k, n, 0.9) >= threshold for k in range(n + 1)] == [k <= fail for k in range(n + 1)]
        assert [log_evidence_above(k, n, 0.8) >= threshold for k in range(n + 1)] == [
            k >= passing for k in range(n + 1)
        ]


@pytest.mark.parametrize(("p", "margin"), GATES)
def test_both_errors_stay_below_alpha_at_the_ends_of_the_margin(p: float, margin: float) -> None:
    for max_runs in (5, 30, 150):
        design = Design(p, margin, 0.05, 1, max_runs)
        assert sequential_ends(design, [p - margin]).passed <= 0.05
        assert sequential_ends(design, [p]).failed <= 0.05


def test_runs_go_on_for_long_and_still_err_rarely() -> None:
    design = Design(0.9, 0.0, 0.05)
    ends = sequential_ends(design, [0.9], most=250)
    assert 0 < ends.passed < 0.05
    assert 0 < ends.failed < 0.05
    assert ends.still_running > 0.9


def test_variations_of_different_difficulty_keep_the_error_rates() -> None:
    design = Design(0.9, 0.1, 0.05, 1, 40, variations=2)
    assert 0 < sequential_ends(design, [1.0, 0.6]).passed <= 0.05
    assert 0 < sequential_ends(design, [1.0, 0.8]).failed <= 0.05


def test_errors_of_others_make_no_decision_likelier() -> None:
    design = Design(0.9, 0.1, 0.05, 1, 40)
    for rate in (0.8, 0.9):
        without, with_errors = sequential_ends(design, [rate]), sequential_ends(design, [rate], errors=0.1)
        assert with_errors.passed < without.passed
        assert with_errors.failed < without.failed


@pytest.mark.parametrize(
    ("rate", "most"),
    [(0.5, 0.25), (0.8, 0.70), (0.9, 0.70), (0.99, 0.25)],
)
def test_it_needs_a_part_of_a_fixed_design(rate: float, most: float) -> None:
    assert sequential_ends(DESIGN, [rate]).runs <= most * 135


@pytest.mark.parametrize("min_runs", [1, 5, 10])
def test_the_estimate_has_no_bias(min_runs: int) -> None:
    design = Design(0.9, 0.1, 0.05, min_runs, 60)
    for rate in (0.3, 0.5, 0.8, 0.9, 0.99):
        assert sequential_ends(design, [rate]).estimate == pytest.approx(rate, abs=1e-9)


def test_the_estimate_varies_less_than_the_mean_of_the_first_runs() -> None:
    random = Random(5)
    design = DESIGN._replace(max_runs=60)
    estimates, first = [], []
    for _ in range(300):
        results = [random.random() < 0.9 for _ in range(60)]
        test = SequentialTest(design)
        for one in results:
            if not test.stop:
                test.add(one, one)
        estimates.append(test.estimate or 0.0)
        first.append(sum(results[:5]) / 5)
    assert sum(estimates) / 300 == pytest.approx(0.9, abs=0.02)
    assert sum((one - 0.9) ** 2 for one in estimates) < sum((one - 0.9) ** 2 for one in first) / 2


def test_the_estimate_is_the_first_runs_where_more_than_counts_decided() -> None:
    assert fed(DESIGN, "").estimate is None
    assert fed(DESIGN, "1101").estimate == 0.75
    assert fed(DESIGN, "1101111").estimate == 0.8
    assert fed(DESIGN, "x10x1").estimate == pytest.approx(2 / 3)
    assert fed(DESIGN, "xxxxx1").estimate is None
    two = Design(0.9, 0.1, 0.05, min_runs=2, max_runs=50, variations=2)
    assert fed(two, "1011" + "111").estimate == 0.75
    assert fed(two, "x1" + "10").estimate == 0.75  # the mean of 1 of 1 and 1 of 2: variations have equal weight


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_the_anytime_interval_holds_the_rate_at_every_moment(rate: float) -> None:
    # The interval fails to hold the rate exactly when one of two tests of that rate, each at 2.5 %, rejects it.
    ends = sequential_ends(Design(rate, 0.0, 0.025), [rate], most=250)
    assert ends.passed + ends.failed < 0.05
    for passed, n in ((3, 5), (40, 40), (0, 7), (61, 80), (9000, 10_000)):
        low, high = anytime_interval(passed, n)
        fail, passing = boundaries(rate, 0.0, 0.025).at(n)
        assert (rate <= low) == (passed >= passing)
        assert (rate >= high) == (passed <= fail)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 20))
def test_the_anytime_interval_holds_the_share(passed: int, failed: int, errors: int) -> None:
    n = passed + failed
    low, high = anytime_interval(passed, n, errors)
    assert 0 <= low <= high <= 1
    if n:
        assert low <= passed / n <= high
    inner = anytime_interval(passed, n + errors)
    assert low == pytest.approx(inner.low)
    assert high >= inner.high - 1e-9
    assert anytime_interval(failed, n) == pytest.approx([1 - one for one in reversed(anytime_interval(passed, n))])


def test_it_stops_when_nothing_can_be_decided_any_more() -> None:
    # Twenty passes don't show 0.9, and up to 13 of 20 refute it.
    design = Design(0.9, 0.0, 0.05, min_runs=3, max_runs=20)
    assert fed(design, "1" * 13).stop is None
    assert fed(design, "1" * 14).stop == Stop("futility")
    assert fed(design._replace(min_runs=17), "1" * 16).stop is None
    assert fed(Design(0.9, 0.1, 0.05, min_runs=4, max_runs=4), "0111").stop == Stop("max-runs")


def test_no_stop_before_min_runs_and_none_before_a_whole_run() -> None:
    design = Design(0.9, 0.1, 0.05, min_runs=8, max_runs=50)
    assert fed(design, "0" * 7).stop is None
    assert fed(design, "0" * 8).decision == "failed"
    by_two = Design(0.9, 0.1, 0.05, min_runs=1, max_runs=50, variations=2)
    assert fed(by_two, "0").stop is None
    assert fed(by_two, "00").decision == "failed"
    assert fed(by_two, "111").runs == 1


def test_results_after_the_stop_are_refused() -> None:
    test = fed(DESIGN, "00000")
    assert test.decision == "failed"
    with pytest.raises(ValueError, match="stopped after 5 runs"):
        test.add(True, True)
    with pytest.raises(ValueError, match="can't pass against the lower"):
        fed(DESIGN, "").add(True, False)


@pytest.mark.parametrize(
    "design", [DESIGN._replace(min_runs=0), DESIGN._replace(max_runs=4), DESIGN._replace(variations=0)]
)
def test_a_design_that_makes_no_sense_is_an_error(design: Design) -> None:
    with pytest.raises(ValueError, match="min_runs"):
        SequentialTest(design)


def test_the_stop_depends_on_counts_of_whole_runs_alone() -> None:
    assert decide_in_order([(True, True)] * 40, 0.9, 0.1, 0.05) == "passed"
    assert decide_in_order([(False, False)] * 6, 0.9, 0.1, 0.05) == "failed"
    assert decide_in_order([(False, True)] * 60, 0.9, 0.1, 0.05) == "inconclusive"
    assert decide_in_order([], 0.9, 0.1, 0.05) == "inconclusive"


@pytest.mark.parametrize(
    "design",
    [
        Design(0.7, 0.3, 0.2, min_runs=1, max_runs=8),
        Design(0.9, 0.1, 0.2, min_runs=2, max_runs=9),
        Design(0.7, 0.3, 0.2, min_runs=1, max_runs=4, variations=2),
    ],
)
def test_so_many_runs_can_go_in_parallel_without_a_surplus(design: Design) -> None:
    def fewest(so_far: str) -> int:
        test = fed(design, so_far)
        made = 0
        if not test.stop:
            made = 1 + min(fewest(so_far + "".join(run)) for run in product("01", repeat=design.variations))
        assert test.least_more_runs == made
        return made

    assert fewest("") >= 1


def _arrivals(random: Random, rate: float, parallel: int) -> Iterator[tuple[int, bool]]:
    """Runs as they end, with their number, `parallel` at a time: those that fail take five times as long."""
    running: list[tuple[float, int, bool]] = []
    clock, number = 0.0, 0
    while True:
        while len(running) < parallel:
            passed = random.random() < rate
            heapq.heappush(running, (clock + random.random() * (1 if passed else 5), number, passed))
            number += 1
        clock, ended, passed = heapq.heappop(running)
        yield ended, passed


def _share_passed(in_run_order: bool, rate: float, wanted: str) -> float:
    random = Random(f"{rate} {in_run_order}")
    rounds, counted = 1000, 0
    for _ in range(rounds):
        test, waiting, number = SequentialTest(DESIGN._replace(max_runs=80)), {}, 0
        for ended, passed in _arrivals(random, rate, parallel=16):
            waiting[ended if in_run_order else number] = passed
            while number in waiting and not test.stop:
                result = waiting.pop(number)
                test.add(result, result)
                number += 1
            if test.stop:
                counted += test.decision == wanted
                break
    return counted / rounds


def test_parallel_runs_of_uneven_speed_keep_the_error_rates_in_run_order() -> None:
    assert _share_passed(True, 0.8, "passed") < 0.05
    assert _share_passed(True, 0.9, "failed") < 0.05
    # In order of arrival, the quick runs that pass would come first and too many cases would pass.
    assert _share_passed(False, 0.8, "passed") > 0.10
