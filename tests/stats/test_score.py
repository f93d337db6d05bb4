"""The score of a trial (rulings §2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.checks.case_checks import check_case
from atp.checks.evidence import Evidence
from atp.stats.score import below, score
from atp.suite.case import Case, Limits, Weights
from atp.suite.result import Artifact, ToolCall, Transcript, TrialResult, Turn, Usage, Verdict


def verdict(outcome: str = "passed", **more: Any) -> Verdict:
    return Verdict(outcome=outcome, **{"type": "contains", **more})  # type: ignore[arg-type]


def judged(value: float, **more: Any) -> Verdict:
    return verdict("passed" if value >= 0.7 else "failed", type="llm_eval", judged=True, score=value, **more)


def trial(verdicts: list[Verdict], **transcript: Any) -> TrialResult:
    return TrialResult(key="k", agent="a", case="c", verdicts=verdicts, transcript=Transcript(**transcript))


def case(limits: dict[str, Any] | None = None, scoring: Weights | None = None) -> Case:
    return Case(id="c", limits=Limits(**(limits or {})), scoring=scoring)


def test_all_four_dimensions() -> None:
    result = trial(
        [judged(0.8), verdict("passed"), verdict("failed")],
        tool_calls=[ToolCall(name="a")] * 4,
        usage=Usage(cost_usd=0.25),
    )
    found = score(result, case({"max_steps": 10, "budget_usd": 1.0}))
    assert found.dimensions == pytest.approx({"quality": 0.8, "completeness": 2 / 3, "efficiency": 0.6, "cost": 0.75})
    assert found.value == pytest.approx(100 * (0.4 * 0.8 + 0.3 * 2 / 3 + 0.2 * 0.6 + 0.1 * 0.75))
    assert found.left_out == {}


def test_a_dimension_without_data_is_left_out_and_the_weights_rescaled() -> None:
    found = score(trial([verdict("passed"), verdict("failed")]), case())
    assert found.dimensions == {"completeness": 0.5}
    assert found.value == 50
    assert found.left_out == {
        "quality": "no judged or behavioural checks",
        "efficiency": "no max_steps",
        "cost": "no budget_usd or max_tokens",
    }


def test_a_missing_metric_earns_no_marks() -> None:
    limited = case({"max_steps": 10, "max_tokens": 100, "budget_usd": 1.0})
    silent = score(trial([verdict("failed")]), limited)
    assert silent.value == 0
    assert silent.dimensions == {"completeness": 0}
    assert silent.left_out["efficiency"] == "the agent reported no steps"
    assert silent.left_out["cost"] == "the agent reported no cost"


def test_nothing_to_score_is_no_score() -> None:
    assert score(trial([]), case()).value is None
    assert score(trial([verdict(weight=0)]), case()).value is None
    weights = Weights(quality_weight=1, completeness_weight=0, efficiency_weight=0, cost_weight=0)
    assert score(trial([verdict()]), case(scoring=weights)).value is None


@pytest.mark.parametrize(
    ("verdicts", "quality"),
    [
        ([judged(0.8), judged(0.4)], 0.6),
        ([judged(0.8, weight=3), judged(0.4, weight=1)], 0.7),
        ([verdict("passed", type="behavior")], 1.0),
        ([verdict("failed", type="behavior")], 0.0),
        ([verdict("failed", type="behavior", score=0.5)], 0.5),
        ([verdict("passed", type="script", judged=True)], 1.0),
        ([verdict("failed", type="any_of", parts=[verdict("failed", type="behavior")])], 0.0),
        ([verdict("passed")], None),
        ([judged(0.8), verdict("unjudged", type="llm_eval", judged=True)], 0.8),
    ],
)
def test_quality_is_the_mean_score_of_judged_and_behavioural_checks(
    verdicts: list[Verdict], quality: float | None
) -> None:
    found = score(trial(verdicts, usage=Usage(steps=1)), case()).dimensions.get("quality")
    assert found == (None if quality is None else pytest.approx(quality))


@pytest.mark.parametrize(
    ("verdicts", "quality"),
    [
        ([verdict("passed", type="behavior")], None),
        ([verdict("passed", type="all_of", parts=[verdict("passed", type="behavior")])], None),
        ([verdict("failed", type="behavior")], 0.0),
        ([verdict("passed", type="behavior"), judged(0.5)], 0.5),
    ],
)
def test_behaviour_that_nobody_saw_is_no_mark_in_the_agents_favour(
    verdicts: list[Verdict], quality: float | None
) -> None:
    found = score(trial(verdicts), case())
    assert found.dimensions.get("quality") == quality
    assert found.left_out.get("quality") == (
        "the agent reported no tool calls, events or steps" if quality is None else None
    )


UNSEEN = verdict("passed", type="behavior")


@pytest.mark.parametrize(
    ("verdicts", "completeness"),
    [
        ([UNSEEN], None),
        ([UNSEEN, UNSEEN], None),
        ([UNSEEN, verdict("passed"), verdict("failed")], 0.5),
        ([UNSEEN, verdict("failed", type="behavior")], 0.0),
        ([verdict("passed", type="all_of", parts=[UNSEEN, UNSEEN])], None),
        ([verdict("passed", type="any_of", parts=[UNSEEN, verdict("failed")])], None),
        ([verdict("passed", type="all_of", parts=[UNSEEN, verdict("passed")])], 1.0),
        ([verdict("passed", type="none_of", parts=[verdict("failed")])], 1.0),
    ],
)
def test_behaviour_that_nobody_saw_is_no_complete_check(verdicts: list[Verdict], completeness: float | None) -> None:
    found = score(trial(verdicts), case())
    assert found.dimensions.get("completeness") == completeness
    if completeness is None:
        assert found.value is None
        assert found.left_out["completeness"] == "the agent reported no tool calls, events or steps"
    for seen in (score(trial(verdicts, usage=Usage(steps=1)), case()), score(trial(verdicts), case(), True)):
        assert seen.dimensions["completeness"] == sum(one.passed for one in verdicts) / len(verdicts)


@pytest.mark.parametrize(
    ("verdicts", "completeness"),
    [
        ([verdict("passed"), verdict("failed")], 0.5),
        ([verdict("passed", weight=3), verdict("failed")], 0.75),
        ([verdict("passed"), verdict("unjudged")], 1.0),
        ([verdict("unjudged")], None),
    ],
)
def test_completeness_is_the_share_of_passed_checks(verdicts: list[Verdict], completeness: float | None) -> None:
    assert score(trial(verdicts), case()).dimensions.get("completeness") == completeness


@pytest.mark.parametrize(
    ("limits", "usage", "efficiency", "cost"),
    [
        ({"max_steps": 10}, Usage(steps=10), 0.0, None),
        ({"max_steps": 10}, Usage(steps=0), 1.0, None),
        ({"max_steps": 10}, Usage(steps=25), 0.0, None),
        ({"budget_usd": 2.0}, Usage(cost_usd=0.5), None, 0.75),
        ({"budget_usd": 2.0, "max_tokens": 100}, Usage(cost_usd=0.5, total_tokens=100), None, 0.75),
        ({"budget_usd": 2.0, "max_tokens": 100}, Usage(total_tokens=90), None, 0.1),
        ({"max_tokens": 100}, Usage(input_tokens=30, output_tokens=20), None, 0.5),
        ({"budget_usd": 0}, Usage(cost_usd=0.0), None, 1.0),
        ({"budget_usd": 0}, Usage(cost_usd=0.1), None, 0.0),
        ({}, Usage(steps=3, cost_usd=1.0), None, None),
    ],
)
def test_efficiency_and_cost(
    limits: dict[str, Any], usage: Usage, efficiency: float | None, cost: float | None
) -> None:
    found = score(trial([], usage=usage), case(limits)).dimensions
    assert found.get("efficiency") == (None if efficiency is None else pytest.approx(efficiency))
    assert found.get("cost") == (None if cost is None else pytest.approx(cost))


def test_a_critical_failure_makes_the_score_0() -> None:
    assert score(trial([judged(1.0), verdict("failed", critical=True)]), case()).value == 0
    assert score(trial([judged(1.0), verdict("passed", critical=True)]), case()).value == 100


@given(
    st.lists(st.tuples(st.sampled_from(["passed", "failed", "unjudged"]), st.floats(0, 10), st.floats(0, 1))),
    st.integers(0, 20),
    st.floats(0, 2),
)
def test_a_score_is_between_0_and_100(checks: list[tuple[str, float, float]], steps: int, usd: float) -> None:
    verdicts = [verdict(outcome, weight=weight, score=value, judged=True) for outcome, weight, value in checks]
    result = trial(verdicts, usage=Usage(steps=steps, cost_usd=usd))
    found = score(result, case({"max_steps": 10, "budget_usd": 1.0}))
    assert found.value is not None
    assert -1e-9 <= found.value <= 100 + 1e-9
    assert set(found.dimensions) | set(found.left_out) == {"quality", "completeness", "efficiency", "cost"}


def test_an_expected_artifact_with_its_own_assertion_counts_once() -> None:
    import asyncio

    raw = {
        "id": "c",
        "task": {"description": "x", "expected_artifacts": ["a.txt", "b.txt"]},
        "assertions": [{"type": "artifact_exists", "path": "a.txt"}, {"type": "contains", "value": "done"}],
    }
    whole = Case.model_validate(raw)
    seen = {"turns": [Turn(turn=1, input="x", output="done")], "artifacts": [Artifact(name="a.txt", text="x")]}
    verdicts = asyncio.run(check_case(whole, Evidence(case=whole, transcript=Transcript(**seen))))  # type: ignore[arg-type]
    assert score(trial(verdicts), whole).dimensions == {"completeness": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("value", "least", "reached"),
    [(70.0, 70.0, True), (70.0 - 1e-12, 70.0, True), (69.9, 70.0, False), (None, 70.0, False), (None, None, True)],
)
def test_min_score(value: float | None, least: float | None, reached: bool) -> None:
    assert (below(value, least) is None) is reached
