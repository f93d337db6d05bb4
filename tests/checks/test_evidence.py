"""What a check may look at, of a whole trial and of one turn."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.checks.conftest import make_assertion

from atp.base.json.found import MISSING
from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.suite.case import Case
from atp.suite.result import Artifact, Event, ToolCall, Transcript, Turn

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


CALLED = [
    {"type": "tool_called", "name": "warm"},
    {"type": "tool_result", "name": "warm", "value": 3},
    {"type": "tool_order", "tools": ["warm", "hello"]},
    {"type": "not_tool_called", "name": "warm", "negate": True},
    {"type": "behavior", "check": "no_errors", "negate": True},
    {"type": "behavior", "min_tool_calls": 2},
    {"type": "artifact_exists", "path": "warm.txt"},
    {"type": "script", "script": "scripts:seen.warm"},
]


def after_a_before(folder: Path) -> Evidence:
    """A case that goes on from one that called `warm`, which failed and gave 3, and handed over `warm.txt`."""
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "seen.py").write_text(
        "def warm(context):\n"
        "    return any(call['name'] == 'warm' for call in context['tool_calls']) and bool(context['artifacts'])\n"
    )
    made = Evidence(
        case=Case(id="after", chains=[["hello"]]),
        transcript=Transcript(
            messages=[{"role": "user", "content": "warm"}, {"role": "user", "content": "hello"}],
            inherited=1,
            turns=[Turn(turn=2, input="hello", output="hi")],
            tool_calls=[ToolCall(name="hello", turn=2)],
        ),
        folders=(folder,),
    )
    made.earlier = Transcript(
        turns=[Turn(turn=1, input="warm", output="warmed")],
        tool_calls=[ToolCall(name="warm", result=3, error="hot")],
        artifacts=[Artifact(name="warm.txt", text="warm")],
    )
    return made


@pytest.mark.parametrize("given", CALLED)
def test_befores_are_evidence_unless_the_assertion_says_own(given: dict[str, Any], tmp_path: Path) -> None:
    for turns, outcome in (({}, "passed"), ({"turns": "all"}, "passed"), ({"turns": "own"}, "failed")):
        found = asyncio.run(run_check(make_assertion({**given, **turns}), after_a_before(tmp_path)))
        assert found.outcome == outcome, (turns, found.message)
    narrowed = {"type": "all_of", "assertions": [given], "turns": "own"}
    assert asyncio.run(run_check(make_assertion(narrowed), after_a_before(tmp_path))).outcome == "failed"


def test_the_answer_is_the_cases_own(tmp_path: Path) -> None:
    assert after_a_before(tmp_path).output == "hi"
    own = after_a_before(tmp_path).of_own_turns()
    assert own.transcript.messages == [{"role": "user", "content": "hello"}]
    assert [turn.turn for turn in own.turns] == [2]


def test_a_call_that_a_before_did_not_describe_leaves_its_absence_open(tmp_path: Path) -> None:
    evidence = after_a_before(tmp_path)
    evidence.earlier_gap = "the agent says it made 2 tool calls but told of 1"
    absent = {"type": "not_tool_called", "name": "refund"}
    assert asyncio.run(run_check(make_assertion(absent), evidence)).outcome == "unjudged"
    assert asyncio.run(run_check(make_assertion({**absent, "turns": "own"}), evidence)).passed


def test_max_steps_is_about_the_cases_own_calls(tmp_path: Path) -> None:
    evidence = after_a_before(tmp_path)
    evidence.case.limits.max_steps = 1
    given = {"type": "behavior", "check": "efficient_tool_use"}
    assert asyncio.run(run_check(make_assertion(given), evidence)).passed
