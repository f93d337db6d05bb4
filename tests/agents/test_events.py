"""Events of tool calls: an agent that reports a call twice, when it starts and when it ends, has made one call."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.support.project import Project

from atp.agents.events import PairedCalls
from atp.suite.result import Event, ToolCall


def calls(*payloads: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The calls that come of payloads, and the warnings."""
    pairs, found = PairedCalls(), list[ToolCall]()
    for payload in payloads:
        call = pairs.read(Event(type="tool_call", payload=dict(payload)), 1)
        if call is not None:
            found.append(call)
    return [msgspec.to_builtins(one) for one in found], pairs.unfinished()


def started(tool: str, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "status": "started", **more}


def ended(tool: str, status: str | None = "success", **more: Any) -> dict[str, Any]:
    return {"tool": tool, "status": status, **more}


@pytest.mark.parametrize("status", ["success", "completed", None])
def test_a_start_and_an_outcome_are_one_call(status: str | None) -> None:
    found, warnings = calls(started("read", input={"path": "a"}), ended("read", status, output="x", duration_ms=3))
    assert found == [{"name": "read", "arguments": {"path": "a"}, "result": "x", "duration_ms": 3}]
    assert warnings == []


@pytest.mark.parametrize("status", ["error", "failed"])
def test_a_call_that_failed(status: str) -> None:
    found, _ = calls(started("read", args={"path": "a"}), ended("read", status, output="no such file"))
    assert found == [{"name": "read", "arguments": {"path": "a"}, "error": "no such file"}]
    assert calls(ended("read", status))[0] == [{"name": "read", "error": "failed"}]


def test_the_input_of_the_outcome_wins_if_it_has_one() -> None:
    [call], _ = calls(started("read", input={"path": "a"}), ended("read", args={"path": "b"}))
    assert call["arguments"] == {"path": "b"}
    [call], _ = calls(started("read", input={"path": "a"}), ended("read", input=None))
    assert call["arguments"] == {"path": "a"}


def test_outcomes_close_the_call_of_their_id_or_the_oldest_of_their_tool() -> None:
    begun = [started("read", input=1, call_id="a"), started("read", input=2, call_id="b"), started("read", input=3)]
    found, warnings = calls(*begun, ended("read", output="B", call_id="b"), ended("read", output="A"))
    assert [(one["arguments"], one.get("result")) for one in found] == [(1, "A"), (2, "B"), (3, None)]
    assert warnings == ["a call of the tool `read` was started, and its outcome never came"]
    # An id that never started is not the call of another id; it may be the call that has none.
    found, _ = calls(*begun, ended("read", output="C", call_id="c"))
    assert [one.get("result") for one in found] == [None, None, "C"]
    found, _ = calls(*begun[:2], ended("read", output="C", call_id="c"))
    assert [one.get("result") for one in found] == [None, None, "C"]


def test_without_a_start_each_event_is_a_call() -> None:
    assert len(calls(ended("read"), ended("read"), ended("write", None))[0]) == 3
    assert len(calls(started("read"), ended("write"))[0]) == 2


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([None, 1, 2]), st.booleans()), max_size=12))
def test_every_start_and_every_lone_outcome_is_a_call(events: list[tuple[str, int | None, bool]]) -> None:
    payloads = [
        {"tool": tool, "call_id": one, "status": "started" if begins else "success"} for tool, one, begins in events
    ]
    found, warnings = calls(*payloads)
    begun = sum(begins for _, _, begins in events)
    assert begun <= len(found) <= len(events)
    assert len(found) + begun >= len(events), "an outcome closes one call at most"
    assert set(warnings) <= {f"a call of the tool `{tool}` was started, and its outcome never came" for tool in "ab"}


AGENT = """
    import json, sys
    request = json.load(sys.stdin)
    def tell(number, **payload):
        event = {"version": "1.0", "task_id": request["task_id"], "sequence": number, "event_type": "tool_call"}
        print(json.dumps({**event, "payload": payload}), file=sys.stderr)
    tell(0, tool="create_file", input={"path": "a.txt"}, status="started")
    tell(1, tool="create_file", output="made", status="success")
    tell(2, tool="read_file", input={"path": "b.txt"}, status="started")
    tell(3, tool="read_file", output="no such file", status="error")
    tell(4, tool="notify", input={}, status="started")
    print(json.dumps({"version": "1.0", "task_id": request["task_id"], "status": "completed", "output": "done"}))
"""


def test_an_agent_that_reports_each_call_twice(project: Project) -> None:
    project.write("agent.py", AGENT)
    agent = {"name": "a", "type": "cli", "config": {"command": "python3 agent.py", "inherit_environment": True}}
    checks = [
        {"type": "tool_called", "name": "create_file", "arguments": {"path": "a.txt"}, "times": 1},
        {"type": "tool_result", "name": "create_file", "value": "made"},
        {"type": "behavior", "check": "no_repeated_actions"},
        {"type": "behavior", "check": "no_errors", "negate": True},
    ]
    test = {"id": "one", "assertions": checks, "constraints": {"max_steps": 3}}
    ran = project.test(project.suite([agent], [test]))
    assert ran.statuses == {"one": "passed"}, ran.out
    assert ran.results["one"]["warnings"] == ["a call of the tool `notify` was started, and its outcome never came"]
    limited = {**test, "constraints": {"max_steps": 2}}
    assert project.test(project.suite([agent], [limited])).statuses == {"one": "failed"}
