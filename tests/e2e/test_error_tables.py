"""Document 5's two error tables, row by row, each with its exact text. All rows are one file and one run."""

from typing import Any, NamedTuple

import pytest
from tests.engine.support.project import Project, Ran

AGENT = """
    import time

    def run(prompt):
        if prompt == "sleep":
            time.sleep(60)
        if prompt == "break":
            raise ValueError("out of paper")
        if prompt == "travel":
            return {"output": "Shall I file it?", "tool_calls": [{"name": "create_expense"}]}
        return {"expense": "What type is it?", "yes": "submitted"}.get(prompt, "I see.")
"""
SIMULATOR = """
    def user(told):
        lines, turn = told["lines"], told["turn_number"]
        if turn > len(lines):
            return {"input": "", "goal_achieved": True}
        if lines[turn - 1] == "raise":
            raise ValueError("no idea")
        return {"input": lines[turn - 1], "goal_achieved": False}
"""
CHECKPOINTS = [
    {"id": "ask_type", "assertion": {"type": "contains", "value": "type"}},
    {"id": "call_create", "after": ["ask_type"], "assertion": {"type": "tool_called", "name": "create_expense"}},
    {"id": "confirm", "after": ["call_create"], "assertion": {"type": "contains", "value": "submitted"}},
]


class Row(NamedTuple):
    """A row of a table: a case, and what its result says."""

    case: dict[str, Any]
    status: str
    error: str | None = None
    blame: str | None = None


def dialogue(*lines: str, **more: Any) -> dict[str, Any]:
    return {"simulator": {"options": {"metadata": {"lines": list(lines)}}}, "checkpoints": CHECKPOINTS, **more}


NUMBERS = [str(number) for number in range(25)]
ROWS = {
    # Standard mode
    "agent-timeout": Row({"input": "sleep", "timeout": "1s"}, "timeout", "timeout after 1s"),
    "agent-error": Row({"input": "break"}, "error", "agent error: ValueError: out of paper", "agent"),
    "assertion-failed": Row(
        {"input": "hello", "assertions": [{"type": "contains", "value": "Hi"}, {"type": "equals", "value": "I see."}]},
        "failed",
        'expected the output to contain "Hi", found "I see."',
    ),
    # Dynamic mode
    "all-checkpoints-reached": Row(dialogue("expense", "travel", "yes"), "passed"),
    "checkpoints-missing": Row(dialogue("expense"), "failed", "missing checkpoints: call_create, confirm"),
    "max-turns-exceeded": Row(dialogue(*NUMBERS), "failed", "max turns (20) exceeded"),
    "fewer-turns-exceeded": Row(dialogue(*NUMBERS, max_turns=2), "failed", "max turns (2) exceeded"),
    "timeout-exceeded": Row(dialogue("expense", "sleep", timeout="1s"), "timeout", "timeout after 1s"),
    "simulator-error": Row(
        dialogue("expense", "raise"),
        "error",
        "simulator error: scripts:sim.user raised ValueError: no idea",
        "simulator",
    ),
    "checkpoint-assertion-failed": Row(
        dialogue("yes", "expense", "travel", max_turns=3), "failed", "checkpoint confirm failed"
    ),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Everything, run once."""
    project = Project(tmp_path_factory.mktemp("tables"))
    project.write("agent.py", AGENT)
    project.write("scripts/sim.py", SIMULATOR)
    file = project.cases(*({"id": name, **row.case} for name, row in ROWS.items()))
    return project.test(file, "-n", "agent.py:run", "--simulator", "scripts:sim.user", "--parallel", "4")


@pytest.mark.parametrize("name", ROWS)
def test_row(ran: Ran, name: str) -> None:
    row, result = ROWS[name], ran.results[name]
    assert (result["status"], result.get("error"), result.get("blame")) == (row.status, row.error, row.blame)


def test_the_run_as_a_whole_has_failed(ran: Ran) -> None:
    assert ran.code == 1
    assert ran.results["assertion-failed"]["assertion_errors"] == [
        'expected the output to contain "Hi", found "I see."'
    ]
    counts = {name: ran.summary[name] for name in ("total", "passed", "failed", "errors")}
    assert counts == {"total": 10, "passed": 1, "failed": 8, "errors": 1}


@pytest.mark.parametrize(("given", "said"), [({}, "5m"), ({"timeout": "30s"}, "30s"), ({"timeout": "2m"}, "2m")])
def test_durations_are_said_as_the_document_says_them(project: Project, given: dict[str, Any], said: str) -> None:
    project.write("agent.py", AGENT)
    plan = project.atp("test", project.cases({"id": "a", "input": "x", **given}), "-n", "agent.py:run", "--dry-run")
    assert f"at most {said}\n" in plan.out
