"""Which checks a case has: assertions, expected output, expected artifacts, expectations."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from atp.checks.case_checks import assertions_of, check_case
from atp.checks.evidence import Evidence
from atp.suite.case import Case
from atp.suite.result import Verdict

MakeEvidence = Callable[..., Evidence]


def verdicts(evidence: MakeEvidence, case: dict[str, Any], output: Any) -> list[Verdict]:
    seen = evidence(output, case=case)
    return asyncio.run(check_case(seen.case, seen))


@pytest.mark.parametrize(
    ("case", "output", "outcomes"),
    [
        ({}, "anything", []),
        ({"expected": "OK"}, "OK", ["passed"]),
        ({"expected": "OK"}, "no", ["failed"]),
        ({"expected": {"a": {"$gt": 1}}}, 'so {"a": 2}', ["passed"]),
        ({"expected": None}, None, ["passed"]),
        ({"expected": None}, "something", ["failed"]),
        ({"expected": False}, "false", ["passed"]),
        # Assertions win over `expected`.
        ({"expected": "OK", "assertions": [{"type": "contains", "value": "n"}]}, "no", ["passed"]),
        ({"expected": "OK", "assertions": {"type": "contains", "value": "n"}}, "no", ["passed"]),
        ({"assertions": []}, "no", []),
        # Expectations in words are never passed over.
        ({"expectations": ["it is polite"]}, "no", ["unjudged"]),
        ({"expectations": ["it is polite"], "expected": "OK"}, "OK", ["passed", "unjudged"]),
    ],
)
def test_checks_of_a_case(evidence: MakeEvidence, case: dict[str, Any], output: Any, outcomes: list[str]) -> None:
    assert [one.outcome for one in verdicts(evidence, case, output)] == outcomes


def task(expected: list[str], assertions: list[dict[str, Any]] | None = None) -> Case:
    raw = {"id": "a", "task": {"description": "x", "expected_artifacts": expected}, "assertions": assertions or []}
    return Case.model_validate(raw)


def test_expected_artifacts_are_checked_like_artifact_exists(evidence: MakeEvidence) -> None:
    case = {"messages": [], "task": {"description": "x", "expected_artifacts": ["a.txt", "b.txt"]}}
    found = verdicts(evidence, case, "done")
    assert [(one.type, one.name, one.outcome) for one in found] == [
        ("artifact_exists", "a.txt", "failed"),
        ("artifact_exists", "b.txt", "failed"),
    ]


@pytest.mark.parametrize(
    ("assertions", "names"),
    [
        ([], ["a.txt", "b.txt"]),
        ([{"type": "artifact_exists", "path": "a.txt"}], ["a.txt", "b.txt"]),
        ([{"type": "artifact_exists", "path": "./a.txt", "contains": "x"}], ["./a.txt", "b.txt"]),
        ([{"type": "artifact_exists", "path": "a.txt", "negate": True}], ["a.txt", "a.txt", "b.txt"]),
        ([{"type": "artifact_exists", "path": "c.txt"}], ["c.txt", "a.txt", "b.txt"]),
    ],
)
def test_an_artifact_exists_on_an_expected_artifact_counts_once(
    assertions: list[dict[str, Any]], names: list[str]
) -> None:
    found = assertions_of(task(["a.txt", "b.txt", "a.txt"], assertions))
    assert [getattr(one, "path", None) for one in found] == names
