"""Faults while something is made of a run: rechecks, baselines, comparisons, golden files; and in `--runs auto`.

The child breaks itself at a named point: when the file that it has written is about to get its name.
"""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.faults.harness import CASES
from tests.waiting import until

BREAKS = """
    import os, pathlib, signal
    replace = pathlib.Path.replace

    def breaking(self, target):
        if str(target).endswith(os.environ["BREAK_AT"]):
            how = os.environ["BREAK_BY"]
            if how.isdigit():
                raise OSError(int(how), os.strerror(int(how)))
            os.kill(os.getpid(), getattr(signal, how))
        return replace(self, target)

    pathlib.Path.replace = breaking
"""
WAYS: dict[str, str] = {"a full disk": "28", "a read-only disk": "30", "SIGKILL": "SIGKILL", "SIGINT": "SIGINT"}
AGENT = """
    import pathlib
    HERE = pathlib.Path(__file__).parent

    def run(prompt):
        with open(HERE / "asked", "a") as file:
            print(prompt, file=file)
        return prompt
"""
CHECK = """
    import pathlib, time
    HERE = pathlib.Path(__file__).parent.parent

    def check(output):
        with open(HERE / "judged", "a") as file:
            print(output, file=file)
        while (HERE / "hold").read_text() == output and not (HERE / "go").exists():
            time.sleep(0.002)
        return True
"""
TEST = ("test", "cases.jsonl", "-n", "agent.py:run")


def prepare(project: Project, *checks: dict[str, Any], hold: str = "") -> None:
    """Write a project whose cases have these checks. A script check waits in the case that `hold` names."""
    for name, content in {"atp.toml": "", "agent.py": AGENT, "scripts/held.py": CHECK, "hold": hold}.items():
        project.write(name, content)
    project.write("breaks/sitecustomize.py", BREAKS)
    (project.folder / "temporary").mkdir()
    project.cases(*({"id": name, "input": name, "assert": list(checks)} for name in CASES))


def environment(project: Project) -> dict[str, str]:
    return {"TMPDIR": str(project.folder / "temporary")}


def broken(project: Project, at: str, by: str, *arguments: str) -> Ran:
    """Call `atp`, and break it when a file whose name ends with `at` is written."""
    places = {"PYTHONPATH": str(project.folder / "breaks"), "BREAK_AT": at, "BREAK_BY": WAYS[by]}
    ran = project.finish(project.start(*arguments, env_more={**environment(project), **places}))
    assert "Traceback" not in ran.out + ran.err
    return ran


def nothing_left(project: Project, by: str) -> None:
    """Assert that no lock, workspace or half a file is left. A killed process can't remove what it was writing."""
    assert project.atp("runs").code == 0
    assert project.workspaces() == []
    assert list((project.folder / "temporary").iterdir()) == []
    if by != "SIGKILL":
        assert list(project.folder.rglob("*.tmp")) == []
        assert list(project.folder.glob(".atp/runs/*/lock")) == []


def codes(by: str, refused: int) -> int:
    return {"SIGKILL": -9, "SIGINT": 130}.get(by, refused)


@pytest.mark.parametrize("by", WAYS)
def test_a_baseline_stays_as_it_was(project: Project, by: str) -> None:
    prepare(project)
    assert project.atp(*TEST).code == 0
    assert project.atp("baseline", "save", "main").code == 0
    file = project.folder / "baselines/main.json.gz"
    before = file.read_bytes()
    assert project.atp(*TEST).code == 0
    ran = broken(project, "main.json.gz", by, "baseline", "save", "main", "--force")
    assert ran.code == codes(by, 2)
    assert ("can't be written" in ran.err) == (ran.code == 2)
    assert file.read_bytes() == before
    nothing_left(project, by)
    assert project.atp("baseline", "list").code == 0
    assert project.atp("baseline", "save", "main", "--force").code == 0
    assert file.read_bytes() != before


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("file", ["c.md", "c.html", "c.json"])
def test_a_comparison_stays_as_it_was(project: Project, file: str, by: str) -> None:
    prepare(project)
    assert project.atp(*TEST).code == 0
    target = project.write(file, "before")
    ran = broken(project, file, by, "compare", "last", "last", "-o", file)
    assert ran.code == codes(by, 2)
    assert target.read_text() == "before"
    nothing_left(project, by)
    assert project.atp("compare", "last", "last", "-o", file).code == 0
    assert target.read_text() != "before"


@pytest.mark.parametrize("by", WAYS)
def test_golden_files_are_whole_and_the_run_is_resumed(project: Project, by: str) -> None:
    prepare(project, {"type": "snapshot"})
    folder = project.folder / "__snapshots__" / "cases.jsonl"
    ran = broken(project, "c4.text.txt", by, *TEST, "--update-snapshots")
    assert ran.code == codes(by, 3)
    there = {path.name.partition(".")[0]: path.read_text() for path in folder.glob("*.txt")}
    assert there.keys() >= set(CASES[:4])
    assert all(text == f"{name}\n" for name, text in there.items())
    asked = Counter(project.lines("asked"))
    assert project.atp(*TEST, "--update-snapshots", "--resume", env=environment(project)).code == 0
    nothing_left(project, by)
    assert sorted(path.name for path in folder.glob("*.txt")) == [f"{name}.text.txt" for name in CASES]
    after = Counter(project.lines("asked"))
    assert [name for name in CASES[:4] if after[name] != asked[name]] == [], "a finished trial ran again"
    assert project.atp(*TEST).code == 0


def hold_recheck(project: Project) -> tuple[Path, bytes, Any]:
    """Start a recheck, and wait until it holds in a check. Returns the journal of the run, its content, the process."""
    prepare(project, {"type": "script", "script": "scripts:held.check"})
    assert project.atp(*TEST).code == 0
    journal = project.runs()[0] / "journal.jsonl"
    (project.folder / "hold").write_text(CASES[3])
    (project.folder / "judged").unlink()
    process = project.start("recheck", "last", "--json", env_more=environment(project))
    until(lambda: CASES[3] in project.lines("judged") or process.poll() is not None)
    return journal, journal.read_bytes(), process


def check_recheck(project: Project, ran: Ran, code: set[int]) -> None:
    """Assert that no agent was asked, and that the recheck can be made again."""
    assert ran.code in code, (ran.code, ran.err)
    assert "Traceback" not in ran.out + ran.err
    again = project.atp("recheck", "last", "-o", "again.json", env=environment(project))
    assert again.code == 0, again.err
    results = json.loads((project.folder / "again.json").read_text())["results"]
    assert {one["id"]: one["status"] for one in results} == dict.fromkeys(CASES, "passed")
    assert project.lines("asked") == CASES, "a recheck asked an agent"
    assert "nothing-to-resume" in project.atp(*TEST, "--resume").err
    nothing_left(project, "")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGKILL, -9), (signal.SIGTERM, 130), (signal.SIGINT, 130)],
    ids=["SIGKILL", "SIGTERM", "SIGINT"],
)
def test_a_recheck_that_is_ended_leaves_the_run_as_it_was(project: Project, number: int, code: int) -> None:
    journal, before, process = hold_recheck(project)
    process.send_signal(number)
    (project.folder / "go").touch()
    ran = project.finish(process)
    assert journal.read_bytes() == before
    check_recheck(project, ran, {code})


def test_a_recheck_whose_journal_is_deleted_is_incomplete(project: Project) -> None:
    journal, before, process = hold_recheck(project)
    (project.runs()[-1] / "journal.jsonl").unlink()
    (project.folder / "go").touch()
    ran = project.finish(process)
    assert "was deleted or replaced while the run was writing to it" in ran.out + ran.err
    assert journal.read_bytes() == before
    check_recheck(project, ran, {3})


@pytest.mark.parametrize("how", ["deleted", "cut"])
def test_a_recheck_of_a_journal_that_goes_away_passes_nothing_it_has_not_read(project: Project, how: str) -> None:
    journal, before, process = hold_recheck(project)
    if how == "deleted":
        journal.unlink()
    else:
        os.truncate(journal, len(before) // 3)
    (project.folder / "go").touch()
    ran = project.finish(process)
    assert "Traceback" not in ran.out + ran.err
    results = [one for one in map(json.loads, ran.out.splitlines()) if one["type"] == "result"]
    passed = {one["id"] for one in results if one.get("status", "passed") == "passed"}
    assert ran.code == (0 if len(passed) == len(CASES) else 3), ran.err
    assert passed <= set(project.lines("judged")), "a case passed that no check has seen"
    assert project.lines("asked") == CASES


AUTO = ("--runs", "auto", "--pass-rate", "0.8", "--confidence", "0.9", "--parallel", "4", "--max-runs", "40")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_runs_auto_in_parallel_are_resumed_without_repeating_any(project: Project, number: int) -> None:
    prepare(project, {"type": "script", "script": "scripts:held.check"}, hold=CASES[5])
    process = project.start(*TEST, *AUTO, env_more=environment(project))
    until(lambda: project.lines("judged").count(CASES[5]) >= 1 or process.poll() is not None)
    until(lambda: len(project.trials()) >= 12)
    process.send_signal(number)
    if number == signal.SIGTERM:  # what holds ends within the time that cancelled trials have
        (project.folder / "go").touch()
    ran = project.finish(process)
    assert ran.code == (-9 if number == signal.SIGKILL else 130), ran.err
    kept = {one["key"]: one["case"] for one in project.trials() if one.get("status", "passed") == "passed"}
    lost = Counter(project.lines("asked")) - Counter(kept.values())
    assert lost.total() <= 4, "a finished trial is lost"
    (project.folder / "go").touch()
    again = project.atp(*TEST, *AUTO, "--resume", env=environment(project))
    assert again.code == 0, again.err
    trials = [one["key"] for one in project.trials() if one.get("status", "passed") == "passed"]
    assert len(set(trials)) == len(trials)
    assert kept.keys() <= set(trials)
    assert len(project.lines("asked")) == len(trials) + lost.total(), "a finished trial ran again"
    nothing_left(project, "")
