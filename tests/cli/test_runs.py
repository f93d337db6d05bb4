"""Runs after they have ended: `atp runs`, going on with a run that was stopped, and what failed in earlier ones."""

import json
import shlex
from typing import Any

import pytest
from tests.engine.support.project import Project

SPENDS = """
    def run(prompt):
        print(prompt, file=open("asked", "a"))
        return {"output": prompt, "usage": {"cost_usd": 0.01, "total_tokens": 100}}

    def some(prompt):
        if prompt.startswith("bad"):
            raise RuntimeError(prompt)
        return prompt
"""
AGENT = ["-n", "agent.py:run"]


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write("agent.py", SPENDS)


def runs(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(project.atp("runs", "--json").out)
    return found


@pytest.mark.parametrize("budget", [["--budget-usd", "0.025"], ["--budget-usd=0.025"], ["--budget-tokens", "250"]])
def test_going_on_needs_a_larger_budget(project: Project, budget: list[str]) -> None:
    file = project.cases(*"abcdef")
    ran = project.atp("test", file, *AGENT, *budget, "-o", "out.jsonl", "--quiet")
    assert ran.code == 3
    flag = budget[0].partition("=")[0]
    (line,) = [line for line in ran.out.splitlines() if "Go on with: " in line]
    again = line.partition("Go on with: ")[2].partition("  (run")[0]
    assert again == f"atp test {file} {' '.join(AGENT)} -o out.jsonl --quiet {flag} MORE --resume"
    refused = project.atp(*shlex.split(again)[1:])
    assert (refused.code, "'MORE'" in refused.err) == (2, True)
    assert project.atp(*shlex.split(again.replace("MORE", "1000"))[1:]).code == 0
    assert project.lines("asked") == list("abcdef")


def test_a_run_that_was_stopped_is_counted_against_its_plan(project: Project) -> None:
    file = project.cases(*"abcdef", {"id": "later", "input": "x", "skip": True})
    project.test(file, *AGENT, "--budget-usd", "0.025")
    (stopped,) = runs(project)
    assert (stopped["state"], stopped["passed"], stopped["total"], stopped["not_run"]) == ("stopped", 3, 7, 3)
    assert "stopped     3/7 passed" in project.atp("runs").out
    project.test(file, *AGENT, "--resume")
    (whole,) = runs(project)
    assert (whole["state"], whole["passed"], whole["total"], whole["not_run"]) == ("finished", 6, 7, 0)
    assert whole["at"] == stopped["at"]


def test_runs_of_a_path_that_is_not_there(project: Project) -> None:
    ran = project.atp("runs", "nowhere")
    assert ran.code == 2
    assert "nowhere" in ran.err


def test_runs_that_cannot_be_read_are_not_no_runs(project: Project) -> None:
    file = project.cases("a")
    project.test(file, *AGENT)
    journal = project.runs()[0] / "journal.jsonl"
    journal.unlink()
    journal.symlink_to("/proc/self/mem")
    for code, ran in (
        (3, project.atp("runs")),  # the other runs are listed
        (2, project.test(file, *AGENT, "--resume")),
        (2, project.test(file, *AGENT, "--only-failed")),
    ):
        assert ran.code == code
        assert "error[unreadable]" in ran.err
    folder = project.folder / "other/.atp/runs"
    folder.parent.mkdir(parents=True)
    folder.symlink_to(folder)
    project.write("other/atp.toml", "")
    ran = project.atp("runs", cwd=project.folder / "other")
    assert (ran.code, "error[unreadable]" in ran.err) == (2, True)


def test_only_failed_looks_at_all_that_was_run(project: Project) -> None:
    file = project.cases("good", "bad1", "bad2")
    agent = ["-n", "agent.py:some"]
    project.test(file, *agent)
    project.test(file, *agent, "--run", "good")
    assert sorted(project.test(file, *agent, "--only-failed").results) == ["bad1", "bad2"]
    project.write("agent.py", SPENDS.replace('"bad"', '"bad2"'))
    assert project.test(file, *agent, "--run", "bad1").code == 0
    assert sorted(project.test(file, *agent, "--only-failed").results) == ["bad2"]


def test_only_failed_never_says_that_what_did_not_run_has_passed(project: Project) -> None:
    file = project.cases(*"abcdef")
    assert project.test(file, *AGENT, "--budget-usd", "0.025").code == 3
    ran = project.test(file, *AGENT, "--only-failed")
    assert ran.code == 2
    assert "not everything has been run" in ran.err


def test_only_failed_knows_what_cases_ask_of_their_trials(project: Project) -> None:
    project.write("agent.py", "def run(prompt, context): return prompt if context['run'] > 1 else prompt.upper()")
    flaky = {"type": "equals", "value": "x"}
    unscored = {"scoring": {"quality_weight": 1, "completeness_weight": 0, "efficiency_weight": 0, "cost_weight": 0}}
    file = project.cases(
        {"id": "poor", "input": "X", "assert": {"type": "contains", "value": "X"}, "min_score": 90, **unscored},
        {"id": "enough", "input": "x", "assert": flaky, "pass_rate": 0.5},
        {"id": "too few", "input": "x", "assert": flaky, "pass_rate": 0.9},
        {"id": "good", "input": "X"},
    )
    first = project.test(file, *AGENT, "--runs", "3")
    assert first.statuses == {"poor": "failed", "enough": "passed", "too few": "failed", "good": "passed"}
    assert {one.get("status") for one in project.trials() if one["case"] == "poor"} == {None}  # the usual: passed
    again = project.test(file, *AGENT, "--runs", "3", "--only-failed")
    assert again.statuses == {"poor": "failed", "too few": "failed"}


def test_failures_at_the_end_name_their_agent(project: Project) -> None:
    agents = [{"name": name, "type": "custom", "config": {"entry": f"agent.py:{name}"}} for name in ("run", "some")]
    file = project.suite(agents, [{"id": "bad", "input": "bad"}])
    quiet = project.atp("test", file, "--quiet")
    assert quiet.code == 1
    assert "  ✗ [bad] – some: agent error: RuntimeError: bad  (suite.yaml:" in quiet.out
    alone = project.atp("test", file, "--quiet", "-n", "some")
    assert "  ✗ [bad]: agent error: RuntimeError: bad  (suite.yaml:" in alone.out


def test_a_secret_that_is_newer_than_a_run_is_not_listed(project: Project) -> None:
    project.atp("test", "-i", "open with sesame-7731x", *AGENT, "--quiet")
    project.write(".env", "DOOR_PASSWORD=sesame-7731x\n")
    assert [one["input"] for one in runs(project)] == [["open with ***"]]
    listed = project.atp("runs").out
    assert "***" in listed
    assert "sesame" not in listed
