"""Limits: which one is passed and by how much, and what nobody could see."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.checks.limits import LimitMeter, disagreements, overruns, unjudged_limits, unreported_limit_warnings
from atp.suite.case import Limits
from atp.suite.meter import read_meter
from atp.suite.result import Event, ToolCall, Transcript, Usage


def event(kind: str, **payload: Any) -> Event:
    return Event(type=kind, payload=payload)


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(name=name) for name in names]


@pytest.mark.parametrize(
    ("limits", "seen", "messages"),
    [
        ({}, {"usage": Usage(steps=1000, total_tokens=10**9, cost_usd=1e6)}, []),
        # Steps are the largest of the report, the highest step and the number of tool calls.
        ({"max_steps": 2}, {"tool_calls": calls("a", "b")}, []),
        ({"max_steps": 2}, {"tool_calls": calls("a", "b", "c")}, ["max_steps exceeded: 3 of 2 steps, 1 too many"]),
        ({"max_steps": 2}, {"usage": Usage(steps=5)}, ["max_steps exceeded: 5 of 2 steps, 3 too many"]),
        ({"max_steps": 2}, {"usage": Usage(tool_calls=3)}, ["max_steps exceeded: 3 of 2 steps, 1 too many"]),
        ({"max_steps": 2}, {"events": [event("reasoning", step=3), event("progress", current_step=1)]}, ["3 of 2"]),
        ({"max_steps": 2}, {"events": [event("reasoning", step="three", current_step=3)]}, ["3 of 2"]),
        ({"max_steps": 2}, {"events": [event("reasoning", step=True), event("reasoning", step=float("inf"))]}, []),
        # Tokens: the larger of events and report.
        ({"max_tokens": 10}, {"usage": Usage(total_tokens=10)}, []),
        ({"max_tokens": 10}, {"usage": Usage(total_tokens=12)}, ["max_tokens exceeded: 12 of 10 tokens, 2 too many"]),
        ({"max_tokens": 10}, {"usage": Usage(input_tokens=6, output_tokens=5)}, ["11 of 10"]),
        ({"max_tokens": 10}, {"usage": Usage(input_tokens=6, output_tokens=5, total_tokens=2)}, ["11 of 10"]),
        (
            {"max_tokens": 10},
            {"events": [event("llm_request", input_tokens=6, output_tokens=2)] * 2, "usage": Usage(total_tokens=9)},
            ["16 of 10"],
        ),
        ({"budget_usd": 0.5}, {"usage": Usage(cost_usd=0.5)}, []),
        ({"budget_usd": 0.3}, {"usage": Usage(cost_usd=0.1 + 0.2)}, []),
        (
            {"budget_usd": 0.5},
            {"usage": Usage(cost_usd=0.62)},
            ["budget_usd exceeded: $0.62 of $0.5, $0.12 too much"],
        ),
        ({"budget_usd": 0}, {"usage": Usage(cost_usd=0.01)}, ["budget_usd exceeded"]),
        ({"allowed_tools": ["a", "b"]}, {"tool_calls": calls("a", "server__b")}, []),
        ({"allowed_tools": ["a"]}, {"tool_calls": calls("a", "shell")}, ["tool `shell` is not allowed"]),
        ({"allowed_tools": []}, {"tool_calls": calls("a")}, ["(allowed_tools: none)"]),
        ({"allowed_tools": []}, {}, []),
        (
            {"max_steps": 1, "max_tokens": 1, "budget_usd": 1, "allowed_tools": []},
            {"tool_calls": calls("a", "b"), "usage": Usage(total_tokens=2, cost_usd=2)},
            ["max_steps", "max_tokens", "budget_usd", "tool `a`"],
        ),
    ],
)
def test_overruns(limits: dict[str, Any], seen: dict[str, Any], messages: list[str]) -> None:
    found = overruns(Limits(**limits), Transcript(**seen))
    assert len(found) == len(messages)
    for overrun, message in zip(found, messages, strict=True):
        assert message in overrun.message


@given(st.lists(st.integers(0, 5) | st.sampled_from(["call", "llm"]), max_size=30), st.integers(1, 8))
def test_counting_along_gives_the_same_as_counting_at_the_end(story: list[int | str], most: int) -> None:
    limits = Limits(max_steps=most, max_tokens=most * 3)
    meter, transcript = LimitMeter(limits), Transcript()
    stopped = False
    for one in story:
        if one == "call":
            transcript.tool_calls += calls("a")
            meter.call(transcript.tool_calls[-1])
        else:
            told = event("llm_request", input_tokens=3) if one == "llm" else event("progress", current_step=one)
            transcript.events.append(told)
            meter.event(told)
        now = [overrun.message for overrun in overruns(limits, transcript)]
        assert [overrun.message for overrun in meter.overruns()] == now
        assert bool(now) >= stopped
        stopped = bool(now)


@pytest.mark.parametrize(
    ("limits", "seen", "warned"),
    [
        ({}, {}, []),
        ({"max_steps": 3}, {}, ["max_steps"]),
        ({"max_steps": 3}, {"tool_calls": calls("a")}, []),
        ({"max_steps": 3}, {"usage": Usage(steps=0)}, []),
        ({"max_tokens": 3}, {}, ["max_tokens"]),
        ({"max_tokens": 3}, {"usage": Usage(output_tokens=0)}, []),
        ({"max_tokens": 3}, {"events": [event("llm_request", model="m")]}, ["max_tokens"]),
        ({"budget_usd": 3}, {"usage": Usage(total_tokens=1)}, ["budget_usd"]),
        ({"budget_usd": 3}, {"usage": Usage(cost_usd=0.0)}, []),
        ({"timeout_seconds": 3}, {}, []),
        ({}, {"usage": Usage(tool_calls=3), "tool_calls": calls("a")}, ["says it made 3 tool calls but told of 1"]),
    ],
)
def test_what_was_not_reported_is_a_warning(limits: dict[str, Any], seen: dict[str, Any], warned: list[str]) -> None:
    found = unreported_limit_warnings(Limits(**limits), Transcript(**seen))
    assert len(found) == len(warned)
    for text, word in zip(found, warned, strict=True):
        assert text.startswith("unobserved: ")
        assert word in text


def test_figures_that_disagree_are_told() -> None:
    events = [event("llm_request", input_tokens=6, output_tokens=2)]
    transcript = Transcript(events=events, tool_calls=calls("a", "b"), usage=Usage(total_tokens=9, steps=1))
    assert disagreements(transcript) == [
        "steps: events show 2, the agent reports 1; the larger counts",
        "tokens: events show 8, the agent reports 9; the larger counts",
    ]
    assert disagreements(Transcript(usage=Usage(total_tokens=9))) == []


def test_nothing_is_not_known() -> None:
    meter = read_meter(Transcript())
    assert (meter.steps, meter.tokens, meter.usd) == (None, None, None)


@pytest.mark.parametrize(
    ("limits", "told", "claimed", "shown"),
    [
        ({"allowed_tools": ["a"]}, ["a"], 1, True),
        ({"allowed_tools": ["a"]}, ["a"], None, True),
        ({"allowed_tools": ["a"]}, ["a", "a"], 1, True),
        ({"allowed_tools": ["a"]}, ["a"], 2, False),
        ({"allowed_tools": []}, [], 1, False),
        ({"max_steps": 5}, ["a"], 2, True),  # which counts what the agent reports
        ({"allowed_tools": ["a"]}, ["b"], 2, True),  # a tool that is not allowed: passed for certain
    ],
)
def test_tools_that_nobody_saw_may_not_be_allowed(
    limits: dict[str, Any], told: list[str], claimed: int | None, shown: bool
) -> None:
    found = unjudged_limits(Limits(**limits), Transcript(tool_calls=calls(*told), usage=Usage(tool_calls=claimed)))
    assert [(one.type, one.outcome) for one in found] == ([] if shown else [("limits", "unjudged")])
    assert all(f"says it made {claimed} tool call" in one.message for one in found)
