"""`tool_called`, `not_tool_called`, `tool_result`, `tool_order` (rulings §4)."""

from collections.abc import Callable
from typing import Any

import pytest

from atp.suite.result import Event, ToolCall, Verdict

Judge = Callable[..., Verdict]

CALLS: list[ToolCall | str] = [
    ToolCall(name="search", arguments={"query": "beijing", "limit": 5}, result={"hits": [1, 2]}),
    ToolCall(name="github__create_issue", arguments={"title": "Bug", "labels": ["a", "b"]}, turn=2),
    ToolCall(name="search", arguments='{"query": "shanghai"}', error="rate limit", turn=2),
    ToolCall(name="mcp__mail__send", arguments={"to": {"name": "Bob", "address": "b@x"}}, result="sent to b@x", turn=3),
    ToolCall(name="__init__", turn=3),
]


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"name": "search"}, True),
        ({"value": "search"}, True),
        ({"value": {"name": "search", "arguments": {"query": "beijing"}}}, True),
        ({"value": {"name": "search", "arguments": {"query": "rome"}}}, False),
        ({"name": "Search"}, False),
        ({"name": "sear"}, False),
        ({"name": "github__create_issue"}, True),
        ({"name": "create_issue"}, True),
        ({"name": "send"}, True),
        ({"name": "mail__send"}, True),
        ({"name": "github"}, False),
        ({"name": "other__create_issue"}, False),
        ({"name": "init__"}, False),
        ({"name": "end"}, False),
        # Arguments: a recursive subset, with matchers.
        ({"name": "search", "arguments": {"query": "beijing"}}, True),
        ({"name": "search", "arguments": {"query": "shanghai"}}, True),
        ({"name": "search", "arguments": {"query": "rome"}}, False),
        ({"name": "search", "arguments": {"query": "beijing", "page": 1}}, False),
        ({"name": "search", "arguments": {"limit": {"$gt": 3}}}, True),
        ({"name": "search", "arguments": {"limit": {"$gt": 5}}}, False),
        ({"name": "send", "arguments": {"to": {"name": {"$regex": "^B"}}}}, True),
        ({"name": "create_issue", "arguments": {"labels": ["b"]}}, True),
        ({"name": "create_issue", "arguments": {"labels": ["c"]}}, False),
        ({"name": "search", "arguments": {}}, True),
        # Times.
        ({"name": "search", "times": 2}, True),
        ({"name": "search", "times": 1}, False),
        ({"name": "search", "times": 3}, False),
        ({"name": "search", "times": 1, "arguments": {"query": "beijing"}}, True),
        ({"name": "delete", "times": 0}, True),
        ({"name": "search", "times": 0}, False),
        # Before and after another tool.
        ({"name": "search", "before": "create_issue"}, True),
        ({"name": "send", "before": "create_issue"}, False),
        ({"name": "search", "after": "create_issue"}, True),
        ({"name": "create_issue", "after": "send"}, False),
        ({"name": "create_issue", "after": "search", "before": "send"}, True),
        ({"name": "search", "before": "delete"}, False),
        ({"name": "search", "after": "delete"}, False),
        ({"name": "search", "times": 1, "before": "create_issue"}, True),
        ({"name": "search", "after": "search"}, True),
        ({"name": "send", "after": "send"}, False),
        # One of several tools, as Yao writes it.
        ({"value": ["delete", "search"]}, True),
        ({"value": ["delete", "create_issue"]}, True),
        ({"value": ["delete", "drop"]}, False),
        ({"name": ["search", "send"], "times": 3}, True),
        ({"name": ["search", "send"], "times": 2}, False),
        ({"name": ["delete", "search"], "arguments": {"query": "rome"}}, False),
        ({"name": ["delete", "send"], "before": "create_issue"}, False),
    ],
)
def test_tool_called(judge: Judge, given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "tool_called", **given}, calls=CALLS)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


def test_tool_called_says_what_was_called_instead(judge: Judge) -> None:
    verdict = judge({"type": "tool_called", "name": "search", "arguments": {"query": "rome"}}, calls=CALLS)
    assert '"beijing"' in verdict.message
    hint = ": the agent reported none (a Python function returns them as `tool_calls`, beside `output`)"
    assert judge({"type": "tool_called", "name": "x"}).message.endswith(f"found no tool calls{hint}")
    told = judge({"type": "tool_called", "name": "x"}, events=[Event(type="llm_request", payload={})])
    assert told.message.endswith("found no tool calls")
    passed = judge({"type": "tool_called", "name": "create_issue"}, calls=CALLS)
    assert passed.where == "tool call 2 (turn 2)"


def test_only_the_calls_of_a_turn_count_at_a_checkpoint(judge: Judge) -> None:
    assert judge({"type": "tool_called", "name": "search"}, calls=CALLS, turn=2).passed
    assert judge({"type": "tool_called", "name": "search"}, calls=CALLS, turn=3).outcome == "failed"
    assert judge({"type": "not_tool_called", "name": "search"}, calls=CALLS, turn=3).passed


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"name": "delete"}, True),
        ({"name": "search"}, False),
        ({"name": "create_issue"}, False),
        ({"name": "search", "arguments": {"query": "rome"}}, True),
        ({"name": "search", "arguments": {"query": {"$regex": "^bei"}}}, False),
    ],
)
def test_not_tool_called(judge: Judge, given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "not_tool_called", **given}, calls=CALLS)
    assert verdict.passed is holds
    assert holds or verdict.where


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        ({"name": "search"}, True),
        ({"name": "delete"}, False),
        ({"name": "create_issue"}, False),  # the agent reported no result
        ({"name": "search", "value": {"hits": [1, 2]}}, True),
        ({"name": "search", "value": {"hits": {"$length": 2}}}, True),
        ({"name": "search", "value": {"hits": {"$length": 3}}}, False),
        ({"name": "search", "path": "$.hits[0]"}, True),
        ({"name": "search", "path": "$.hits[0]", "value": 1}, True),
        ({"name": "search", "path": "$.hits[0]", "value": 2}, False),
        ({"name": "search", "path": "$.nothing"}, False),
        ({"name": "send", "contains": "b@x"}, True),
        ({"name": "send", "contains": "c@x"}, False),
        ({"name": "send", "pattern": "^sent"}, True),
        ({"name": "send", "matches": "^not"}, False),
        ({"name": "send", "value": "sent to b@x", "status": "success"}, True),
        ({"name": "search", "status": "error"}, True),
        ({"name": "search", "status": "error", "contains": "rate"}, True),
        ({"name": "search", "status": "success", "contains": "rate"}, False),
        ({"name": "send", "status": "error"}, False),
        ({"name": "create_issue", "status": "success"}, True),
        ({"name": "create_issue", "value": None}, False),
        ({"value": {"tool": "search", "result": {"hits": [1, 2]}}}, True),
        ({"value": {"tool": "search", "result": {"hits": [3]}}}, False),
        ({"value": {"tool": "create_issue"}}, True),
    ],
)
def test_tool_result(judge: Judge, given: dict[str, Any], holds: bool) -> None:
    verdict = judge({"type": "tool_result", **given}, calls=CALLS)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


@pytest.mark.parametrize(
    ("tools", "holds"),
    [
        (["search"], True),
        (["search", "create_issue", "send"], True),
        (["search", "search"], True),
        (["search", "search", "search"], False),
        (["create_issue", "search"], True),
        (["send", "search"], False),
        (["delete"], False),
    ],
)
def test_tool_order_is_a_subsequence(judge: Judge, tools: list[str], holds: bool) -> None:
    for key in ("tools", "value"):
        assert judge({"type": "tool_order", key: tools}, calls=CALLS).passed is holds
    rules = judge({"type": "behavior", "tool_order": tools}, calls=CALLS)
    assert rules.passed is holds


def test_several_tools_of_which_one_or_none_is_to_be_called(judge: Judge) -> None:
    missing = judge({"type": "tool_called", "value": ["delete", "drop"]}, calls=CALLS[:1])
    assert missing.message == "expected `delete` or `drop` to be called, found never of search"
    assert judge({"type": "tool_called", "value": ["drop", "search"]}, calls=CALLS[:1]).message == (
        "`drop` or `search` was called once"
    )
    none = judge({"type": "not_tool_called", "value": ["delete", "drop"]}, calls=CALLS)
    assert (none.outcome, none.message) == ("passed", "none of delete, drop was called")
    one = judge({"type": "not_tool_called", "value": ["delete", "search"]}, calls=CALLS)
    assert one.outcome == "failed"
    assert one.message.startswith("expected `delete` or `search` not to be called, found `search` called with {")
