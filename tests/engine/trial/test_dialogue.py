"""Dialogues with a simulated user: the loop, checkpoints, every way to end, and whose fault it is."""

from typing import Any

import pytest
from tests.engine.support.project import Project, Ran

EXPENSE = """
    def run(prompt, context):
        if "expense" in prompt:
            return "What type of expense is it?"
        if "travel" in prompt:
            return {"output": "Shall I file it?", "tool_calls": [{"name": "create_expense", "arguments": {}}]}
        if prompt == "early":
            return "submitted"
        if prompt == "break":
            raise ValueError("broken")
        return "It is submitted."
"""
SIMULATOR = """
    LINES = ["I have an expense", "it was travel, $3500", "yes, please"]

    def user(payload):
        lines = payload.get("lines") or LINES
        turn = payload["turn_number"]
        if turn > len(lines):
            return {"input": "", "goal_achieved": True}
        line = lines[turn - 1]
        if line == "hang":
            import time; time.sleep(60)
        if line == "raise":
            raise ValueError("no idea")
        return line if isinstance(line, (dict, list)) else {"input": line, "goal_achieved": False}
"""
POINTS: list[dict[str, Any]] = [
    {"id": "ask_type", "assertion": {"type": "contains", "value": "type"}},
    {"id": "call_create", "after": ["ask_type"], "assertion": {"type": "tool_called", "name": "create_expense"}},
    {"id": "confirm", "after": ["call_create"], "assertion": {"type": "contains", "value": "submitted"}},
]


def hold(
    project: Project, lines: list[Any] | None = None, *flags: str, points: Any = None, **case: Any
) -> dict[str, Any]:
    """One dialogue, whose simulator says these lines."""
    project.write("agent.py", EXPENSE)
    project.write("scripts/sim.py", SIMULATOR)
    metadata = {"persona": "new employee", "goal": "submit an expense", **({"lines": lines} if lines else {})}
    record = {"id": "d", "simulator": {"options": {"metadata": metadata}}, "checkpoints": points or POINTS, **case}
    ran = project.test(project.cases(record), "-n", "agent.py:run", "--simulator", "scripts:sim.user", *flags)
    return found(ran)


def found(ran: Ran) -> dict[str, Any]:
    assert ran.results, ran.err
    result = ran.results["d"]
    assert ran.code == {"passed": 0, "failed": 1, "timeout": 1}.get(
        result["status"], 1 if result.get("blame") == "agent" else 3
    )
    return result


def test_the_documents_expense_dialogue_reaches_three_checkpoints_in_three_turns(project: Project) -> None:
    result = hold(project)
    assert result["status"] == "passed"
    assert [(one["id"], one["reached_at_turn"], one["passed"]) for one in result["checkpoints"]] == [
        ("ask_type", 1, True),
        ("call_create", 2, True),
        ("confirm", 3, True),
    ]
    assert result["total_turns"] == 3
    assert result["missing_checkpoints"] == []
    assert [(one["turn"], one["input"]) for one in result["turns"]][:1] == [(1, "I have an expense")]


def test_turn_one_uses_the_cases_own_input(project: Project) -> None:
    result = hold(project, ["unused", "it was travel", "yes"], input="an expense, please")
    assert [one["input"] for one in result["turns"]] == ["an expense, please", "it was travel", "yes"]
    assert result["status"] == "passed"


def test_checkpoints_of_one_turn_may_build_on_each_other_in_any_order(project: Project) -> None:
    points = [
        {"id": "second", "after": ["first"], "assertion": {"type": "contains", "value": "type"}},
        {"id": "first", "assertion": {"type": "contains", "value": "expense"}},
    ]
    result = hold(project, points=points)
    assert [one["reached_at_turn"] for one in result["checkpoints"]] == [1, 1]


@pytest.mark.parametrize(
    ("lines", "case", "status", "error"),
    [
        (["I have an expense"], {}, "failed", "missing checkpoints: call_create, confirm"),
        (
            ["I have an expense", {"input": "thanks", "goal_achieved": True}],
            {},
            "failed",
            "missing checkpoints: call_create, confirm",
        ),
        (["a", "b", "c", "d"], {"max_turns": 3}, "failed", "max turns (3) exceeded"),
        ([str(number) for number in range(30)], {}, "failed", "max turns (20) exceeded"),
        (["early", "I have an expense", "travel"], {"max_turns": 3}, "failed", "checkpoint confirm failed"),
        (["hang"], {"timeout": "1s"}, "error", "timeout after 1s while simulating"),
        (["I have an expense", "raise"], {}, "error", "simulator error: scripts:sim.user raised ValueError: no idea"),
    ],
)
def test_every_way_to_end(project: Project, lines: list[Any], case: dict[str, Any], status: str, error: str) -> None:
    result = hold(project, lines, **case)
    assert (result["status"], result["error"]) == (status, error)


@pytest.mark.parametrize(
    "line",
    [
        {"input": "", "goal_achieved": False},
        {"input": "Assistant: how can I help?"},
        {"input": "hi", "message": "hi"},
        {"goal_achieved": "yes", "input": "hi"},
        ["hi"],
    ],
)
def test_a_simulator_that_breaks_its_contract_is_blamed(project: Project, line: Any) -> None:
    result = hold(project, ["I have an expense", line])
    assert (result["status"], result["blame"]) == ("error", "simulator")
    assert result["error"].startswith("simulator error: ")


def test_a_simulator_that_goes_round_in_circles_is_blamed(project: Project) -> None:
    result = hold(project, ["same"] * 5)
    assert (result["status"], result["blame"], result["total_turns"]) == ("error", "simulator", 2)


def test_the_agents_own_trouble_is_its_own(project: Project) -> None:
    raised = hold(project, ["I have an expense", "break"])
    assert (raised["status"], raised["blame"]) == ("error", "agent")
    assert raised["error"] == "agent error: ValueError: broken"
    assert [one["passed"] for one in raised["checkpoints"]] == [True, False, False]


def test_a_dialogue_ends_when_all_required_checkpoints_are_reached(project: Project) -> None:
    never = {"id": "never", "required": False, "assertion": {"type": "contains", "value": "zebra"}}
    result = hold(project, ["I have an expense"] * 9, points=[POINTS[0], never], max_turns=9)
    assert (result["status"], result["total_turns"]) == ("passed", 1)


def test_optional_checkpoints_may_be_missed(project: Project) -> None:
    points = [POINTS[0], {"id": "never", "required": False, "assertion": {"type": "contains", "value": "zebra"}}]
    result = hold(project, points=points)
    assert result["status"] == "passed"
    assert result["missing_checkpoints"] == []
    assert [one["passed"] for one in result["checkpoints"]] == [True, False]


def test_where_nothing_had_to_be_reached_and_nothing_was_the_turn_limit_is_no_success(project: Project) -> None:
    points = [{"id": "never", "required": False, "assertion": {"type": "contains", "value": "zebra"}}]
    result = hold(project, ["a", "b"], points=points, max_turns=2)
    assert (result["status"], result["error"]) == ("failed", "max turns (2) exceeded")
    assert hold(project, ["a"], points=points)["status"] == "passed"  # its goal is achieved


def test_a_checkpoint_that_waited_in_vain_is_told_for_what(project: Project) -> None:
    never = {"id": "never", "required": False, "assertion": {"type": "contains", "value": "zebra"}}
    result = hold(project, ["I have an expense"], points=[never, {**POINTS[0], "after": ["never"]}])
    assert (result["status"], result["error"]) == ("failed", "missing checkpoints: ask_type")
    (told,) = [one["message"] for one in result["assertions"]]
    assert told == "checkpoint `ask_type` held, but never, which must come first, was not reached"


def test_a_missed_checkpoint_shows_its_assertion_and_how_near_it_came(project: Project) -> None:
    points = [
        {"id": "greets", "description": "it greets", "assertion": {"type": "contains", "value": "good morning"}},
        {
            "id": "both",
            "assertion": {
                "type": "all_of",
                "assertions": [{"type": "contains", "value": "type"}, {"type": "contains", "value": "cheque"}],
            },
        },
    ]
    result = hold(project, ["I have an expense", "yes", "well"], points=points)
    greets, both = result["assertions"]
    assert greets["message"] == "checkpoint `greets` was not reached: it greets"
    (last,) = greets["assertions"]
    assert (last["type"], last["value"], last["where"]) == ("contains", "good morning", "turn 3")
    assert 'contain "good morning", found "It is submitted."' in last["message"]
    (nearest,) = both["assertions"]
    assert nearest["where"] == "turn 1"  # where one of its two parts held
    assert [part["passed"] for part in nearest["assertions"]] == [True, False]


def test_the_journal_has_the_simulated_user_and_why_it_said_what_it_said(project: Project) -> None:
    lines: list[Any] = [
        {"input": "I have an expense", "goal_achieved": False, "reasoning": "I begin."},
        {"input": "", "goal_achieved": True, "reasoning": "It asked, and that is enough."},
    ]
    hold(project, lines, points=[*POINTS[:1], {"id": "never", "assertion": {"type": "contains", "value": "zzz"}}])
    (trial,) = [line for line in project.journal() if line["type"] == "trial"]
    assert trial["result"]["simulated_user"] == {
        "persona": "new employee",
        "goal": "submit an expense",
        "turns": [
            {"turn": 1, "reasoning": "I begin."},
            {"turn": 2, "reasoning": "It asked, and that is enough.", "goal_achieved": True},
        ],
    }


def test_a_timeout_while_the_agent_works_is_the_agents(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    import time\n    time.sleep(60)\n")
    project.write("scripts/sim.py", SIMULATOR)
    record = {"id": "d", "simulator": {}, "checkpoints": POINTS, "timeout": "1s"}
    ran = project.test(project.cases(record), "-n", "agent.py:run", "--simulator", "scripts:sim.user")
    result = found(ran)
    assert (result["status"], result["error"]) == ("timeout", "timeout after 1s")


def test_nobody_to_play_the_user_is_said_before_anything_runs(project: Project) -> None:
    project.write("agent.py", EXPENSE)
    record = {"id": "d", "simulator": {"use": "workers.test.user-simulator"}, "checkpoints": POINTS}
    ran = project.test(project.cases(record), "-n", "agent.py:run")
    assert ran.code == 2
    assert "cases.jsonl:1:1" in ran.err
    assert "workers.test.user-simulator" in ran.err


BREAKS = {"type": "script", "script": "scripts:points.breaks"}
"""A check that can never be made."""


@pytest.mark.parametrize(
    ("points", "unjudged"),
    [
        ([{"id": "a", "required": False, "assertion": BREAKS}], "dialogue"),
        ([{"id": "a", "assertion": BREAKS}], "a"),
        (
            [
                {"id": "a", "required": False, "assertion": BREAKS},
                {"id": "b", "after": ["a"], "assertion": {"type": "contains", "value": "type"}},
            ],
            "b",
        ),
        (
            [
                {"id": "a", "required": False, "assertion": BREAKS},
                {"id": "b", "required": False, "after": ["a"], "assertion": {"type": "contains", "value": "nowhere"}},
                {"id": "c", "after": ["b"], "assertion": {"type": "contains", "value": "type"}},
            ],
            "c",
        ),
    ],
)
def test_no_agent_fails_because_a_checkpoint_was_not_judged(
    project: Project, points: list[dict[str, Any]], unjudged: str
) -> None:
    """Had it been judged, what comes after it might have been reached in time."""
    project.write("scripts/points.py", "def breaks(output):\n    raise ValueError('no idea')\n")
    result = hold(project, ["an expense", "yes"], points=points, max_turns=2)
    assert (result["status"], result["blame"]) == ("error", "judge")
    names = [one.get("name") or one["type"] for one in result["assertions"] if not one["passed"]]
    assert names == [unjudged]
