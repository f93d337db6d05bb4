"""Tool calls that an agent counts and does not describe never lead to a verdict in its favour."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.support.project import Project

from atp.suite.result import Turn, Usage, Verdict

Judge = Callable[..., Verdict]
A_CALLED = {"type": "tool_called", "name": "a"}
X_CALLED = {"type": "tool_called", "name": "x"}
NO_X = {"type": "not_tool_called", "name": "x"}
RULES = {"type": "behavior"}


def not_(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "negate": True}


def group(kind: str, *inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "assertions": list(inner), **more}


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        # Told of: a, b. Reported: 5 calls.
        (NO_X, "unjudged"),
        ({"type": "not_tool_called", "name": "a"}, "failed"),
        (not_(NO_X), "failed"),
        (not_({"type": "not_tool_called", "name": "a"}), "passed"),
        (A_CALLED, "passed"),
        (X_CALLED, "failed"),
        (not_(A_CALLED), "failed"),
        (not_(X_CALLED), "unjudged"),
        ({**A_CALLED, "times": 1}, "unjudged"),
        ({**A_CALLED, "times": 2}, "failed"),
        ({**X_CALLED, "times": 0}, "unjudged"),
        ({**A_CALLED, "times": 0}, "failed"),
        (not_({**A_CALLED, "times": 0}), "passed"),  # called more than that, whatever else was
        (not_({**A_CALLED, "times": 2}), "unjudged"),
        ({**A_CALLED, "before": "b"}, "unjudged"),  # perhaps there was a `b` before
        ({"type": "tool_called", "name": "b", "after": "a"}, "passed"),
        ({"type": "tool_called", "name": "a", "after": "b"}, "failed"),
        (not_({"type": "tool_called", "name": "a", "after": "b"}), "unjudged"),
        (not_({"type": "tool_called", "name": "a", "after": "x"}), "unjudged"),
        ({"type": "tool_order", "tools": ["a", "b"]}, "passed"),
        ({"type": "tool_order", "tools": ["b", "a"]}, "failed"),
        (not_({"type": "tool_order", "tools": ["b", "a"]}), "unjudged"),
        (not_({"type": "tool_result", "name": "x"}), "unjudged"),
        ({"type": "tool_result", "name": "x"}, "failed"),
        # Rules about tools.
        ({**RULES, "forbidden_tools": ["x"]}, "unjudged"),
        ({**RULES, "forbidden_tools": ["a"]}, "failed"),
        (not_({**RULES, "forbidden_tools": ["a"]}), "passed"),
        ({**RULES, "max_tool_calls": 2}, "unjudged"),
        ({**RULES, "max_tool_calls": 1}, "failed"),
        ({**RULES, "max_tool_calls": 5}, "passed"),  # by its own report
        ({**RULES, "must_use_tools": ["a"], "min_tool_calls": 2, "tool_order": ["a", "b"]}, "passed"),
        ({**RULES, "must_use_tools": ["x"]}, "failed"),
        (not_({**RULES, "must_use_tools": ["x"]}), "unjudged"),
        (not_({**RULES, "must_use_tools": ["x"], "forbidden_tools": ["a"]}), "passed"),
        ({**RULES, "min_tool_calls": 3}, "failed"),
        ({**RULES, "check": "no_repeated_actions"}, "unjudged"),
        ({**RULES, "check": "efficient_tool_use"}, "unjudged"),
        ({**RULES, "check": "no_errors"}, "unjudged"),
        # Groups.
        (group("none_of", X_CALLED), "unjudged"),
        (group("none_of", A_CALLED), "failed"),
        (group("none_of", NO_X), "failed"),
        (group("none_of", group("none_of", X_CALLED)), "failed"),
        (group("none_of", group("any_of", X_CALLED, {"type": "contains", "value": "zzz"})), "unjudged"),
        (group("all_of", X_CALLED, negate=True), "unjudged"),
        (group("all_of", A_CALLED, NO_X), "unjudged"),
        (group("all_of", X_CALLED, NO_X), "failed"),
        (group("any_of", A_CALLED, NO_X), "passed"),
        (group("any_of", X_CALLED, NO_X), "unjudged"),
    ],
)
def test_a_verdict_that_unreported_calls_could_change_is_unjudged(
    judge: Judge, given: dict[str, Any], outcome: str
) -> None:
    seen: dict[str, Any] = {"calls": ["a", "b"], "usage": Usage(tool_calls=5)}
    verdict = judge(given, "text", **seen)
    assert verdict.outcome == outcome, verdict.message
    if outcome == "unjudged":
        assert "the agent says it made 5 tool calls but told of 2, so " in verdict.message
        assert "can't be shown" in verdict.message


@pytest.mark.parametrize("claimed", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "given",
    [
        NO_X,
        not_(X_CALLED),
        {**A_CALLED, "times": 1},
        {**RULES, "forbidden_tools": ["x"], "check": "no_errors", "max_tool_calls": 2},
        group("none_of", X_CALLED),
    ],
)
def test_an_agent_that_describes_all_calls_is_trusted(judge: Judge, given: dict[str, Any], claimed: int | None) -> None:
    assert judge(given, calls=["a", "b"], usage=Usage(tool_calls=claimed)).passed


def test_an_unreported_call_may_belong_to_any_turn(judge: Judge) -> None:
    turns = [Turn(turn=number, input="hi", output="ho") for number in (1, 2)]
    seen: dict[str, Any] = {"turns": turns, "calls": ["a"], "usage": Usage(tool_calls=2), "turn": 2}
    assert judge(NO_X, **seen).outcome == "unjudged"
    assert judge(NO_X, **{**seen, "usage": Usage(tool_calls=1)}).outcome == "passed"


def test_the_reason_says_what_is_not_shown(judge: Judge) -> None:
    seen: dict[str, Any] = {"usage": Usage(tool_calls=1)}
    begin = "the agent says it made 1 tool call but told of none, so "
    assert judge(NO_X, **seen).message == f"{begin}that `x` was not called can't be shown"
    often = {**X_CALLED, "times": 0}
    assert judge(often, **seen).message == f"{begin}that `x` was not called can't be shown"
    rules = judge({**RULES, "check": "no_errors"}, **seen)
    assert rules.message == f"{begin}whether it kept to `no_errors` can't be shown"


AGENT = """
    def run(prompt):
        told = [{"name": "look"}] if prompt != "forbidden" else [{"name": "delete"}]
        return {"output": "hello", "tool_calls": told, "usage": {"tool_calls": 1 if prompt == "honest" else 3}}
"""


def test_calls_that_nobody_saw_do_not_pass_for_none(project: Project) -> None:
    project.write("agent.py", AGENT)
    check = {"type": "not_tool_called", "name": "delete"}
    none = {"type": "none_of", "assertions": [{"type": "tool_called", "name": "delete"}]}
    cases: list[dict[str, Any]] = [
        {"id": "honest", "input": "honest", "assert": [check, none]},
        {"id": "silent", "input": "silent", "assert": check},
        {"id": "group", "input": "silent", "assert": none},
        {"id": "forbidden", "input": "forbidden", "assert": check},
        {"id": "seen", "input": "silent", "assert": {"type": "tool_called", "name": "look"}},
        {"id": "words", "input": "silent", "expectations": ["the delete_all function was not called"]},
    ]
    ran = project.test(project.cases(*cases), "-n", "agent.py:run")
    assert ran.code == 1
    wanted = {"honest": "passed", "silent": "error", "group": "error", "forbidden": "failed", "seen": "passed"}
    assert ran.statuses == {**wanted, "words": "error"}
    silent = ran.results["silent"]
    assert silent["blame"] == "judge"
    assert silent["error"] == (
        "the agent says it made 3 tool calls but told of 1, so that `delete` was not called can't be shown"
    )


def test_tools_that_nobody_saw_do_not_pass_for_allowed_ones(project: Project) -> None:
    project.write("agent.py", AGENT)
    limits = {"constraints": {"allowed_tools": ["look"]}}
    cases = [{"id": name, "input": name, **limits} for name in ("honest", "silent", "forbidden")]
    ran = project.test(project.cases(*cases), "-n", "agent.py:run")
    assert ran.statuses == {"honest": "passed", "silent": "error", "forbidden": "failed"}
    assert ran.results["silent"]["blame"] == "judge"
    assert "`allowed_tools` can't be shown" in ran.results["silent"]["error"]


@pytest.mark.parametrize("python", [False, True], ids=["in-process", "worker"])
def test_calls_in_a_reply_with_an_unknown_key_are_not_described(project: Project, python: bool) -> None:
    project.write(
        "agent.py",
        """
        def answer(prompt):
            call = {"name": "delete_all", "arguments": {}}
            return {"output": "done", "tool_calls": [call], "latency_ms": 3}
        """,
    )
    config = {"entry": "agent.py:answer", **({"python": sys.executable} if python else {})}
    suite = project.suite(
        [{"name": "a", "type": "custom", "config": config}],
        [
            {"id": "absence", "assertions": [{"type": "not_tool_called", "name": "delete_all"}]},
            {"id": "allowed", "constraints": {"allowed_tools": ["search"]}},
            {"id": "rules", "assertions": [{**RULES, "forbidden_tools": ["delete_all"]}]},
            {"id": "exact", "assertions": [{"type": "contains", "value": "done"}]},
        ],
    )
    ran = project.test(suite)
    assert ran.statuses == {"absence": "error", "allowed": "error", "rules": "error", "exact": "passed"}
    for one in ran.results.values():
        assert any(warning.startswith("the answer has `latency_ms` beside") for warning in one["warnings"])


HIDING = """
    def beside_output(prompt):
        return {"output": "hello", "tool_calls": [{"name": "search", "result": "found"}], "sources": []}

    def beside_answer(prompt):
        return {"answer": "hello", "tool_calls": [{"name": "search", "result": "found"}]}
"""
SEARCHED: list[dict[str, Any]] = [
    {"type": "tool_called", "name": "search"},
    {"type": "tool_called", "name": "search", "times": 1},
    {"type": "tool_result", "name": "search", "value": "found"},
    {"type": "tool_order", "tools": ["search"]},
    {**RULES, "must_use_tools": ["search"]},
    {**RULES, "min_tool_calls": 1},
    {**RULES, "check": "no_errors"},
    NO_X,
]


@pytest.mark.parametrize("function", ["beside_output", "beside_answer"])
def test_calls_that_an_unknown_key_hides_are_unjudged_either_way(project: Project, function: str) -> None:
    """They were told of, and ATP did not read them: no verdict on them is known, for the agent or against it."""
    project.write("agent.py", HIDING)
    both = [*SEARCHED, *map(not_, SEARCHED), group("all_of", *SEARCHED), group("none_of", *SEARCHED)]
    cases = [{"id": str(number), "input": "hi", "assert": check} for number, check in enumerate(both)]
    ran = project.test(project.cases(*cases), "-n", f"agent.py:{function}")
    assert ran.code == 3
    assert {(one["status"], one["blame"]) for one in ran.results.values()} == {("error", "judge")}
    assert all("tool calls in it that were not read" in one["error"] for one in ran.results.values())
    assert all("none of its parts was read" in one["warnings"][0] for one in ran.results.values())


def test_data_that_looks_like_no_calls_is_an_answer(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return {'answer': 1, 'tool_calls': []}")
    ran = project.test(project.cases({"id": "a", "input": "hi", "assert": NO_X}), "-n", "agent.py:run")
    assert ran.statuses == {"a": "passed"}
    assert "none of its parts was read" not in str(ran.results["a"])
