"""A suite gives the same journal whoever runs it: `atp test`, pytest, or code (B14)."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.support.project import Project, clean_environment

SUITE = """
---
target: agents/x.md
---

# Desk

## Opens

**Prompts:**

- open

**Expectations:**

- the `open` function was called

## Asks

**Before:** Opens

**Prompts:**

- ask
- ask politely

**Expectations:**

- no errors

## Wrong

**Prompts:**

- hello

**Expectations:**

- the `shout` function was called

## Broken

**Prompts:**

- hello

**Expectations:**

- the answer is kind

## Later

**Skip:** true

**Prompts:**

- later

**Expectations:**

- no errors
"""
AGENT = """
    def answer(prompt):
        return {"output": f"{prompt}?", "tool_calls": [{"name": prompt.split()[0], "arguments": {}}]}

    def judge(prompt):
        return "perhaps"
"""
SCRIPT = """
    from pathlib import Path

    import atp

    options = atp.Options.from_project(".", name=["agent.py:answer"], runs=2)
    assert atp.run_sync(atp.load(Path("desk.test.md").resolve()), options).exit_code == 1
"""
OF_THE_MOMENT = {"at", "started_at", "duration_ms", "at_ms"}
OF_THE_COMMAND = {"run", "input", "given", "options", "flags", "pid", "command"}
"""What a start line says of the run's id, and of who ran the suite in which words."""


def by_pytest(project: Project) -> None:
    flags = ["--atp", "--atp-name", "agent.py:answer", "--atp-runs", "2", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = run_python(project, "-m", "pytest", "-q", *flags, "desk.test.md")
    assert "1 failed, 2 passed, 1 skipped, 1 error" in ran.stdout, ran.stdout + ran.stderr


def by_code(project: Project) -> None:
    ran = run_python(project, str(project.write("run.py", SCRIPT)))
    assert ran.returncode == 0, ran.stderr


def run_python(project: Project, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, check=False, cwd=project.folder, env=clean_environment(), capture_output=True, text=True
    )


def comparable(value: Any) -> Any:
    """A value of a journal without times."""
    if isinstance(value, dict):
        return {name: comparable(item) for name, item in value.items() if name not in OF_THE_MOMENT}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def journal(project: Project) -> list[dict[str, Any]]:
    """The newest journal, without times and without what it says of the command."""
    start, *lines = comparable(project.journal())
    return [{name: value for name, value in start.items() if name not in OF_THE_COMMAND}, *lines]


@pytest.fixture
def suite(project: Project) -> Project:
    project.write("atp.toml", 'assessor = "agent.py:judge"\n')
    project.write("agent.py", AGENT)
    project.write("desk.test.md", SUITE.lstrip())
    return project


@pytest.mark.parametrize("run", [by_pytest, by_code])
def test_same_journal(run: Callable[[Project], None], suite: Project) -> None:
    path = str(suite.folder / "desk.test.md")  # absolute, as pytest has it
    assert suite.test(path, "-n", "agent.py:answer", "--runs", "2").code == 1
    expected = journal(suite)
    assert [line["type"] for line in expected] == ["start", "skipped", *["trial"] * 10, "summary"]
    statuses = {line["result"]["case"]: line["result"].get("status", "passed") for line in expected[2:-1]}
    assert statuses == {"opens": "passed", "asks": "passed", "wrong": "failed", "broken": "error"}
    assert len({line["result"].get("variation", 0) for line in expected[2:-1]}) == 2
    run(suite)
    assert len(suite.runs()) == 2
    for found, line in zip(journal(suite), expected, strict=True):
        assert found == line


def test_reports_of_a_selection_count_what_was_selected(suite: Project) -> None:
    run_python(suite, "-m", "pytest", "-q", "--atp", "--atp-name", "agent.py:answer", "-k", "Asks or Later")
    start, *_, summary = suite.journal()
    assert (start["cases"], start["trials"]) == (1, 2)
    assert (summary["complete"], summary["counts"]["total"], summary["counts"]["skipped"]) == (True, 2, 1)


def test_a_session_that_ends_early_is_incomplete(suite: Project) -> None:
    run_python(suite, "-m", "pytest", "-q", "--atp", "--atp-name", "agent.py:answer", "-x")
    summary = suite.journal()[-1]
    assert (summary["complete"], summary["reason"]) == (False, "pytest ended before all cases had run")
    assert summary["counts"]["total"] == 4
