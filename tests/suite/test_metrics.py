"""Named metrics: which names and numbers are kept, and what a trial's metrics are."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.secrets import Secrets, masking
from atp.suite.metrics import MEASURED, MOST, collect_metrics, metrics_of, read_metrics
from atp.suite.result import Event, ToolCall, Transcript, TrialResult, Turn, Usage, Verdict


def trial(**given: Any) -> TrialResult:
    return TrialResult(key="k", agent="a", case="c", **given)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ({"": 1}, "has no usable name"),
        ({"two words": 1}, "has no usable name"),
        ({"9lives": 1}, "has no usable name"),
        ({"x" * 65: 1}, "has no usable name"),
        ({3: 1}, "has no usable name"),
        ({"tokens": 1}, "ATP measures itself"),
        ({"pass_rate": 1}, "ATP measures itself"),
        ({"a": True}, "is True, not a finite number"),
        ({"a": "1"}, "not a finite number"),
        ({"a": None}, "not a finite number"),
        ({"a": math.nan}, "not a finite number"),
        ({"a": math.inf}, "not a finite number"),
        ({"a": 10**400}, "not a finite number"),
        ({"a": 1e101}, "not a finite number"),
        ([("a", 1)], "not an object with numbers"),
        ({f"m{number}": 1 for number in range(MOST + 1)}, "more than 100"),
    ],
)
def test_what_is_no_metric_is_refused(raw: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_metrics(raw)


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True), st.floats(-1e100, 1e100), max_size=5))
def test_valid_names_and_finite_numbers_are_kept(raw: dict[str, float]) -> None:
    usable = {name: value for name, value in raw.items() if name not in (*MEASURED, "pass_rate")}
    assert read_metrics(usable) == usable
    assert read_metrics(None) == {}


def test_a_secret_is_no_value_of_a_metric() -> None:
    with masking(Secrets(["12345678901"])), pytest.raises(ValueError, match="has a secret as its value"):
        read_metrics({"found": 12345678901})


def test_what_was_measured_and_what_was_given_are_metrics_alike() -> None:
    seen = Transcript(
        turns=[Turn(turn=1, input="a", output="b"), Turn(turn=2, input="c", output="d")],
        tool_calls=[ToolCall(name="t")],
        usage=Usage(input_tokens=3, output_tokens=4, cost_usd=0.5),
    )
    found = metrics_of(trial(transcript=seen, duration_ms=12.5, score=80.0, metrics={"recall": 0.25}))
    measured = {"duration_ms": 12.5, "turns": 2, "tool_calls": 1, "tokens": 7, "cost_usd": 0.5, "score": 80}
    assert found == {**measured, "recall": 0.25}


def test_what_nobody_reported_is_unknown_and_not_zero() -> None:
    assert metrics_of(trial(duration_ms=1.0)) == {"duration_ms": 1.0}
    told = Transcript(events=[Event(type="progress", payload={})])
    assert metrics_of(trial(transcript=told))["tool_calls"] == 0


def test_the_last_value_of_a_name_counts_and_checks_that_disagree_are_told() -> None:
    inner = Verdict(type="script", outcome="passed", metrics={"recall": 0.5})
    verdicts = [
        Verdict(type="all_of", outcome="passed", parts=[inner]),
        Verdict(type="script", outcome="failed", metrics={"recall": 0.75, "same": 1.0}),
        Verdict(type="script", outcome="failed", metrics={"same": 1.0}),
    ]
    result = trial(transcript=Transcript(metrics={"recall": 0.1, "own": 2.0}), verdicts=verdicts)
    collect_metrics(result)
    assert result.metrics == {"recall": 0.75, "own": 2.0, "same": 1.0}
    assert result.warnings == ["several checks gave the metric `recall`: the last one counts"]
