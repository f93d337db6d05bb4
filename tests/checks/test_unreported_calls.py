"""An agent that reports more tool calls than it tells of, from the command line."""

from typing import Any

from tests.engine.support.project import Project

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
