"""Comparison: its tests against scipy and statsmodels, its false alarms and its power by simulation."""

from itertools import product
from math import log
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep
from tests.stats.exact import sequential_ends

from atp.stats import compare
from atp.stats.compare import (
    Counts,
    case_p_value,
    classify_cases,
    classify_overall,
    difference_interval,
    discoveries,
    few_cases_interval,
    fisher,
    holm,
    is_non_inferior,
    least_p_value,
    log_ratios,
    newcombe,
    observed,
    overall_interval,
    overall_p_value,
    random_sides,
    shift,
    sign_flip,
    signed_rank,
)
from atp.stats.sequential import Design


@st.composite
def counts(draw: st.DrawFn, most: int = 40) -> Counts:
    judged = draw(st.integers(1, most))
    return Counts(draw(st.integers(0, judged)), judged)


@given(st.lists(st.integers(-5, 5).map(lambda one: one / 5), max_size=9))
def test_the_overall_test_counts_every_flip_of_signs(differences: list[float]) -> None:
    flips = list(product((-1, 1), repeat=len(differences)))
    far = abs(sum(differences)) - 1e-9
    sums = [abs(sum(sign * one for sign, one in zip(flip, differences, strict=True))) for flip in flips]
    assert sign_flip(differences) == pytest.approx(sum(one >= far for one in sums) / len(flips))


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (5, 0), (6, 0), (3, 9), (40, 60), (700, 640)])
def test_the_overall_test_is_mcnemars_on_single_runs(only_a: int, only_b: int) -> None:
    expected = mcnemar([[7, only_a], [only_b, 7]], exact=True).pvalue
    assert sign_flip([-1.0] * only_a + [1.0] * only_b + [0.0] * 10) == pytest.approx(min(1.0, expected))


def test_random_flips_come_near_to_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(5)
    differences = [random.randint(-3, 5) / 7 for _ in range(20)]
    exact = sign_flip(differences)
    monkeypatch.setattr(compare, "MOST_EXACT", 5)
    assert sign_flip(differences) == pytest.approx(exact, abs=0.004)
    assert sign_flip(differences) == sign_flip(differences)


def test_the_smallest_p_value_of_random_flips_is_not_0() -> None:
    assert sign_flip([-0.5] * 20 + [-1.0] * 20) == 1 / 100_001


def test_runs_of_different_number_are_given_to_the_sides_at_random() -> None:
    """A perfect baseline of one run a case, and cases that pass 19 of 20 times: flips of signs alone see a decline."""
    pairs = [(Counts(1, 1), Counts(4 if one < 7 else 5, 5)) for one in range(30)]
    differences = [b.passed / b.judged - 1 for _, b in pairs]
    assert sign_flip(differences) < 0.05
    assert random_sides(pairs) > 0.2
    assert overall_p_value(pairs, differences) == random_sides(pairs)
    many = [(Counts(800, 1000), Counts(1500, 2000))] * 2
    assert random_sides(many) < 0.001


@given(counts(), counts())
def test_fishers_test_agrees_with_scipy(a: Counts, b: Counts) -> None:
    table = np.array([[a.passed, a.judged - a.passed], [b.passed, b.judged - b.passed]])
    assert fisher(a, b) == pytest.approx(stats.fisher_exact(table).pvalue, abs=1e-12)
    passed = a.passed + b.passed
    every = [
        fisher(Counts(one, a.judged), Counts(passed - one, b.judged))
        for one in range(a.judged + 1)
        if 0 <= passed - one <= b.judged
    ]
    assert least_p_value(a, b) == min(every)


@given(counts(), counts())
def test_the_interval_of_a_difference_agrees_with_statsmodels(a: Counts, b: Counts) -> None:
    expected = confint_proportions_2indep(b.passed, b.judged, a.passed, a.judged, method="newcomb", compare="diff")
    assert newcombe(a, b) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
@settings(max_examples=30)
def test_corrections_agree_with_statsmodels(p_values: list[float]) -> None:
    """Where each test could have any p-value, Gilbert's procedure is Benjamini and Hochberg's."""
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    expected = multipletests(p_values, alpha=0.05, method="fdr_bh")[0]
    assert discoveries(p_values, [0.0] * len(p_values)) == list(expected)


def test_one_case_of_a_hundred_that_breaks_is_found() -> None:
    same = (Counts(5, 5), Counts(5, 5))
    broken = (Counts(5, 5), Counts(0, 5))
    found = classify_cases([same] * 99 + [broken])
    assert [kind for kind, _ in found] == ["same"] * 99 + ["regressed"]
    assert found[-1][1] == pytest.approx(2 / 252)
    assert not any(multipletests([p for _, p in found], alpha=0.05, method="fdr_bh")[0])


def test_no_case_regresses_with_fewer_than_four_runs_on_a_side() -> None:
    assert classify_cases([(Counts(3, 3), Counts(0, 3))])[0][0] == "inconclusive"
    assert classify_cases([(Counts(100, 100), Counts(0, 3))])[0][0] == "inconclusive"
    assert classify_cases([(Counts(4, 4), Counts(0, 4))])[0][0] == "regressed"
    assert classify_cases([(Counts(0, 4), Counts(4, 4))])[0][0] == "improved"


AUTO = Design(0.9, 0.1, 0.05, min_runs=5, max_runs=80)


def _found(rate_a: float, rate_b: float, level: float) -> float:
    """How likely a case of `--runs auto` is to be called worse or better in B, at a level."""
    ends = [sequential_ends(AUTO, [rate]).counts for rate in (rate_a, rate_b)]
    return sum(
        one * other
        for (passed_a, runs_a), one in ends[0].items()
        for (passed_b, runs_b), other in ends[1].items()
        if case_p_value(Counts(passed_a, runs_a, True), Counts(passed_b, runs_b, True)) <= level
    )


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99])
def test_runs_that_were_stopped_by_their_results_raise_no_more_false_alarms(rate: float) -> None:
    """Fisher's test, which takes the numbers of runs for given, would raise 20% at a rate of 0.85 and a level of 5%."""
    assert _found(rate, rate, 0.05) <= 0.05
    assert _found(rate, rate, 0.01) <= 0.01


def test_a_case_that_breaks_is_found_with_runs_that_were_stopped_by_their_results() -> None:
    assert _found(0.99, 0.5, 0.05) >= 0.7
    assert classify_cases([(Counts(20, 20, True), Counts(0, 5, True))])[0][0] == "regressed"
    assert classify_cases([(Counts(0, 5, True), Counts(20, 20))])[0][0] == "improved"


def test_the_interval_of_a_difference_holds_at_any_stop() -> None:
    a, b = Counts(20, 20, True), Counts(6, 10)
    low, high = difference_interval(a, b)
    assert low < newcombe(a, b).low < -0.4 < newcombe(a, b).high < high


def test_a_margin_makes_near_rates_the_same() -> None:
    near = [(Counts(950, 1000), Counts(945, 1000))]
    assert classify_cases(near)[0][0] == "inconclusive"
    assert classify_cases(near, margin=0.03)[0][0] == "same"
    assert classify_cases(near, margin=0.02)[0][0] == "inconclusive"


def test_the_overall_class() -> None:
    worse = [-0.2] * 6 + [0.0] * 6
    interval = overall_interval(worse, [5] * 12)
    assert interval is not None
    assert interval.low < -0.1 < interval.high < 0
    assert classify_overall(worse, sign_flip(worse), interval) == "regressed"
    assert classify_overall([-one for one in worse], sign_flip(worse), interval) == "improved"
    few = [-0.2] * 5 + [0.0] * 7
    assert classify_overall(few, sign_flip(few), overall_interval(few, [5] * 12)) == "inconclusive"
    alike = [0.0] * 30
    interval = overall_interval(alike, [20] * 30)
    assert interval is not None
    assert interval == pytest.approx((-0.098, 0.098), abs=0.001)  # not without width: other cases may differ
    assert classify_overall(alike, 1.0, interval) == "same"
    assert is_non_inferior(interval, 0.1)
    assert not is_non_inferior(interval, 0.05)
    assert overall_interval([0.0] * 4, [5] * 4) is None
    assert few_cases_interval([(Counts(9, 10), Counts(4, 10))]) == newcombe(Counts(9, 10), Counts(4, 10))
    assert few_cases_interval([(Counts(190, 200), Counts(188, 200))] * 2) == pytest.approx((-0.043, 0.023), abs=0.001)
    assert not is_non_inferior(None, 0.5)
    assert [observed(one) for one in (-0.1, 0.0, 0.1)] == ["worse", "equal", "better"]


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=120))
@settings(max_examples=60)
def test_the_signed_rank_test_agrees_with_scipy(values: list[int]) -> None:
    nonzero = [float(one) for one in values if one]
    if not nonzero:
        assert signed_rank(values) == 1
        return
    if len(nonzero) > 50:
        expected = stats.wilcoxon(nonzero, method="approx", correction=True).pvalue
    elif len({abs(one) for one in nonzero}) == len(nonzero):
        expected = stats.wilcoxon(nonzero, method="exact").pvalue
    else:  # scipy counts out ties only by permutation
        if len(nonzero) > 10:
            return
        expected = stats.wilcoxon(nonzero, method=stats.PermutationMethod()).pvalue
    assert signed_rank(values) == pytest.approx(min(1.0, expected), abs=1e-9)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=40))
def test_the_shift_is_the_median_of_the_means_of_pairs(values: list[float]) -> None:
    means = sorted((one + other) / 2 for place, one in enumerate(values) for other in values[place:])
    count = len(means)
    found = shift(values)
    assert found is not None
    assert found.estimate == pytest.approx((means[(count - 1) // 2] + means[count // 2]) / 2, abs=1e-9)
    assert (found.interval is None) == (len(values) < 6)
    if found.interval is not None:
        assert found.interval.low <= found.estimate + 1e-9 <= found.interval.high + 2e-9
        assert any(abs(found.interval.low - one) < 1e-9 for one in means)


def test_the_interval_of_a_shift_has_its_coverage() -> None:
    random = Random(3)
    for cases in (6, 20, 80):
        covered = 0
        for _ in range(300):
            found = shift([random.gauss(0.3, 1) for _ in range(cases)])
            assert found is not None
            assert found.interval is not None
            covered += found.interval.low <= 0.3 <= found.interval.high
        assert covered >= 0.92 * 300


def test_ratios() -> None:
    assert log_ratios([(1, 2), (4, 2)]) == pytest.approx([log(2), -log(2)])
    assert log_ratios([(1, 2), (0, 2)]) is None
    assert shift([]) is None


def _passed(random: Random, rate: float, runs: int) -> Counts:
    return Counts(sum(random.random() < rate for _ in range(runs)), runs)


@pytest.mark.parametrize(("runs_a", "runs_b"), [(1, 1), (5, 5), (20, 20), (20, 5), (1, 5)])
@pytest.mark.parametrize("drift", [0.0, 0.25])
def test_false_alarms(runs_a: int, runs_b: int, drift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 cases that changed in nothing, or each a little to either side; `bench/bench_compare.py` has the figures."""
    monkeypatch.setattr(compare, "FLIPS", 500)
    random, repeats = Random(7), 100
    overall = by_case = covered = 0.0
    for _ in range(repeats):
        pairs, differences, true = [], [], 0.0
        for _ in range(30):
            rate = random.betavariate(4, 1)
            change = random.choice((-1, 1)) * min(drift, rate, 1 - rate)
            a, b = _passed(random, rate, runs_a), _passed(random, rate + change, runs_b)
            pairs.append((a, b))
            differences.append(b.passed / b.judged - a.passed / a.judged)
            true += change / 30
        p_value = overall_p_value(pairs, differences)
        overall += p_value <= 0.05
        interval = overall_interval(differences, [min(runs_a, runs_b)] * 30)
        assert interval is not None
        covered += interval.low <= true <= interval.high
        if not drift:
            by_case += any(kind in ("regressed", "improved") for kind, _ in classify_cases(pairs))
    # Of 100 repeats, a true rate of 5% gives at most 10 in all but 1 of 100 seeds.
    assert overall <= 10
    assert by_case <= 10
    assert covered >= 90


@pytest.mark.parametrize(("cases", "runs"), [(1, 10), (2, 5), (4, 20)])
def test_the_interval_of_few_cases_has_its_coverage(cases: int, runs: int) -> None:
    random, repeats, covered = Random(17), 400, 0
    for _ in range(repeats):
        rates = [(random.random(), random.random()) for _ in range(cases)]
        interval = few_cases_interval([(_passed(random, a, runs), _passed(random, b, runs)) for a, b in rates])
        covered += interval.low <= sum(b - a for a, b in rates) / cases <= interval.high
    assert covered >= 0.92 * repeats


@pytest.mark.parametrize(("cases", "runs"), [(30, 1), (30, 5), (30, 20), (100, 5)])
def test_a_margin_is_rarely_shown_wrongly(cases: int, runs: int) -> None:
    """A never failed, B fails so often that it is just as much worse as the margin."""
    random, repeats, shown = Random(13), 300, 0
    for _ in range(repeats):
        differences = [_passed(random, 0.9, runs).passed / runs - 1 for _ in range(cases)]
        shown += is_non_inferior(overall_interval(differences, [runs] * cases), 0.1)
    assert shown <= 0.065 * repeats  # 2.5% are promised in the long run; a skewed sample gives up to 4.5%


def test_power() -> None:
    random = Random(11)
    found = 0
    for _ in range(40):
        rates = [random.betavariate(4, 1) for _ in range(30)]
        pairs = [(_passed(random, rate, 20), _passed(random, max(0.0, rate - 0.15), 20)) for rate in rates]
        differences = [b.passed / b.judged - a.passed / a.judged for a, b in pairs]
        found += overall_p_value(pairs, differences) <= 0.05
    assert found >= 38
