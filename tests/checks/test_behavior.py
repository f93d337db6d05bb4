"""`behavior`: three named checks and rules about tools (rulings §2)."""

from collections.abc import Callable
from typing import Any

import pytest

from atp.suite.result import Event, ToolCall, Turn, Verdict

Judge = Callable[..., Verdict]


def call(name: str, arguments: Any = None, error: str | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, error=error)


@pytest.mark.parametrize(
    ("calls", "given", "holds"),
    [
        ([], {}, True),
        ([call("a"), call("b")], {}, True),
        ([call("a"), call("a")], {}, False),
        ([call("a", {"x": 1}), call("a", {"x": 2})], {}, True),
        ([call("a", {"x": 1, "y": 2}), call("a", {"y": 2, "x": 1})], {}, False),
        ([call("a", {"x": 1}), call("a", {"x": 1.0})], {}, False),
        ([call("a", {"x": 1}), call("a", {"x": True})], {}, True),
        ([call("a", {"x": 1}), call("a", '{"x": 1}')], {}, False),
        ([call("a"), call("a", {})], {}, False),
        ([call("a"), call("b"), call("a")], {}, False),
        ([call("a"), call("a")], {"max_repeats": 1}, True),
        ([call("a"), call("a"), call("a")], {"max_repeats": 1}, False),
        # A repeat right after an error of the same call is a retry.
        ([call("a", error="busy"), call("a")], {}, True),
        ([call("a", error="busy"), call("a", error="busy"), call("a")], {}, True),
        ([call("a", error="busy"), call("a"), call("a")], {}, False),
        ([call("a", error="busy"), call("b"), call("a")], {}, False),
        ([call("a"), call("b", error="busy"), call("a")], {}, False),
    ],
)
def test_no_repeated_actions(judge: Judge, calls: list[ToolCall], given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "behavior", "check": "no_repeated_actions", **given}, calls=calls)
    assert verdict.passed is holds, verdict.message


@pytest.mark.parametrize(
    ("calls", "given", "limits", "holds", "score"),
    [
        ([], {}, {}, True, None),
        ([call("a"), call("b")], {}, {}, True, 1.0),
        ([call("a"), call("a")], {}, {}, False, 0.5),
        ([call("a"), call("a"), call("b"), call("c")], {"max_redundant_calls": 1}, {}, True, 0.75),
        ([call("a", error="busy"), call("a")], {}, {}, True, 0.5),
        ([call("a"), call("b"), call("c")], {"max_tool_calls": 2}, {}, False, 1.0),
        ([call("a"), call("b"), call("c")], {}, {"max_steps": 2}, False, 1.0),
        ([call("a"), call("b"), call("c")], {"max_tool_calls": 3}, {"max_steps": 2}, True, 1.0),
        ([call("a"), call("b")], {}, {"max_steps": 2}, True, 1.0),
    ],
)
def test_efficient_tool_use(
    judge: Judge,
    calls: list[ToolCall],
    given: dict[str, Any],
    limits: dict[str, Any],
    holds: bool,
    score: float | None,
) -> None:
    case = {"constraints": limits}
    verdict = judge({"type": "behavior", "config": {"check": "efficient_tool_use", **given}}, calls=calls, case=case)
    assert verdict.passed is holds, verdict.message
    assert verdict.score == score


def error(recoverable: bool | None = None, turn: int = 1) -> Event:
    payload: dict[str, Any] = {"error_type": "tool", "message": "it broke"}
    if recoverable is not None:
        payload["recoverable"] = recoverable
    return Event(type="error", payload=payload, turn=turn)


@pytest.mark.parametrize(
    ("calls", "events", "given", "holds"),
    [
        ([call("a")], [Event(type="progress", payload={})], {}, True),
        ([call("a", error="boom")], [], {}, False),
        ([], [error()], {}, False),
        ([], [error(recoverable=True)], {}, False),
        # Recovered: a later call of the tool succeeds; an error the agent calls recoverable is followed by an answer.
        ([call("a", error="boom"), call("a")], [], {"allow_recovered": True}, True),
        ([call("a", {"x": 1}, error="boom"), call("a", {"x": 2})], [], {"allow_recovered": True}, True),
        ([call("a"), call("a", error="boom")], [], {"allow_recovered": True}, False),
        ([call("a", error="boom"), call("b")], [], {"allow_recovered": True}, False),
        ([], [error(recoverable=True)], {"allow_recovered": True}, True),
        ([], [error(recoverable=False)], {"allow_recovered": True}, False),
        ([], [error()], {"allow_recovered": True}, False),
        ([], [error(recoverable=True, turn=2)], {"allow_recovered": True}, False),
    ],
)
def test_no_errors(
    judge: Judge, calls: list[ToolCall], events: list[Event], given: dict[str, Any], holds: bool
) -> None:
    given = {"type": "behavior", "check": "no_errors", **given}
    verdict = judge(given, "an answer", calls=calls, events=events)
    assert verdict.passed is holds, verdict.message


def test_an_error_without_an_answer_is_not_recovered(judge: Judge) -> None:
    given = {"type": "behavior", "check": "no_errors", "allow_recovered": True}
    assert not judge(given, None, events=[error(recoverable=True)]).passed


def test_errors_of_other_turns_do_not_count_at_a_checkpoint(judge: Judge) -> None:
    turns = [Turn(turn=1, input="a", output="x"), Turn(turn=2, input="b", output="y")]
    given = {"type": "behavior", "check": "no_errors"}
    assert not judge(given, turns=turns, events=[error()]).passed
    assert judge(given, turns=turns, events=[error()], turn=2).passed


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"must_use_tools": ["a", "b"]}, True),
        ({"must_use_tools": ["a", "c"]}, False),
        ({"must_use_tools": ["tool"]}, True),
        ({"forbidden_tools": ["c"]}, True),
        ({"forbidden_tools": ["c", "a"]}, False),
        ({"forbidden_tools": ["tool"]}, False),
        ({"min_tool_calls": 3}, True),
        ({"min_tool_calls": 4}, False),
        ({"max_tool_calls": 3}, True),
        ({"max_tool_calls": 2}, False),
        ({"max_tool_calls": 0}, False),
        ({"tool_order": ["a", "tool"]}, True),
        ({"tool_order": ["b", "a"]}, False),
        ({"check": "no_repeated_actions", "must_use_tools": ["c"]}, False),
        ({"check": "no_errors", "max_tool_calls": 3}, True),
    ],
)
def test_rules_about_tools(judge: Judge, given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "behavior", **given}, calls=["a", "b", "server__tool"])
    assert verdict.passed is holds, verdict.message


def test_a_failure_says_which_call(judge: Judge) -> None:
    calls = [call("a", {"x": 1}), call("b"), call("a", {"x": 1})]
    verdict = judge({"type": "behavior", "check": "no_repeated_actions"}, calls=calls)
    assert verdict.message == '1 repeated action: call 3, a({"x": 1}) in turn 1'
