"""What a check may look at, of a whole trial and of one turn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atp.agents.adapter import Capabilities
from atp.base.found_json import MISSING
from atp.checks.before_run import met, needs
from atp.checks.compare import fits
from atp.checks.evidence import Evidence
from atp.suite.case import Case
from atp.suite.result import Artifact, Event, ToolCall, Turn, Verdict

MakeEvidence = Callable[..., Evidence]
TURNS = [Turn(turn=1, input="one", output="first"), Turn(turn=2, input="two", output={"n": 2})]


def test_a_turn_has_its_own_answer_calls_and_events(evidence: MakeEvidence) -> None:
    calls = [ToolCall(name="a"), ToolCall(name="b", turn=2)]
    events = [Event(type="error", payload={}, turn=2)]
    whole = evidence(turns=TURNS, calls=calls, events=events, folders=(Path("x"),))
    assert (whole.output, whole.answer.where) == ({"n": 2}, "turn 2")
    assert [call.name for call in whole.tool_calls] == ["a", "b"]
    first = whole.of_turn(1)
    assert (first.output, first.input, first.answer.where) == ("first", "one", "turn 1")
    assert [call.name for call in first.tool_calls] == ["a"]
    assert first.events == []
    assert first.folders == whole.folders
    assert whole.of_turn(7).output is None


@pytest.mark.parametrize(
    ("output", "text", "json"),
    [
        ("words", "words", MISSING),
        (' {"b": 1}', ' {"b": 1}', {"b": 1}),
        ({"b": 1, "a": 1.0}, '{"a":1,"b":1}', {"b": 1, "a": 1.0}),
        (None, "", MISSING),
        (False, "false", False),
        (3, "3", 3),
    ],
)
def test_text_and_json_of_an_answer(evidence: MakeEvidence, output: Any, text: str, json: Any) -> None:
    answer = evidence(output).answer
    assert answer.text == text
    assert answer.json == json
    assert answer.text is answer.text


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"messages": "hi"}, "hi"),
        ({"messages": [], "chains": [["listed", "chain"]]}, ["one", "two"]),
        ({"messages": [], "task": {"description": "do it"}}, "do it"),
        (
            {"messages": "hi", "checkpoints": [{"id": "a", "assertion": {"type": "contains", "value": "x"}}]},
            ["one", "two"],
        ),
    ],
)
def test_the_input_is_what_was_said(evidence: MakeEvidence, case: dict[str, Any], expected: Any) -> None:
    assert evidence(turns=TURNS, case=case).input == expected


def test_a_matcher_that_nobody_knows_is_no_match_but_an_error() -> None:
    with pytest.raises(ValueError, match="unknown matcher"):
        fits({"$greater": 3}, 4)


def test_broken_base64_is_no_artifact(judge: Callable[..., Verdict]) -> None:
    artifacts = [Artifact(name="a.bin", base64="x"), Artifact(name="ok.txt", text="héllo")]
    given = {"type": "artifact_exists", "path": "a.bin", "min_bytes": 1}
    assert judge(given, artifacts=artifacts).outcome == "failed"
    assert judge({**given, "path": "ok.txt", "min_bytes": 6}, artifacts=artifacts).passed


@pytest.mark.parametrize(
    ("limits", "capabilities", "observable"),
    [
        ({"max_steps": 3}, Capabilities(steps=False), True),
        ({"max_steps": 3}, Capabilities(steps=False, tool_calls=False), False),
        ({"max_tokens": 3}, Capabilities(tokens=False), False),
        ({"budget_usd": 3}, Capabilities(cost=False, tokens=False), False),
        ({"allowed_tools": ["a"]}, Capabilities(tool_calls=False), False),
        ({"timeout_seconds": 3}, Capabilities(tool_calls=False, tokens=False, cost=False, steps=False), True),
    ],
)
def test_a_limit_needs_eyes(limits: dict[str, Any], capabilities: Capabilities, observable: bool) -> None:
    checkpoint = {"id": "c", "assertion": {"type": "contains", "value": "x"}}
    raw = {"id": "a", "messages": "x", "constraints": limits, "checkpoints": [checkpoint]}
    assert all(met(need, capabilities) for need in needs(Case.model_validate(raw))) is observable


def test_an_invalid_pattern_in_a_path_finds_nothing(judge: Callable[..., Verdict]) -> None:
    for pattern in ("[", "(?=a)"):
        path = f"$[?search(@.x, '{pattern}')]"
        assert judge({"type": "json_path", "path": path}, [{"x": "a"}, {"x": 3}]).outcome == "failed"
    assert judge({"type": "json_path", "path": "$[?match(@.x, 'a.c')].x", "value": "abc"}, [{"x": "abc"}]).passed
