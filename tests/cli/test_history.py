"""`atp history`: the index as users meet it: filled by runs, asked by the command, switched off, out of reach."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.history.support.made_runs import make_run, trial

from atp.base.project import runs_folder
from atp.history.index.index import Index

Run = Callable[..., CompletedProcess[str]]
AGENTS = """
    import itertools
    calls = itertools.count()

    def desk(prompt):
        if prompt == "boom":
            raise RuntimeError("boom")
        usage = {"cost_usd": 0.01, "total_tokens": 100}
        return {"output": "no" if prompt == "never" else "yes", "usage": usage}

    def moody(prompt):
        return "yes" if next(calls) % 2 else "no"
"""
YES = [{"type": "contains", "value": "yes"}]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def rows(index: Index) -> list[Any]:
    return [
        index.database.query(f"SELECT * FROM {name} ORDER BY 1, 2") for name in ("run", "total", "test_case", "result")
    ]


def test_what_a_run_adds_at_its_end_is_what_its_journal_says(project: Project) -> None:
    project.write("agent.py", AGENTS)
    agents = [{"name": one, "type": "custom", "config": {"entry": f"agent.py:{one}"}} for one in ("desk", "moody")]
    tests: list[dict[str, Any]] = [
        {"id": "usual", "input": "hello", "assertions": YES},
        {"id": "never", "input": "never", "assertions": YES},
        {"id": "boom", "input": "boom", "assertions": YES},
        {"id": "left out", "input": "x", "skip": True},
        {"id": "sure", "input": "hello", "assertions": YES, "pass_rate": 0.5, "confidence": 0.8},
    ]
    file = project.suite(agents, tests)
    auto = ["--runs", "auto", "--max-runs", "12", "--min-runs", "3", "--pass-rate", "0.5", "--margin", "0.2"]
    for more in (["--runs", "3"], auto, ["--only-failed"]):
        assert project.test(file, *more, "--parallel", "4").code in (1, 4)
    with Index(project.folder) as index:
        by_runs = rows(index)
        assert len(by_runs[0]) == 3
        assert index.update() == []
        assert rows(index) == by_runs
    with Index(project.folder, "again.sqlite") as index:
        index.update()
        from_journals = rows(index)
    assert [(*row[:2], "", *row[3:]) for row in from_journals[0]] == by_runs[0]
    assert from_journals[1:] == by_runs[1:]


def test_a_run_that_goes_on_is_in_the_index_once_and_whole(project: Project) -> None:
    project.write("agent.py", AGENTS)
    file = project.cases(*"abcdef")
    project.test(file, "-n", "agent.py:desk", "--budget-usd", "0.025")
    answer = ["history", "trend", "--json"]
    (stopped,) = json.loads(project.atp(*answer).out)["rows"]
    project.test(file, "-n", "agent.py:desk", "--resume")
    (whole,) = json.loads(project.atp(*answer).out)["rows"]
    assert (stopped["state"], stopped["cases"], whole["state"], whole["cases"]) == ("stopped", 3, "finished", 6)
    assert whole["cost_usd"] == pytest.approx(0.06)


def test_a_recheck_is_shown_and_costs_nothing_again(project: Project) -> None:
    project.write("agent.py", AGENTS)
    file = project.suite([{"name": "desk", "type": "custom", "config": {"entry": "agent.py:desk"}}], [
        {"id": "usual", "input": "hello", "assertions": YES},
    ])  # fmt: skip
    project.test(file)
    assert project.atp("recheck", "last").code == 0
    found = json.loads(project.atp("history", "usual", "--json").out)["results"]
    assert [one["recheck"] for one in found] == [True, False]
    (week,) = json.loads(project.atp("history", "cost", "--json").out)["rows"]
    assert (week["runs"], week["cost_usd"]) == (2, 0.01)


def test_the_names_that_others_rely_on(tmp_path: Path, run: Run) -> None:
    first = make_run(tmp_path, [trial(), trial(run=2)], commit="a" * 40)
    second = make_run(tmp_path, [trial("refund", "failed"), trial(run=2)], day=1)
    answer = json.loads(run("history", "refund", "--json").stdout)
    assert answer["case"] == "refund"
    names = ("run", "at", "commit", "agent", "status", "runs", "passed")
    found = [{name: one[name] for name in names} for one in answer["results"]]
    at = [one["at"] for one in json.loads(run("runs", "--json").stdout)]
    assert found == [
        dict(zip(names, (second.name, at[0], None, "desk", "failed", 2, 1), strict=True)),
        dict(zip(names, (first.name, at[1], "a" * 40, "desk", "passed", 2, 2), strict=True)),
    ]
    for what in ("flaky", "cost", "trend", "durations"):
        assert list(json.loads(run("history", what, "--json").stdout)) == ["rows"]


def test_tables_for_people(tmp_path: Path, run: Run) -> None:
    for day in range(6):
        trials = [trial(), trial("order", "failed" if day % 2 else "passed", duration_ms=2500)]
        make_run(tmp_path, trials, day=day / 10, commit="1a2b3c4d5e6f", branch="main", dirty=True)
    assert (
        "passed  1/1 passed  100%, between 21% and 100%  desk  1.0s  $0.0100  1a2b3c4d5e+ main"
        in run("history", "refund").stdout
    )
    assert run("history", "flaky").stdout.strip() == (
        "order  suite.yaml  desk  3/6 passed  50%, between 19% and 81%  in 6 runs"
    )
    assert "1/2 passed  50%" in run("history").stdout
    assert "6 runs" in run("history", "cost", "--by", "month").stdout
    assert run("history", "durations").stdout.startswith("order   suite.yaml  desk  2.5s in the mean")
    limited = run("history", "durations", "--limit", "1").stdout
    assert limited.splitlines()[1] == "… and 1 more: --limit 0"


def test_an_unknown_case_is_an_error_with_what_was_meant(tmp_path: Path, run: Run) -> None:
    make_run(tmp_path, [trial()])
    done = run("history", "refnud")
    assert done.returncode == 2
    assert "error[no-result]" in done.stderr
    assert "did you mean `refund`?" in done.stderr
    assert "did you mean `flaky`?" in run("history", "flakey").stderr


def test_a_case_that_only_a_filter_leaves_out_is_no_error(tmp_path: Path, run: Run) -> None:
    make_run(tmp_path, [trial()])
    done = run("history", "refund", "--branch", "none", "--json")
    assert (done.returncode, json.loads(done.stdout)["results"]) == (0, [])


def test_a_folder_without_runs_is_told_and_left_as_it_is(tmp_path: Path, run: Run) -> None:
    done = run("history")
    assert done.returncode == 2
    assert f"there are no runs in {runs_folder(tmp_path)}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_project_whose_runs_were_deleted(tmp_path: Path, run: Run) -> None:
    folder = make_run(tmp_path, [trial()])
    run("history")
    shutil.rmtree(folder)
    done = run("history")
    assert (done.returncode, done.stdout.strip()) == (0, f"No such runs in {runs_folder(tmp_path)}.")
    assert json.loads(run("history", "flaky", "--json").stdout) == {"rows": []}
    assert "run it: atp test" in run("history", "refund").stderr


@pytest.mark.parametrize(("since", "left"), [("2025-06-20", 1), ("99999d", 3), ("1d", 0)])
def test_since_a_day(tmp_path: Path, run: Run, since: str, left: int) -> None:
    for day in (0, 3, 6):
        make_run(tmp_path, [trial()], day=day)
    assert len(json.loads(run("history", "trend", "--since", since, "--json").stdout)["rows"]) == left


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trend", "--by", "week"], "--by is for cost"),
        (["--since", "yesterday"], "--since yesterday: this is no day"),
        (["cost", "--by", "year"], "'year' is not one of"),
    ],
)
def test_what_can_t_be_asked(run: Run, arguments: list[str], message: str) -> None:
    done = run("history", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_journal_that_can_t_be_read_is_told_and_the_others_count(tmp_path: Path, run: Run) -> None:
    make_run(tmp_path, [trial()])
    make_run(tmp_path, [trial()], day=1, format=99)
    done = run("history", "refund", "--json")
    assert done.returncode == 3
    assert "error[newer-format]" in done.stderr
    assert len(json.loads(done.stdout)["results"]) == 1


def test_output_can_t_steer_a_terminal(tmp_path: Path, run: Run) -> None:
    make_run(tmp_path, [trial(), trial("bad\x1b[31m", "failed", agent="a\nb")], branch="x\x1b[2J")
    for what in ("bad\x1b[31m", "trend", "flaky", "durations"):
        assert "\x1b" not in run("history", what).stdout
        assert "\x1b" not in run("history", what, "--json").stdout


@pytest.mark.parametrize("setting", ["atp.toml", "environment", "flag"])
def test_another_place_for_the_index(project: Project, setting: str) -> None:
    project.write("agent.py", AGENTS)
    file = project.cases("a")
    flags, env = [], {}
    if setting == "atp.toml":
        project.write("atp.toml", 'history = "mine.sqlite"')
    elif setting == "environment":
        env = {"ATP_HISTORY": "mine.sqlite"}
    else:
        flags = ["--history", "mine.sqlite"]
    assert project.test(file, "-n", "agent.py:desk", *flags, env=env).code == 0
    assert (project.folder / "mine.sqlite").exists()
    assert not (project.folder / ".atp" / "history.sqlite").exists()
    with sqlite3.connect(project.folder / "mine.sqlite") as connection:
        assert connection.execute("SELECT COUNT(*) FROM result").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("off", ["off", ""])
def test_no_index(project: Project, off: str) -> None:
    project.write("agent.py", AGENTS)
    project.write("atp.toml", f'history = "{off}"')
    assert project.test(project.cases("a"), "-n", "agent.py:desk").code == 0
    assert not (project.folder / ".atp" / "history.sqlite").exists()
    done = project.atp("history")
    assert done.code == 2
    assert "error[history-off]" in done.err


def test_an_index_that_can_t_be_written_is_a_warning(project: Project) -> None:
    project.write("agent.py", AGENTS)
    project.write("notes.txt", "mine\n" * 1000)
    ran = project.test(project.cases("a"), "-n", "agent.py:desk", "--history", "notes.txt")
    assert ran.code == 0
    assert "the run is not in the history yet" in ran.err
    assert "notes.txt is no index of ATP's" in ran.err
    assert (project.folder / "notes.txt").read_text() == "mine\n" * 1000
    assert len(json.loads(project.atp("history", "a", "--json").out)["results"]) == 1


def test_the_password_of_a_database_is_shown_nowhere(project: Project) -> None:
    project.write("agent.py", AGENTS)
    project.write("atp.toml", 'history = "postgresql://atp:very-secret-word@127.0.0.1:1/none"')
    ran = project.test(project.cases("a"), "-n", "agent.py:desk")
    assert ran.code == 0
    assert "PostgreSQL can't be reached" in ran.err
    asked = project.atp("history")
    assert asked.code == 3
    written = [path.read_bytes() for path in project.folder.glob(".atp/**/*") if path.is_file()]
    assert b"very-secret-word" not in b"".join([*written, ran.err.encode(), ran.out.encode(), asked.err.encode()])


def test_runs_of_pytest_are_in_the_history(project: Project) -> None:
    project.write("agent.py", AGENTS)
    project.suite(
        [{"name": "desk", "type": "custom", "config": {"entry": "agent.py:desk"}}],
        [{"id": "usual", "input": "hello", "assertions": YES}],
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--atp", "-q", "-p", "no:cacheprovider", "suite.yaml"],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert len(json.loads(project.atp("history", "usual", "--json").out)["results"]) == 1
