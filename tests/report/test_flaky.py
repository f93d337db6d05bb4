"""Flaky cases in reports: whose fault it is stands beside the result, and re-judging changes it."""

import json
from typing import Any

import pytest
from tests.engine.support.project import Project

AGENT = """
    def run(prompt, context):
        return "yes" if context["run"] != 2 else "no"
"""
FLAGS = ["-n", "agent.py:run", "--runs", "3"]


def results(project: Project, name: str = "report.json") -> dict[str, Any]:
    read = json.loads((project.folder / name).read_text("utf-8"))
    return {one["id"]: one for one in read["results"]}


def test_an_exact_check_blames_the_agent_in_every_report(project: Project) -> None:
    project.write("agent.py", AGENT)
    file = project.cases({"id": "a", "input": "a", "assert": [{"type": "contains", "value": "yes"}]}, "steady")
    ran = project.atp("test", file, *FLAGS, "-o", "report.json", "-o", "report.md", "-o", "report.html")
    assert ran.code == 1
    assert "flaky, blame: agent" in ran.out
    assert results(project)["a"]["flaky"] == {"blame": "agent"}
    assert "flaky" not in results(project)["steady"]
    assert "flaky, blame: agent" in (project.folder / "report.md").read_text("utf-8")
    again = project.test(file, *FLAGS)
    assert again.results["a"]["flaky"] == {"blame": "agent"}


JUDGES = """
    import pathlib

    def verdicts(asked, met):
        answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
        shown = {"met": met(answer), "reason": "because", "evidence": [answer]}
        return {"verdicts": [{"number": one["number"], **shown} for one in asked["expectations"]]}

    def steady(asked):
        return verdicts(asked, lambda answer: answer == "yes")

    def moody(asked):
        asked_before = pathlib.Path("asked")
        number = int(asked_before.read_text()) if asked_before.exists() else 0
        asked_before.write_text(str(number + 1))
        return verdicts(asked, lambda answer: number % 2 == 0)
"""


@pytest.mark.parametrize(("judge", "culprit"), [("steady", "agent"), ("moody", "judge")])
def test_judging_again_tells_the_judge_from_the_agent(project: Project, judge: str, culprit: str) -> None:
    project.write("agent.py", AGENT)
    project.write("scripts/house.py", JUDGES)
    file = project.cases({"id": "a", "input": "a", "expectations": ["The guest feels welcome"]})
    ran = project.test(file, *FLAGS, "--assessor", f"scripts:house.{judge}", "--no-judge-cache")
    assert ran.results["a"]["status"] == "failed"
    assert ran.results["a"]["flaky"] == {"blame": "agent or judge"}
    assert "atp recheck --runs 3 tells which" in project.atp("report", "last", "-v").out
    again = project.atp("recheck", "last", "--runs", "3", "-o", "again.json")
    assert results(project, "again.json")["a"]["flaky"] == {"blame": culprit}, again.err
    assert f"flaky, blame: {culprit}" in again.out
