"""Calibration: formulas against scipy, statsmodels and formulas written out here; coverage by simulation."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from atp.stats.calibration import (
    Accuracy,
    LabelledVerdict,
    Share,
    VerdictCounts,
    allocate,
    corrected_rate,
    draw,
    effective_number,
    measure,
    reweighted,
)


def labelled(both_passed: int, only_people: int, only_judge: int, both_failed: int) -> list[LabelledVerdict]:
    """Labels of cases that are each another one."""
    table = {
        (True, True): both_passed,
        (False, True): only_people,
        (True, False): only_judge,
        (False, False): both_failed,
    }
    pairs = [pair for pair, count in table.items() for _ in range(count)]
    return [LabelledVerdict(case, judged, truth) for case, (judged, truth) in enumerate(pairs)]


TABLES = [(40, 5, 4, 11), (90, 0, 2, 8), (1, 1, 1, 1), (30, 0, 0, 30), (12, 30, 2, 5)]
tables = st.tuples(*[st.integers(0, 60)] * 4).filter(lambda table: sum(table) > 0)


@pytest.mark.parametrize("table", TABLES)
def test_rates_and_their_intervals_are_those_of_statsmodels(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    found = measure(labelled(*table), at_random=True)
    expected = {"agreement": (a + d, sum(table)), "tpr": (a, a + b), "tnr": (d, c + d)}
    for name, (holding, n) in expected.items():
        share = getattr(found, name)
        assert share.value == pytest.approx(holding / n)
        assert share.effective == pytest.approx(n)
        assert share.interval == pytest.approx(proportion_confint(holding, n, 0.05, method="beta"), abs=1e-9)
    assert (found.both_passed, found.only_people, found.only_judge, found.both_failed) == table


@pytest.mark.parametrize("table", TABLES)
def test_kappa_is_that_of_statsmodels(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table
    kappa = measure(labelled(*table), at_random=False).kappa
    assert kappa is not None
    assert kappa.value == pytest.approx(cohens_kappa([[a, b], [c, d]]).kappa)
    assert kappa.low <= kappa.value <= kappa.high <= 1


def test_there_is_no_kappa_where_both_always_say_the_same() -> None:
    assert measure(labelled(20, 0, 0, 0), at_random=True).kappa is None


@given(table=tables, scale=st.floats(0.1, 100))
def test_equal_weights_change_nothing(table: tuple[int, int, int, int], scale: float) -> None:
    plain = labelled(*table)
    one = measure(plain, at_random=True)
    other = measure([verdict._replace(weight=scale) for verdict in plain], at_random=True)
    for left, right in ((one.agreement, other.agreement), (one.tpr, other.tpr), (one.tnr, other.tnr)):
        assert (left is None) == (right is None)
        if left is not None and right is not None:
            assert (left.value, left.low, left.high) == pytest.approx((right.value, right.low, right.high), abs=1e-9)


@given(table=tables, weights=st.lists(st.floats(1, 50), min_size=2, max_size=2), cases=st.integers(1, 40))
def test_figures_are_possible_whatever_the_labels(
    table: tuple[int, int, int, int], weights: list[float], cases: int
) -> None:
    given_labels = [
        one._replace(weight=weights[one.judged], case=number % cases) for number, one in enumerate(labelled(*table))
    ]
    found = measure(given_labels, at_random=True)
    assert found.is_possible
    for share in (found.agreement, found.tpr, found.tnr):
        assert share is None or 0 < share.effective <= share.labels + 1e-9
    counts = VerdictCounts()
    for one in given_labels:
        counts.add(one.judged, 1)
    corrected = corrected_rate(counts, found)
    assert (corrected is not None) == found.is_informative
    assert corrected is None or 0 <= corrected.low <= corrected.rate <= corrected.high <= 1


def test_picked_labels_give_agreement_and_kappa_and_no_rates() -> None:
    found = measure(labelled(40, 1, 1, 40), at_random=False)
    assert found.agreement is not None
    assert found.kappa is not None
    assert (found.tpr, found.tnr, found.is_informative) == (None, None, False)
    assert corrected_rate(counts_of(80, 100), found) is None


def test_repeats_of_a_case_are_worth_less_than_other_cases() -> None:
    apart = [LabelledVerdict(case, case % 4 > 0, True) for case in range(40)]
    together = [one._replace(case=one.case // 10 if one.judged else 9) for one in apart if isinstance(one.case, int)]
    single, grouped = measure(apart, at_random=True).tpr, measure(together, at_random=True).tpr
    assert single is not None
    assert grouped is not None
    assert single.value == grouped.value
    assert grouped.effective < single.effective / 2
    assert grouped.low < single.low
    assert grouped.high > single.high


def test_where_all_labels_agree_an_unseen_mistake_may_weigh_as_much_as_any() -> None:
    """45 failed verdicts that stand for 2 each say little of how many of 900 passed ones should have failed."""
    verdicts = [LabelledVerdict(case, False, False, 2.0) for case in range(45)]
    verdicts += [LabelledVerdict(100 + case, True, True, 20.0) for case in range(45)]
    tnr = measure(verdicts, at_random=True).tnr
    assert tnr is not None
    assert tnr.value == 1
    assert tnr.effective == pytest.approx(45 * 2 / 20)


def counts_of(passed: int, judged: int, unjudged: int = 0) -> VerdictCounts:
    """Verdicts of cases that are each another one."""
    counts = VerdictCounts()
    for number in range(judged):
        counts.add(number < passed, 1)
    for _ in range(unjudged):
        counts.add(0, 0, 1)
    return counts


def share(holding: int, n: int) -> Share:
    low, high = proportion_confint(holding, n, 0.05, method="beta")
    return Share(value=holding / n, low=low, high=high, labels=n, effective=n)


def accuracy(positives: tuple[int, int], negatives: tuple[int, int]) -> Accuracy:
    n = positives[1] + negatives[1]
    return Accuracy(labels=n, cases=n, at_random=True, tpr=share(*positives), tnr=share(*negatives))


def lang_reiczigel(x: int, n: int, positives: tuple[int, int], negatives: tuple[int, int]) -> tuple[float, float]:
    """Confidence limits of a prevalence, as Lang and Reiczigel (2014) define them: equations 6, 7, 15 to 17."""
    z = norm.ppf(0.975)
    nap, nse, nsp = n + z**2, positives[1] + 2, negatives[1] + 2
    ap, se, sp = (x + z**2 / 2) / nap, (positives[0] + 1) / nse, (negatives[0] + 1) / nsp
    prevalence = (ap + sp - 1) / (se + sp - 1)
    dp = 2 * z**2 * (prevalence * se * (1 - se) / nse - (1 - prevalence) * sp * (1 - sp) / nsp)
    var = ap * (1 - ap) / nap + prevalence**2 * se * (1 - se) / nse + (1 - prevalence) ** 2 * sp * (1 - sp) / nsp
    half = z * sqrt(var) / (se + sp - 1)
    return max(prevalence + dp - half, 0), min(prevalence + dp + half, 1)


@pytest.mark.parametrize(
    ("x", "n", "positives", "negatives"),
    [
        (60, 100, (45, 50), (40, 50)),
        (460, 500, (90, 92), (30, 40)),
        (3, 50, (28, 30), (30, 30)),
        (9, 9, (8, 9), (9, 9)),
    ],
)
def test_the_corrected_rate_is_rogan_and_gladens_with_lang_and_reiczigels_limits(
    x: int, n: int, positives: tuple[int, int], negatives: tuple[int, int]
) -> None:
    found = corrected_rate(counts_of(x, n), accuracy(positives, negatives))
    assert found is not None
    tpr, tnr = positives[0] / positives[1], negatives[0] / negatives[1]
    assert found.rate == pytest.approx(min(max((x / n + tnr - 1) / (tpr + tnr - 1), 0), 1))
    low, high = lang_reiczigel(x, n, positives, negatives)
    assert (found.low, found.high) == pytest.approx((min(low, found.rate), max(high, found.rate)))


@pytest.mark.parametrize(
    ("positives", "negatives"),
    [((50, 50), (1, 2)), ((30, 60), (30, 60)), ((20, 60), (42, 60)), ((3, 3), (3, 3))],
)
def test_nothing_is_corrected_unless_the_judge_is_shown_better_than_chance(
    positives: tuple[int, int], negatives: tuple[int, int]
) -> None:
    found = accuracy(positives, negatives)
    assert not found.is_informative
    assert corrected_rate(counts_of(60, 100), found) is None


def test_nothing_is_corrected_without_labels_of_both_kinds_or_without_verdicts() -> None:
    assert corrected_rate(counts_of(5, 10), measure(labelled(50, 0, 0, 0), at_random=True)) is None
    assert corrected_rate(counts_of(5, 10), measure([], at_random=True)) is None
    assert corrected_rate(counts_of(0, 0, 3), accuracy((45, 50), (40, 50))) is None


def test_checks_that_were_not_judged_widen_the_interval_to_both_sides() -> None:
    measured = accuracy((95, 100), (90, 100))
    plain, open_ones = (corrected_rate(counts_of(60, 100, unjudged), measured) for unjudged in (0, 30))
    assert plain is not None
    assert open_ones is not None
    assert plain.rate == open_ones.rate
    assert open_ones.low < plain.low - 0.05
    assert open_ones.high > plain.high + 0.05


@given(
    cases=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda one: (min(one), max(one))), min_size=2)
)
def test_streamed_counts_are_those_of_the_whole_list(cases: list[tuple[int, int]]) -> None:
    counts = VerdictCounts()
    for passed, judged in cases:
        counts.add(passed, judged)
    n = sum(judged for _, judged in cases)
    rate = sum(passed for passed, _ in cases) / n
    assert counts.rate == pytest.approx(rate)
    squares = sum((passed - rate * judged) ** 2 for passed, judged in cases)
    expected = min(max(effective_number(rate, squares / n**2, n, len(cases)), len(cases)), n)
    if squares > 1e-9:
        assert counts.effective == pytest.approx(expected)
    assert len(cases) <= counts.effective <= n


def test_single_values_count_as_what_they_are() -> None:
    for n in (2, 10, 100):
        assert effective_number(0.3, 0.3 * 0.7 / n, n, n) == pytest.approx(n)


@given(
    sizes=st.dictionaries(st.integers(0, 20), st.integers(0, 300), max_size=6),
    wanted=st.integers(1, 400),
    seed=st.integers(),
)
def test_a_sample_is_of_the_size_asked_for_and_its_weights_add_up(
    sizes: dict[int, int], wanted: int, seed: int
) -> None:
    strata = {name: [(name, number) for number in range(size)] for name, size in sizes.items()}
    drawn = draw(strata, wanted, Random(seed))
    assert len(drawn) == min(wanted, sum(sizes.values()))
    assert len({item for _, _, item in drawn}) == len(drawn)
    for name, size in sizes.items():
        weights = [weight for stratum, weight, item in drawn if stratum == item[0] == name]
        if weights:
            assert sum(weights) == pytest.approx(size)
    assert drawn == draw(strata, wanted, Random(seed))


def test_the_rarer_verdict_has_its_part_of_a_sample() -> None:
    assert allocate({"passed": 900, "failed": 100}, 100) == {"passed": 90, "failed": 10}
    assert allocate({"passed": 980, "failed": 20}, 100) == {"passed": 90, "failed": 10}
    assert allocate({"passed": 995, "failed": 5}, 100) == {"passed": 95, "failed": 5}
    assert allocate({"passed": 3, "failed": 0}, 100) == {"passed": 3}


def test_labelled_items_stand_for_those_that_nobody_labelled() -> None:
    drawn = [("a", 2.0, True), ("a", 2.0, False), ("b", 5.0, True), ("c", 1.0, False)]
    assert reweighted(drawn) == {"a": 4.0, "b": 5.0}


def simulate(
    dice: Random, *, good: float, tpr: float, tnr: float, cases: int, runs: int, labels: int, alike: float
) -> tuple[Accuracy, VerdictCounts]:
    """A run judged at known error rates, of which a sample is labelled rightly.

    `alike`: how much the runs of a case are alike; 0 is not at all.
    """
    strata: dict[bool, list[tuple[int, bool, bool]]] = {True: [], False: []}
    counts = VerdictCounts()
    for case in range(cases):
        rate = dice.betavariate(good * (1 / alike - 1), (1 - good) * (1 / alike - 1)) if alike else good
        passed = 0
        for _ in range(runs):
            truth = dice.random() < rate
            judged = dice.random() < (tpr if truth else 1 - tnr)
            passed += judged
            strata[judged].append((case, judged, truth))
        counts.add(passed, runs)
    drawn = draw(strata, labels, dice)
    verdicts = [LabelledVerdict(*item, weight=weight) for _, weight, item in drawn]
    return measure(verdicts, at_random=True), counts


TRIALS = 120


@pytest.mark.parametrize(
    ("good", "tpr", "tnr", "cases", "runs", "alike"),
    [(0.8, 0.95, 0.9, 200, 1, 0.0), (0.5, 0.85, 0.7, 200, 1, 0.0), (0.7, 0.9, 0.85, 50, 4, 0.4)],
)
def test_measured_and_corrected_rates_hold_the_truth(
    good: float, tpr: float, tnr: float, cases: int, runs: int, alike: float
) -> None:
    """At least 95% of the intervals hold what they are of; 5 more misses than that have a probability below 1%."""
    dice = Random(f"{good} {tpr} {tnr} {alike}")
    misses = {"tpr": 0, "tnr": 0, "corrected": 0, "raw": 0}
    for _ in range(TRIALS):
        found, counts = simulate(dice, good=good, tpr=tpr, tnr=tnr, cases=cases, runs=runs, labels=100, alike=alike)
        assert found.tpr is not None
        assert found.tnr is not None
        misses["tpr"] += not found.tpr.low <= tpr <= found.tpr.high
        misses["tnr"] += not found.tnr.low <= tnr <= found.tnr.high
        corrected = corrected_rate(counts, found)
        misses["corrected"] += corrected is not None and not corrected.low <= good <= corrected.high
        misses["raw"] += abs((counts.rate or 0.0) - good) > 0.02
    allowed = 0.05 * TRIALS + 6
    assert max(misses["tpr"], misses["tnr"], misses["corrected"]) <= allowed
    assert misses["raw"] > allowed, "a raw rate would do as well: the simulation shows nothing"
