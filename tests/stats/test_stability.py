"""Stability over runs (document 4), and what the trials of a case come to (rulings §1)."""

import statistics
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.stats.stability import answer_key, by_variation, case_score, case_status, classify, stability
from atp.suite.result import CaseResult, Status, Transcript, TrialResult, Turn


def trial(status: Status = "passed", output: Any = None, **more: Any) -> TrialResult:
    turns = [] if output is None else [Turn(turn=1, input="x", output=output)]
    return TrialResult(key="k", agent="a", case="c", status=status, transcript=Transcript(turns=turns), **more)


ORDER: list[Status] = ["failed", "timeout", "error", "blocked", "cancelled", "passed"]


@pytest.mark.parametrize(("worse", "better"), [(a, b) for i, a in enumerate(ORDER) for b in ORDER[i:]])
def test_a_case_takes_the_worst_of_its_trials(worse: Status, better: Status) -> None:
    for trials in permutations([trial(worse), trial(better), trial("passed")]):
        assert case_status(trials) == worse


@pytest.mark.parametrize(
    ("statuses", "rate", "status"),
    [
        (["passed", "failed"], 0.5, "passed"),
        (["passed", "failed"], 0.51, "failed"),
        (["passed", "error"], 0.5, "passed"),
        (["passed", "passed", "failed"], 2 / 3, "passed"),
        (["passed"] * 7 + ["failed"] * 3, 0.7, "passed"),
        (["passed"] * 6 + ["failed"] * 4, 0.7, "failed"),
        (["error", "error"], 0.0, "passed"),
        (["error", "timeout"], 0.1, "timeout"),
        (["passed", "blocked"], 1.0, "blocked"),
        # Every trial stays in the denominator.
        (["passed", "error", "cancelled", "blocked"], 0.5, "error"),
        ([], 0.5, "skipped"),
    ],
)
def test_with_a_pass_rate_enough_is_enough(statuses: list[Status], rate: float, status: Status) -> None:
    assert case_status([trial(one) for one in statuses], rate) == status


def test_min_score_is_one_for_the_mean() -> None:
    trials = [trial(score=60.0), trial(score=80.0), trial("error")]
    assert case_score(trials) == 70
    assert case_status(trials[:2], min_score=70) == "passed"
    assert case_status(trials[:2], min_score=71) == "failed"
    assert case_status([trial()], min_score=1) == "failed"
    assert case_status(trials, min_score=99) == "error"
    assert case_score([trial("error")]) is None


def test_document_4_s_example() -> None:
    durations = [234.0, 210.0, 256.0]
    found = stability([trial(duration_ms=one, output={"keywords": ["AI"]}) for one in durations])
    assert (found.runs, found.passed, found.failed, found.pass_rate) == (3, 3, 0, 100)
    assert (found.consistency, found.output_consistency, found.stable) == (1, 1, True)
    assert found.classification == "stable"
    assert (found.min_duration_ms, found.max_duration_ms) == (210, 256)
    assert found.avg_duration_ms == pytest.approx(statistics.fmean(durations))
    assert found.std_deviation_ms == pytest.approx(statistics.pstdev(durations))
    two_of_three = stability([trial(), trial("failed"), trial()])
    assert round(two_of_three.consistency, 2) == 0.67
    assert round(two_of_three.pass_rate, 1) == 66.7
    assert two_of_three.stable is False


@pytest.mark.parametrize(
    ("statuses", "consistency"),
    [
        (["passed"], 1),
        (["failed", "failed"], 1),
        (["passed", "failed"], 0.5),
        (["passed", "failed", "timeout"], 1 / 3),
        (["error", "error", "passed", "failed"], 0.5),
    ],
)
def test_consistency_is_the_share_of_the_most_frequent_verdict(statuses: list[Status], consistency: float) -> None:
    assert stability([trial(one) for one in statuses]).consistency == pytest.approx(consistency)


@pytest.mark.parametrize(
    ("outputs", "consistency"),
    [
        (["a", "a", "b"], 2 / 3),
        (["a b", " a\n b "], 1),
        (["A", "a"], 0.5),
        ([{"a": 1, "b": 2}, '{"b": 2.0, "a": 1}'], 1),
        ([{"a": 1}, {"a": True}], 0.5),
        (["1", 1], 1),
        (["x", None, None], 1 / 3),
        ([None, None], None),
    ],
)
def test_output_consistency_is_that_of_the_normalised_answer(outputs: list[Any], consistency: float | None) -> None:
    found = stability([trial(output=one) for one in outputs]).output_consistency
    assert found == (None if consistency is None else pytest.approx(consistency))


def test_text_that_looks_like_a_key_is_not_json() -> None:
    assert answer_key('json {"a":1}') != answer_key({"a": 1})


@pytest.mark.parametrize(
    ("rate", "name"),
    [
        (100, "stable"),
        (99.99, "mostly_stable"),
        (80, "mostly_stable"),
        (79.99, "unstable"),
        (50, "unstable"),
        (49.99, "highly_unstable"),
        (0, "highly_unstable"),
    ],
)
def test_classes(rate: float, name: str) -> None:
    assert classify(rate) == name


@given(st.lists(st.sampled_from(ORDER), min_size=1, max_size=20))
def test_figures_fit_together(statuses: list[Status]) -> None:
    found = stability([trial(one, output=one) for one in statuses])
    assert found.passed + found.failed == found.runs == len(statuses)
    assert found.consistency == max(statuses.count(one) for one in statuses) / len(statuses)
    assert found.output_consistency == found.consistency
    assert found.stable == (case_status([trial(one) for one in statuses]) == "passed")
    assert found.stable == (found.pass_rate == 100)


def test_variations_are_an_axis_of_their_own() -> None:
    trials = [trial("passed"), trial("passed"), trial("failed", variation=1), trial("passed", variation=1)]
    found = by_variation(CaseResult(agent="a", case="c", trials=trials))
    assert [one.pass_rate for one in found.values()] == [100, 50]


def test_a_case_that_was_cut_short_is_not_stable() -> None:
    found = stability([trial(), trial()], planned=5)
    assert (found.runs, found.planned, found.passed, found.failed, found.pass_rate) == (2, 5, 2, 0, 40.0)
    assert (found.stable, found.classification) == (False, None)
    whole = stability([trial(), trial()], planned=2)
    assert (whole.stable, whole.classification) == (True, "stable")


def test_only_the_variation_that_was_cut_short_is_unknown() -> None:
    trials = [trial(variation=0, run=1), trial(variation=0, run=2), trial(variation=1, run=1)]
    case = CaseResult(agent="a", case="c", trials=trials, planned=6, planned_runs=2)
    found = by_variation(case)
    assert [(one.stable, one.pass_rate) for one in found.values()] == [(True, 100.0), (False, 50.0)]
    assert (case.missing, case.variations, case.repeated) == (3, 3, True)
