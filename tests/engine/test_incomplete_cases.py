"""Cases that a stop cuts short: they are never stable, no rate leaves out what did not run, and reports say so."""

import csv
import io
import json
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran

AGENT = """
def dear(prompt):
    return {"output": prompt, "usage": {"cost_usd": 1.0}}
"""
REPORTS = ("r.json", "r.md", "r.xml", "r.ctrf.json", "r.html")


@pytest.fixture
def cut(project: Project) -> Ran:
    """One case of five runs at a dollar each, and two dollars."""
    project.write("agent.py", AGENT)
    project.cases({"id": "dear", "input": "hi", "expected": "hi", "runs": 5})
    outputs = [word for name in REPORTS for word in ("-o", name)]
    return project.atp("test", "cases.jsonl", "-n", "agent.py:dear", "--budget-usd", "2", *outputs)


def test_the_console(cut: Ran) -> None:
    assert cut.code == 3
    assert "  Runs: 3/5 passed (60%), only 3 of 5 trials ran, consistency 1.00" in cut.out
    assert "  Runs:      3 of 5 planned, 60% passed" in cut.out
    assert "  Stable:    0 of 1 case" in cut.out
    assert "stopped before all its trials had run: 3 of 5 trials ran" in cut.out


def test_the_reports(cut: Ran, project: Project) -> None:
    report = json.loads((project.folder / "r.json").read_text())
    (result,) = report["results"]
    assert result["status"] == "cancelled"
    assert (result["runs"], result["planned"], result["passed"], result["pass_rate"]) == (3, 5, 3, 60.0)
    assert (result["stable"], result["classification"]) == (False, None)
    counted = report["summary"]
    assert (counted["total_runs"], counted["planned_runs"], counted["passed_runs"]) == (3, 5, 3)
    assert (counted["overall_pass_rate"], counted["stable_cases"], counted["unstable_cases"]) == (60.0, 0, 1)
    for name in ("r.md", "r.xml"):
        assert "only 3 of 5 trials ran" in (project.folder / name).read_text(), name
    tests = json.loads((project.folder / "r.ctrf.json").read_text())["results"]["tests"]
    (test,) = [one for one in tests if "id" in one]
    assert (test["extra"]["stability"]["planned"], test["extra"]["stability"]["stable"]) == (5, False)


def test_a_report_on_it_later_says_the_same(cut: Ran, project: Project) -> None:
    assert project.atp("report", "last", "-o", "later.json").code == 0
    now, later = (json.loads((project.folder / name).read_text()) for name in ("r.json", "later.json"))
    assert later["results"] == now["results"]
    assert later["summary"] == now["summary"]


def test_one_trial_of_four(project: Project) -> None:
    broken = {"name": "gone", "type": "http", "config": {"endpoint": "http://127.0.0.1:9/"}}
    project.suite([broken], [{"id": "gone", "input": "hi", "runs": 4}])
    call = ("test", "suite.yaml", "--max-errors", "1", "--retries", "0")
    ran = project.atp(*call, "-o", "r.json")
    assert ran.code == 3
    assert "  Runs: 0/4 passed (0%), only 1 of 4 trials ran" in ran.out
    (result,) = json.loads((project.folder / "r.json").read_text())["results"]
    assert (result["runs"], result["planned"], result["classification"]) == (1, 4, None)


def test_goes_on_where_it_was_cut(cut: Ran, project: Project) -> None:
    ran = project.test("cases.jsonl", "-n", "agent.py:dear", "--resume", "--budget-usd", "9")
    assert ran.code == 0, ran.err
    result: dict[str, Any] = ran.results["dear"]
    assert (result["runs"], result["pass_rate"], result["classification"]) == (5, 100.0, "stable")
    assert "planned" not in result
    assert "planned_runs" not in ran.summary


TOKENS = """
def talk(prompt, context):
    used = [
        {"total_tokens": 300},
        {"input_tokens": 15, "output_tokens": 5},
        {"total_tokens": 7, "input_tokens": 4, "output_tokens": 3},
        {},
    ]
    return {"output": prompt, "usage": used[(context["run"] - 1) % 4]}
"""


def test_all_formats_agree_on_tokens(project: Project) -> None:
    project.write("agent.py", TOKENS)
    project.cases({"id": "a", "input": "hi", "runs": 4})
    outputs = [word for name in ("r.json", "r.csv", "r.ctrf.json") for word in ("-o", name)]
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:talk", *outputs)
    assert "  Tokens:  327" in ran.out
    (result,) = json.loads((project.folder / "r.json").read_text())["results"]
    assert result["usage"]["total_tokens"] == 327
    rows = list(csv.DictReader(io.StringIO((project.folder / "r.csv").read_text())))
    assert [one["total_tokens"] for one in rows] == ["300", "20", "7", ""]
    (test,) = json.loads((project.folder / "r.ctrf.json").read_text())["results"]["tests"]
    assert test["extra"]["usage"]["total_tokens"] == 327
    stopped = project.test("cases.jsonl", "-n", "agent.py:talk", "--budget-tokens", "310")
    assert stopped.summary["stopped"] == "the budget is used up: 320 of 310 tokens"
