"""What a check may look at, of a whole trial and of one turn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atp.base.found_json import MISSING
from atp.checks.evidence import Evidence
from atp.suite.result import Event, ToolCall, Turn

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
