"""Streams and journals that are not as they should be: whoever asked is told, and not shown a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT


@pytest.fixture(autouse=True)
def ran_once(project: Project) -> None:
    """A run to list and to report on."""
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.cases("a")
    assert project.atp("test", "cases.jsonl", "-n", "agent.py:run").code == 0


def shell(project: Project, command: str) -> "subprocess.CompletedProcess[str]":
    """A command with redirections that only a shell makes; `$ATP` is ours."""
    env = {**clean_environment(), "ATP": f"{sys.executable} -m atp"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=project.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    "command", ["report last", "report last -v", "runs", "runs --json", "report last -r report.json"]
)
@pytest.mark.parametrize(("to", "why"), [(">/dev/full", "No space left on device"), (">&-", "closed")])
def test_stdout_that_takes_nothing(project: Project, command: str, to: str, why: str) -> None:
    done = shell(project, f"$ATP {command} {to}")
    assert done.returncode == 3, done
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["runs", "test cases.jsonl -n agent.py:run", "test nothing.jsonl", "nothing"])
def test_stdout_and_stderr_that_take_nothing_are_no_failed_test(project: Project, command: str) -> None:
    assert shell(project, f"$ATP {command} >/dev/full 2>/dev/full").returncode == 3


def test_a_journal_that_cannot_be_read_hides_no_other_run(project: Project) -> None:
    broken = project.folder / ".atp/runs/20990101-000000-000ffff"
    (broken / "journal.jsonl").mkdir(parents=True)
    ran = project.atp("runs")
    assert ran.code == 3
    first, second = ran.out.splitlines()
    assert first.startswith(broken.name)
    assert "unreadable" in first
    assert "finished" in second
    assert "journal.jsonl cannot be read" in ran.err
    rows = json.loads(project.atp("runs", "--json").out)
    assert [one["state"] for one in rows] == ["unreadable", "finished"]


def test_a_report_on_a_project_without_runs(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    empty: Path = tmp_path_factory.mktemp("empty")
    report = project.atp("report", "last", "--project", str(empty))
    assert (report.code, report.out) == (2, "")
    assert f"there are no runs in {empty}" in report.err


def test_an_agent_whose_json_report_is_no_json(project: Project) -> None:
    project.write("rep.py", 'def bad(prompt):\n    return "not json"\ndef good(prompt):\n    return \'{"a": 1}\'\n')
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:run", "-r", "rep.py:bad", "-o", "out.json")
    assert ran.code == 3
    assert json.loads((project.folder / "out.json").read_text())["summary"]["passed"] == 1
    assert "is no JSON" in ran.err + ran.out
    assert "the built-in report was written instead" in ran.err + ran.out
    ran = project.atp("test", "cases.jsonl", "-n", "agent.py:run", "-r", "rep.py:good", "-o", "out.json")
    assert ran.code == 0, ran.err
    assert json.loads((project.folder / "out.json").read_text()) == {"a": 1}
