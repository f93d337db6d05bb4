"""What is known about the checks of a case before it runs."""

from typing import Any

import pytest

from atp.checks.before_run import deciders, met, needs, unjudgeable
from atp.suite.capabilities import Capabilities
from atp.suite.case import Case


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
def test_a_limit_needs_an_agent_that_can_report_it(
    limits: dict[str, Any], capabilities: Capabilities, observable: bool
) -> None:
    checkpoint = {"id": "c", "assertion": {"type": "contains", "value": "x"}}
    raw = {"id": "a", "messages": "x", "constraints": limits, "checkpoints": [checkpoint]}
    assert all(met(need, capabilities) for need in needs(Case.model_validate(raw))) is observable


def test_a_missing_script_is_known_before_a_run() -> None:
    missing = {"type": "any_of", "assertions": [{"type": "script", "script": "scripts:no.where"}]}
    raw = {"id": "a", "messages": "x", "assertions": [missing]}
    (problem,) = unjudgeable(Case.model_validate(raw), [])
    assert "no.where" in problem or "scripts/no.py" in problem
    assert list(unjudgeable(Case.model_validate({"id": "a", "messages": "x", "expected": 1}), [])) == []


@pytest.mark.parametrize(
    ("assertion", "needed"),
    [
        ({"type": "tool_called", "name": "a"}, False),
        ({"type": "tool_called", "name": "a", "times": 0}, True),
        ({"type": "tool_called", "name": "a", "negate": True}, True),
        ({"type": "not_tool_called", "name": "a"}, True),
        ({"type": "not_tool_called", "name": "a", "negate": True}, False),
        ({"type": "none_of", "assertions": [{"type": "tool_called", "name": "a"}]}, True),
        ({"type": "none_of", "negate": True, "assertions": [{"type": "tool_called", "name": "a"}]}, False),
        ({"type": "any_of", "assertions": [{"type": "not_tool_called", "name": "a"}]}, True),
        ({"type": "tool_order", "tools": ["a"], "negate": True}, True),
        ({"type": "tool_result", "name": "a", "negate": True}, True),
        ({"type": "tool_result", "name": "a"}, False),
        ({"type": "behavior", "check": "no_errors"}, True),
        ({"type": "contains", "value": "a", "negate": True}, False),
    ],
)
def test_a_check_of_absence_needs_an_agent_that_reports_tool_calls(assertion: dict[str, Any], needed: bool) -> None:
    case = Case.model_validate({"id": "a", "messages": "x", "assertions": [assertion]})
    assert [need.what for need in needs(case)] == (["tool_calls"] if needed else [])


@pytest.mark.parametrize(
    ("expectation", "needed"),
    [
        ("the delete_all function was not called", True),
        ("no errors", True),
        ("no tools were called", True),
        ("warm_ocean was called at most once", True),
        ("warm_ocean was called at least twice", True),
        ("the warm_ocean function was called", False),  # which just fails where nothing is seen
        ('the response contains "foo"', False),
        ("the file x.txt exists", False),
        ("it is polite", False),
    ],
)
def test_expectations_need_what_their_exact_form_needs(expectation: str, needed: bool) -> None:
    found = list(needs(Case.model_validate({"id": "c", "input": "hi", "expectations": [expectation]})))
    assert {need.what for need in found} == ({"tool_calls"} if needed else set())
    assert all(not met(need, Capabilities(tool_calls=False)) for need in found)


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"assertions": [{"type": "contains", "value": "x"}]}, []),
        ({"expectations": ["no errors"]}, []),
        ({"expectations": ["it is polite"]}, [("assessor", None)]),
        ({"assertions": [{"type": "llm_eval", "criteria": "polite"}]}, [("assessor", None)]),
        ({"assertions": [{"type": "llm_eval", "criteria": "polite", "judge": "me"}]}, [("assessor", "me")]),
        (
            {"assertions": [{"type": "any_of", "assertions": [{"type": "agent", "use": "agents:checker"}]}]},
            [("validator", "checker")],
        ),
        ({"assertions": [{"type": "script", "script": "scripts:a.b"}]}, []),
    ],
)
def test_the_judges_that_a_case_needs(case: dict[str, Any], expected: list[tuple[str, str | None]]) -> None:
    found = deciders(Case.model_validate({"id": "a", "input": "x", **case}))
    assert [(one.role, one.name) for one in found] == expected
