"""The CTRF report: statuses, counts, flakiness. That it keeps to the published schema: test_published_schemas.py."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.schemas.published import ctrf_schema

from atp.report.formats.ctrf import CtrfReport
from atp.suite.result import CaseResult


def written(tmp_path: Path, story: Any, cases: list[CaseResult], **end: Any) -> dict[str, Any]:
    path = tmp_path / "report.ctrf.json"
    report = CtrfReport(path)
    report.start(story.info())
    report.skipped("tests/expense.jsonl", story.skipped())
    for case in cases:
        report.case(case)
    report.end(story.end(**end))
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


@pytest.mark.parametrize("name", ["troubles", "repeated", "document"])
def test_it_keeps_to_the_standard(tmp_path: Path, story: Any, name: str, request: pytest.FixtureRequest) -> None:
    found = written(tmp_path, story, request.getfixturevalue(name), reason="interrupted")
    ctrf_schema().validate(found)
    summary, tests = found["results"]["summary"], found["results"]["tests"]
    assert summary["tests"] == len(tests)
    for status in ("passed", "failed", "skipped", "pending", "other"):
        assert summary[status] == sum(one["status"] == status for one in tests)
    assert len({one["id"] for one in tests if "id" in one}) == len(tests) - 1  # the last says how the run ended


def test_statuses(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    tests = written(tmp_path, story, troubles)["results"]["tests"]
    assert {one["name"].partition(":")[0]: (one["status"], one["rawStatus"]) for one in tests} == {
        "wrong": ("failed", "failed"),
        "slow": ("failed", "timeout"),
        "boom": ("failed", "error"),
        "gone": ("other", "error"),
        "unjudged": ("other", "error"),
        "blocked": ("other", "blocked"),
        "cancelled": ("other", "cancelled"),
        "unchecked": ("passed", "passed"),
        "dialogue": ("failed", "failed"),
        "later": ("skipped", "skipped"),
    }


def test_flaky_means_that_runs_differ(tmp_path: Path, story: Any, repeated: list[CaseResult]) -> None:
    results = written(tmp_path, story, repeated)["results"]
    assert {one["name"]: one.get("flaky") for one in results["tests"]} == {
        "T001": False,
        "T002": True,
        "T003": True,
        "later": None,
    }
    assert results["summary"]["flaky"] == 2
