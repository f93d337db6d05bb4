"""Readers of stdout who go away: the run goes on to its end, and its exit code is its own."""

import subprocess
import sys

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT

MANY = 300


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt * 1000\n")


@pytest.mark.parametrize("flags", [["--json"], ["-r", "report.json"], []])
@pytest.mark.parametrize(("expected", "code"), [("x" * 1000, 0), ("y", 1)])
def test_a_reader_who_has_seen_enough(project: Project, flags: list[str], expected: str, code: int) -> None:
    file = project.cases(*({"id": str(number), "input": "x", "expected": expected} for number in range(MANY)))
    command = [sys.executable, "-m", "atp", "test", file, "-n", "agent.py:run", "-o", "whole.jsonl", *flags]
    if "-r" in flags:
        command.remove("-o")
        command.remove("whole.jsonl")
    done = subprocess.run(
        ["sh", "-c", '("$@"; echo $? > code) | head -c 1 > /dev/null', "sh", *command],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=WAIT_LIMIT,
        check=True,
    )
    assert project.lines("code") == [str(code)]
    assert "roken pipe" not in done.stderr
    assert len(project.trials()) == MANY
    if "-r" not in flags:
        assert (project.folder / "whole.jsonl").read_text("utf-8").count('"type":"result"') == MANY


def test_stdout_that_was_never_open(project: Project) -> None:
    command = [sys.executable, "-m", "atp", "test", project.cases("x"), "-n", "agent.py:run", "--json"]
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command],
        cwd=project.folder,
        env=clean_environment(),
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=WAIT_LIMIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "atp: stdout: it is closed\n")
