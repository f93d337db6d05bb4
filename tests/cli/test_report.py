"""`atp report -k`: the part of a run that a search finds."""

import json

import pytest
from tests.engine.support.project import Project

AGENT = """
    def run(prompt):
        calls = [{"name": "pay", "arguments": {}}] if "pay" in prompt else []
        return {"output": prompt, "tool_calls": calls, "usage": {"cost_usd": len(prompt) / 1000}}
"""


@pytest.fixture(autouse=True)
def ran(project: Project) -> None:
    project.write("agent.py", AGENT)
    cases = [
        {"id": "good", "input": "pay now", "expected": "pay now", "tags": ["refund"]},
        {"id": "bad", "input": "pay later", "expected": "x", "tags": ["refund"]},
        {"id": "other", "input": "hello", "expected": "x"},
        {"id": "left-out", "input": "hello", "skip": True, "tags": ["refund"]},
    ]
    project.write("cases.jsonl", "\n".join(map(json.dumps, cases)))
    assert project.atp("test", "cases.jsonl", "-n", "agent.py:run", "--gate", "pass_rate >= 0.9", "-q").code == 1


def test_only_what_matches_is_reported(project: Project) -> None:
    assert project.atp("report", "-k", "tag:refund", "-o", "part.json").code == 0
    part = json.loads((project.folder / "part.json").read_text())
    assert [one["id"] for one in part["results"]] == ["good", "bad"]
    assert [one["id"] for one in part["skipped"]] == ["left-out"]
    counts = part["summary"]
    assert (counts["total"], counts["passed"], counts["failed"], counts["skipped"]) == (3, 1, 1, 1)
    assert "gates" not in part or part["gates"] == []
    assert project.atp("report", "-k", "tool:pay cost>0.008", "-o", "cost.json").code == 0
    assert [one["id"] for one in json.loads((project.folder / "cost.json").read_text())["results"]] == ["bad"]


def test_the_console_shows_what_matches(project: Project) -> None:
    out = project.atp("report", "-k", "-tag:refund").out
    assert "[other]" in out
    assert "[bad]" not in out
    assert "  Total:   1 test\n" in out
    assert "Not run" not in out
    assert "only 1 of 4 cases: those that match `-tag:refund`" in out
    good = project.atp("report", "-k", "status:passed").out
    assert "✓ [good]" in good
    assert "user: pay now" not in good
    assert "user: pay now" in project.atp("report", "-k", "status:passed", "-vv").out


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("tags:refund", "did you mean `tag`?"),
        ("cost>much", "`much` is none"),
        ("status:timeout", "matches `status:timeout`"),
        ("status:fail\x1b[31m", "there is no status"),
    ],
)
def test_what_finds_nothing_is_an_error(project: Project, query: str, told: str) -> None:
    ran = project.atp("report", "-k", query, "-o", "part.html")
    assert ran.code == 2
    assert told in ran.err
    assert "\x1b" not in ran.err
    assert not (project.folder / "part.html").exists()
