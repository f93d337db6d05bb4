"""The agents of a run side by side, in the console, in Markdown and in JSON."""

import json
from typing import Any

import pytest
from tests.engine.support.project import Project

from atp.report.records.report import read_report

AGENT = """
    def answer(prompt, options):
        good, number = options["good"], int(prompt.split()[-1])
        return "yes" if number < good else "no"
"""


def suite(project: Project, good: list[int], cases: int) -> str:
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:answer"}, "matrix": {"good": good}}
    check = [{"type": "equals", "value": "yes"}]
    return project.suite(
        [agent], [{"id": f"c{n}", "input": f"question {n}", "assertions": check} for n in range(cases)]
    )


def grid(project: Project, *call: str) -> dict[str, Any]:
    ran = project.atp("test", *call, "-o", "r.json")
    assert ran.code in (0, 1), ran.err
    found = json.loads((project.folder / "r.json").read_text("utf-8"))
    read_report((project.folder / "r.json").read_bytes())  # fits its own records
    assert "grid" in found
    made: dict[str, Any] = found["grid"]
    return made


def test_json_has_every_case_with_every_agent(project: Project) -> None:
    found = grid(project, suite(project, [5, 2], 5), "--runs", "2")
    assert [one["agent_id"] for one in found["agents"]] == ["a [good=5]", "a [good=2]"]
    assert [one["pass_rate"] for one in found["agents"]] == [100.0, 40.0]
    low, high = found["agents"][1]["pass_rate_interval"]
    assert low < 40 < high
    assert found["cases"][4] == {
        "id": "c4",
        "file": "suite.yaml",
        "results": [{"status": "passed", "passed": 2, "runs": 2}, {"status": "failed", "passed": 0, "runs": 2}],
    }
    assert found["agents"][0]["compared_with_first"] is None
    compared = found["agents"][1]["compared_with_first"]
    assert (compared["class"], compared["observed"], compared["difference"]) == ("inconclusive", "worse", -60.0)
    assert (compared["cases"], compared["regressed"], compared["improved"]) == (5, 0, 0)


def test_a_run_with_one_agent_has_no_grid(project: Project) -> None:
    ran = project.atp("test", suite(project, [5], 2), "-o", "r.json", "-o", "r.md")
    assert ran.code == 0, ran.err
    assert "grid" not in json.loads((project.folder / "r.json").read_text("utf-8"))
    assert "Side by Side" not in (project.folder / "r.md").read_text("utf-8")
    assert "Compared with" not in ran.out


def test_p_values_are_corrected_for_the_number_of_columns(project: Project) -> None:
    # 6 cases that differ one way: p = 2/64 by itself, which two comparisons make 4/64.
    alone = grid(project, suite(project, [6, 0], 6))["agents"][1]["compared_with_first"]
    assert (alone["class"], alone["p_value"]) == ("regressed", pytest.approx(2 / 64))
    first, second = grid(project, suite(project, [6, 0, 5], 6))["agents"][1:]
    assert first["compared_with_first"]["p_value"] == pytest.approx(4 / 64)
    assert first["compared_with_first"]["class"] == "inconclusive"
    assert second["compared_with_first"]["p_value"] == 1.0


def test_the_console_shows_a_table(project: Project) -> None:
    ran = project.atp("test", suite(project, [8, 0, 7], 8), "-q")
    assert "    Case  A  B  C\n    c0    ✓  ✗  ✓\n" in ran.out
    assert "    c7    ✓  ✗  ✗\n" in ran.out
    assert (
        "  Compared with A, corrected for 2 comparisons:\n"
        "    B  -100 points over 8 cases, worse (p = 0.016)\n"
        "    C  -12.5 points over 8 cases, which can be chance (p = 1)\n"
    ) in ran.out


def test_of_many_cases_those_that_differ_are_shown(project: Project) -> None:
    ran = project.atp("test", suite(project, [30, 28], 30), "-q", "-o", "r.md")
    assert (
        "    Case  A  B\n    c28   ✓  ✗\n    c29   ✓  ✗\n    … and 28 cases in which all come to the same\n" in ran.out
    )
    text = (project.folder / "r.md").read_text("utf-8")
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "| c29 | ✅ 1/1 | ❌ 0/1 |" in rows
    assert "| **Pass rate** | 100% | 93.3% |" in rows
    assert "Compared with a \\[good=30\\]" in text


def test_suites_with_an_agent_each_have_no_table(project: Project) -> None:
    suite(project, [5], 1)
    for name in ("one", "two"):
        agent = {"name": name, "type": "custom", "config": {"entry": "agent.py:answer", "good": 3}}
        project.suite([agent], [{"id": name, "input": "question 1"}], file=f"{name}.yaml")
    ran = project.atp("test", "one.yaml", "two.yaml")
    assert "  By agent:\n    one  1 of 1" in ran.out
    assert "Compared with" not in ran.out
