"""The flip rate of a judge, and its interval, which takes pairs with a judging in common for one observation."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.stats.self_consistency import Flips, check_flips, judge_changed, trial_flips
from atp.suite.result import Rejudged, Status, TrialResult, Verdict


def trial(*statuses: Status) -> TrialResult:
    first, *further = statuses
    verdict = Verdict(type="expectation", name="kind", outcome="passed" if first == "passed" else "failed", judged=True)
    exact = Verdict(type="contains", outcome="passed")
    again = [Rejudged(status=one, outcomes=["passed", "passed" if one == "passed" else "failed"]) for one in further]
    return TrialResult(key="k", agent="a", case="c", status=first, verdicts=[exact, verdict], rejudged=again)


def test_pairs_of_judgings_that_differ_are_counted() -> None:
    flips = trial_flips([trial("passed", "failed", "passed"), trial("passed"), trial("passed", "passed")])
    assert (flips.judgings, flips.pairs, flips.differing, flips.independent) == (5, 4, 2, 2)
    assert flips.rate == 0.5


def test_a_judging_that_came_to_nothing_is_no_other_verdict() -> None:
    assert trial_flips([trial("passed", "error")]).pairs == 0
    assert judge_changed(trial("passed", "error")) is None


@pytest.mark.parametrize(
    ("statuses", "changed"), [(("passed",), None), (("passed", "passed"), False), (("failed", "passed"), True)]
)
def test_whether_the_judge_changed_its_verdict(statuses: tuple[Status, ...], changed: bool | None) -> None:
    assert judge_changed(trial(*statuses)) is changed


def test_only_checks_that_a_judge_decides_are_listed() -> None:
    (found,) = check_flips([trial("passed", "failed")])
    assert (found.check, found.rate) == ("expectation: kind", 1.0)


@given(st.lists(st.lists(st.sampled_from(["passed", "failed", "unjudged"]), max_size=8), max_size=8))
def test_the_interval_holds_the_rate(judgings: list[list[str]]) -> None:
    flips = Flips()
    for one in judgings:
        flips.add(one)
    low, high = flips.interval
    assert 0 <= low <= high <= 1
    assert flips.rate is None or low <= flips.rate <= high


@pytest.mark.parametrize(("share", "judgings"), [(0.5, 5), (0.7, 10), (0.9, 5), (0.9, 10), (0.97, 5)])
def test_the_interval_covers_the_true_flip_rate(share: float, judgings: int) -> None:
    random, covered, runs = Random(7), 0, 400
    for _ in range(runs):
        flips = Flips()
        for _ in range(10):
            flips.add(["passed" if random.random() < share else "failed" for _ in range(judgings)])
        covered += flips.interval.low <= 2 * share * (1 - share) <= flips.interval.high
    assert covered / runs > 0.93
