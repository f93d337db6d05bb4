"""`quarantine.yaml`: what it may say, what is wrong with it, and what it does to a run."""

import json
import subprocess
import sys
import tempfile
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.damage import damaged_bytes
from tests.engine.support.project import Project, clean_environment

import atp
from atp.base.diagnostics import LoadError
from atp.base.project import QUARANTINE as NAME
from atp.history.quarantine import load_quarantine

TODAY = datetime.now().astimezone().date()
LATER = str(TODAY + timedelta(days=30))
AGENT = "def run(prompt):\n    if prompt == 'raises':\n        raise RuntimeError('no')\n    return prompt\n"
A = "- {case: a, owner: b, reason: c, expires: 2026-06-01}\n"
FLAGS = ["-n", "agent.py:run"]


def entry(case: str, **more: Any) -> dict[str, Any]:
    return {"case": case, "owner": "ada", "reason": "a known bug", "expires": LATER, **more}


def failing(name: str) -> dict[str, Any]:
    return {"id": name, "input": name, "assert": [{"type": "contains", "value": "never"}]}


def cases(project: Project, *given: Any, name: str = "cases.jsonl") -> str:
    project.write("agent.py", AGENT)
    project.write("atp.toml", "")
    return project.cases(*given, name=name)


def mistakes(folder: Path, text: str, today: date = date(2026, 6, 1)) -> list[tuple[str, int, int]]:
    (folder / NAME).write_text(text, "utf-8")
    return read_mistakes(folder, today)


def read_mistakes(folder: Path, today: date) -> list[tuple[str, int, int]]:
    try:
        load_quarantine(folder, today)
    except LoadError as error:
        return [(one.code, one.line, one.column) for one in error.diagnostics]
    return []


def test_a_failure_in_quarantine_is_reported_but_not_in_the_exit_code(project: Project) -> None:
    file = cases(project, "fine", failing("bad"))
    project.write("report.txt", "")
    assert project.test(file, *FLAGS).code == 1
    project.write(NAME, [entry("bad")])
    reports = ["report.json", "report.jsonl", "report.md", "report.xml", "report.html"]
    ran = project.atp("test", file, *FLAGS, *(word for one in reports for word in ("-o", one)))
    assert ran.code == 0, ran.out + ran.err
    told = f"quarantined until {LATER}, not in the exit code: a known bug (owner: ada)"
    assert told in ran.out
    assert "Failed:  1" in ran.out
    assert "Excused: 1 in quarantine, not in the exit code" in ran.out
    read = json.loads((project.folder / "report.json").read_text("utf-8"))
    assert read["summary"]["quarantined"] == 1
    assert read["summary"]["failed"] == 1
    assert read["summary"]["exit_code"] == 0
    (bad,) = [one for one in read["results"] if one["id"] == "bad"]
    assert bad["status"] == "failed"
    assert bad["quarantine"] == {"owner": "ada", "reason": "a known bug", "expires": LATER}
    assert "quarantine" not in next(one for one in read["results"] if one["id"] == "fine")
    for report in ("report.md", "report.xml"):
        assert told in (project.folder / report).read_text("utf-8")
    junit = (project.folder / "report.xml").read_text("utf-8")
    assert "<failure" not in junit
    assert 'failures="0"' in junit
    assert "expected the output to contain" in junit
    again = project.atp("report", "last", "-o", "again.json")
    assert again.code in (0, 1), again.err
    repeated = json.loads((project.folder / "again.json").read_text("utf-8"))
    assert repeated["summary"] == read["summary"]


def test_github_warns_of_a_failure_in_quarantine(project: Project) -> None:
    file = cases(project, "fine", failing("bad"))
    project.write(NAME, [entry("bad")])
    ran = project.atp("test", file, *FLAGS, env={"GITHUB_ACTIONS": "true"})
    assert ran.code == 0
    assert "::warning file=cases.jsonl,line=2,col=1,title=[bad]::quarantined until" in ran.out + ran.err
    assert "::error" not in ran.out + ran.err


@pytest.mark.parametrize("name", ["raises", "bad"])
def test_all_that_is_wrong_may_be_in_quarantine(project: Project, name: str) -> None:
    file = cases(project, failing(name))
    project.write(NAME, [entry(name)])
    ran = project.test(file, *FLAGS)
    assert ran.code == 0
    assert ran.summary["quarantined"] == 1
    assert project.test(file, *FLAGS, "--fail-fast", "--runs", "2").summary["total_runs"] == 2


def test_a_quarantined_case_that_passes_is_marked_and_not_counted(project: Project) -> None:
    file = cases(project, "fine")
    project.write(NAME, [entry("fine")])
    ran = project.atp("test", file, *FLAGS, "-v")
    assert ran.code == 0
    assert "it passed: a known bug" in ran.out
    assert "Excused:" not in ran.out


def test_other_failures_still_count(project: Project) -> None:
    file = cases(project, failing("bad"), failing("worse"))
    project.write(NAME, [entry("bad")])
    ran = project.test(file, *FLAGS)
    assert ran.code == 1
    assert (ran.summary["failed"], ran.summary["quarantined"]) == (2, 1)


def test_an_entry_may_name_the_file_of_its_case(project: Project) -> None:
    cases(project, failing("bad"), name="tests/a.jsonl")
    cases(project, failing("bad"), name="tests/b.jsonl")
    project.write(NAME, {"quarantine": [entry("bad", file="tests/a.jsonl")]})
    assert project.test("tests/a.jsonl", *FLAGS).code == 0
    assert project.test("tests/b.jsonl", *FLAGS).code == 1
    project.write(NAME, {"quarantine": [entry("bad")]})
    assert project.test("tests/b.jsonl", *FLAGS).code == 0


def test_an_expired_entry_is_an_error_before_anything_runs(project: Project) -> None:
    file = cases(project, "fine")
    yesterday = TODAY - timedelta(days=1)
    project.write(NAME, f"- case: fine\n  owner: ada\n  reason: why\n  expires: {yesterday}\n")
    ran = project.atp("test", file, *FLAGS)
    assert ran.code == 2
    assert f"error[quarantine-expired]: the quarantine of `fine` expired on {yesterday} (owner: ada)" in ran.err
    assert "--> quarantine.yaml:4:12" in ran.err
    assert not project.runs()


def test_an_entry_counts_until_the_end_of_its_last_day(tmp_path: Path) -> None:
    text = "- {case: a, owner: b, reason: c, expires: 2026-06-01}\n"
    assert mistakes(tmp_path, text, date(2026, 6, 1)) == []
    assert mistakes(tmp_path, text, date(2026, 6, 2)) == [("quarantine-expired", 1, 43)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# nothing yet\n", []),
        ("[]", []),
        ("quarantine:\n", []),
        ("quarantine:\n- {case: a, owner: b, reason: c, expiry: 2026-06-01}\n", []),
        ("nothing", [("wrong-type", 1, 1)]),
        ("- a\n", [("wrong-type", 1, 3)]),
        ("- {case: a, owner: b, reason: c}\n", [("missing-key", 1, 3)]),
        ("- {case: a, owner: b, expires: 2026-06-01}\n", [("missing-key", 1, 3)]),
        ("- {case: a, owner: b, reason: c, expires: 2026-06-01, until: x}\n", [("unknown-key", 1, 55)]),
        ("- {case: a, owner: b, reason: c, expires: soon}\n", [("quarantine-date", 1, 43)]),
        ("- {case: a, owner: b, reason: c, expires: 20260601}\n", [("quarantine-date", 1, 43)]),
        ("- {case: a, owner: b, reason: c, expires: 2026-13-01}\n", [("quarantine-date", 1, 43)]),
        ("- {case: '', owner: b, reason: c, expires: 2026-06-01}\n", [("empty", 1, 10)]),
        (
            f"{A}- {{case: a, owner: d, reason: e, expires: 2026-07-01}}\n",
            [("quarantine-duplicate", 2, 3)],
        ),
        (
            f"{A}- {{case: a, file: x.jsonl, owner: d, reason: e, expires: 2026-07-01}}\n",
            [],
        ),
        ("- {case: a, case: b}\n", [("duplicate-key", 1, 13)]),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, text: str, expected: list[tuple[str, int, int]]) -> None:
    found = mistakes(tmp_path, text)
    assert set(expected) <= set(found)
    assert bool(found) == bool(expected)


DAYS = st.dates(date(2026, 1, 1), date(2026, 12, 31))
ENTRIES = st.lists(st.tuples(st.text("abcdefäß -:#", min_size=1, max_size=20).filter(str.strip), DAYS), max_size=6)


@given(ENTRIES, DAYS)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[str, date]], today: date
) -> None:
    folder = tmp_path_factory.mktemp("quarantine")
    text = json.dumps([{"case": case, "owner": "a", "reason": "b", "expires": str(day)} for case, day in made])
    try:
        (folder / NAME).write_text(text, "utf-8")
        found = load_quarantine(folder, today)
    except LoadError as error:
        codes = {one.code for one in error.diagnostics}
        assert codes <= {"quarantine-expired", "quarantine-duplicate"}
        assert ("quarantine-expired" in codes) >= (codes != {"quarantine-duplicate"})
        assert len({case for case, _ in made}) < len(made) or any(day < today for _, day in made)
    else:
        assert all(day >= today for _, day in made)
        for case, day in made:
            excused = found.of("any.yaml", case)
            assert excused is not None
            assert excused.expires == str(day)
        assert found.of("any.yaml", "another case, which is nowhere") is None


WRITTEN = f"""{A}- case: "b ä" # a comment
  file: x/y.yaml
  owner: &who ada
  reason: |
    line one
    line two
  expiry: 2026-12-31
- {{case: c, owner: *who, reason: "why", expires: 2027-01-01}}
""".encode()


def check_quarantine(data: bytes) -> None:
    """Read a file as a quarantine: it has entries or mistakes, and each mistake a place."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / NAME).write_bytes(data)
        assert all(min(line, column) >= 1 for _, line, column in read_mistakes(folder, date(2026, 6, 1)))


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | damaged_bytes(WRITTEN))
@example(WRITTEN)
def test_whatever_the_file_holds_is_read_or_reported(data: bytes) -> None:
    check_quarantine(data)


def test_entries_without_a_case_are_warned_of_where_that_is_known(project: Project) -> None:
    file = cases(project, "fine")
    project.write(NAME, [entry("gone"), entry("else", file="cases.jsonl"), entry("x", file="missing.jsonl")])
    ran = project.atp("test", file, *FLAGS)
    assert ran.code == 0
    assert "there is no case `else` in cases.jsonl" in ran.err
    before = (project.folder / NAME).read_text("utf-8").partition('"else"')[0]
    assert f"{NAME}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}" in ran.err
    assert "there is no case `x` in missing.jsonl" in ran.err
    assert "`gone`" not in ran.err
    assert "there is no case `gone`" in project.atp("test", ".", *FLAGS).err
    assert project.atp("test", ".", *FLAGS, "--strict").code == 2


def test_resuming_keeps_a_trial_that_went_into_quarantine(project: Project) -> None:
    file = cases(project, failing("bad"))
    assert project.test(file, *FLAGS).code == 1
    project.write(NAME, [entry("bad")])
    ran = project.test(file, *FLAGS, "--resume-from", project.runs()[0].name)
    assert ran.code == 0
    assert [line["type"] for line in project.journal()][-2:] == ["kept", "summary"]


def test_the_api_leaves_what_is_in_quarantine_out_of_its_exit_code(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cases(project, failing("bad"))
    project.write(NAME, [entry("bad")])
    monkeypatch.chdir(project.folder)
    report = atp.run_sync(atp.load(file), atp.Options(name=["agent.py:run"]))
    assert report.exit_code == 0
    assert report.results[0].status == "failed"
    assert report.counts["quarantined"] == 1


def test_pytest_expects_what_is_in_quarantine_to_fail(project: Project) -> None:
    cases(project, failing("bad"), "fine")
    project.write(NAME, [entry("bad")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rx",
        "-p",
        "no:cacheprovider",
        "--atp",
        "--atp-name",
        "agent.py:run",
    ]
    ran = subprocess.run(
        command, cwd=project.folder, env=clean_environment(), capture_output=True, encoding="utf-8", check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "1 passed, 1 xfailed" in ran.stdout
    assert "quarantined until" in ran.stdout
