"""A journal, a JSON report and a baseline of every format that ATP ever wrote are read, or refused by name.

`record.py` wrote them. Those without a `format` are in the folder `0`.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.engine.support.project import Project
from tests.formats.record import BASELINES, HERE, PROJECT, ROOT, TEST

from atp.history import baselines
from atp.journal import records as journal
from atp.report.records.report import FORMAT, ReportError, read_report, report_schema
from atp.report.reporter import REPORTERS

FORMATS = sorted((one.name for one in HERE.iterdir() if one.name.isdigit()), key=int)
STATUSES = {
    "passes": "passed",
    "fails": "failed",
    "breaks": "error",
    "unstable": "failed",
    "dialogue": "passed",
    "warming-the-ocean": "passed",
}


@pytest.fixture(params=FORMATS)
def recorded(request: pytest.FixtureRequest) -> Path:
    """The folder of what was recorded in one format."""
    return HERE / str(request.param)


@pytest.fixture
def run(project: Project, recorded: Path) -> Project:
    """A project with a run of that format."""
    shutil.copytree(PROJECT, project.folder, dirs_exist_ok=True)
    text = (recorded / journal.NAME).read_text(encoding="utf-8").replace(ROOT, str(project.folder))
    _write_journal(project.folder, text)
    return project


def _write_journal(root: Path, text: str) -> None:
    folder = root / ".atp" / "runs" / json.loads(text.partition("\n")[0])["run"]
    folder.mkdir(parents=True)
    (folder / journal.NAME).write_text(text, encoding="utf-8")


def test_what_this_version_writes_is_kept() -> None:
    assert [str(number) for number in range(max(FORMAT, journal.FORMAT) + 1)] == FORMATS
    start = json.loads((HERE / str(journal.FORMAT) / journal.NAME).read_text(encoding="utf-8").partition("\n")[0])
    assert start["format"] == journal.FORMAT


def test_a_report_is_read_into_records(recorded: Path) -> None:
    data = (recorded / "report.json").read_bytes()
    report = read_report(data)
    assert report.format == int(recorded.name)
    assert {one.id: one.status for one in report.results} == STATUSES
    assert [one.id for one in report.skipped] == ["left-out"]
    assert (report.summary.passed, report.summary.failed, report.summary.skipped) == (3, 3, 1)
    Draft202012Validator(report_schema()).validate(json.loads(data))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"results": []}', b'{"format": "new"}'])
def test_what_is_no_report_is_refused(data: bytes) -> None:
    with pytest.raises(ReportError, match="this is no JSON report"):
        read_report(data)


def test_a_newer_report_is_refused_by_name() -> None:
    newer: dict[str, Any] = {"format": FORMAT + 1, "unheard_of": True}
    with pytest.raises(ReportError, match=f"has format {FORMAT + 1}, .* reads reports up to format {FORMAT}"):
        read_report(json.dumps(newer).encode())


def test_every_reporter_reports_an_earlier_journal(run: Project, recorded: Path) -> None:
    outputs = [f"out{extension}" for extension in REPORTERS.extensions]
    done = run.atp("report", "last", *(word for name in outputs for word in ("-o", name)))
    assert (done.code, done.err) == (0, "")
    for name in outputs:
        assert "warming-the-ocean" in (run.folder / name).read_text(encoding="utf-8") or name.endswith(
            (".html", ".htm")
        )
    before = json.loads((recorded / "report.json").read_bytes()) | {"format": FORMAT}
    after = json.loads((run.folder / "out.json").read_bytes())
    after["metadata"]["journal"] = before["metadata"]["journal"]
    for old, new in zip(before["results"], after["results"], strict=True):
        # Keys that reports have had since; nothing may be lost or changed.
        later = {"left_out", "metrics", "flaky", "judged_runs", "pass_rate_interval"} - old.keys()
        assert {name: value for name, value in new.items() if name not in later} == old
    assert after["summary"] | before["summary"] == after["summary"]
    assert after.keys() - before.keys() <= {"gates", "metrics", "groups"}
    for name in before.keys() - {"results", "summary"}:
        assert after[name] == before[name]


def test_earlier_runs_are_listed_and_summed_up(run: Project) -> None:
    assert "3" in run.atp("runs").out
    assert "Passed:  3" in run.atp("report", "last").out


def test_an_earlier_run_is_resumed(run: Project) -> None:
    (path,) = run.folder.glob(f".atp/runs/*/{journal.NAME}")
    old = path.read_text(encoding="utf-8")
    shutil.rmtree(path.parent)
    run.atp(*TEST)
    (fresh,) = run.folder.glob(f".atp/runs/*/{journal.NAME}")
    new = _keys(fresh.read_text(encoding="utf-8"))
    shutil.rmtree(fresh.parent)
    for case, key in _keys(old).items():  # earlier versions made keys in other ways
        old = old.replace(key, new[case])
    lines = old.splitlines(keepends=True)
    _write_journal(run.folder, "".join(lines[:-2]))  # without the summary and the last trial
    done = run.atp(*TEST, "--resume")
    assert "Resumed: 7 of 9 trials taken over" in done.out  # the trial that ended in an error runs again, too
    assert "Passed:  3" in done.out


def _keys(text: str) -> dict[str, str]:
    results = [one["result"] for one in map(json.loads, text.splitlines()) if one["type"] == "trial"]
    return {one["case"]: one["key"].partition("-")[0] for one in results}


def test_a_newer_journal_is_refused_by_name(project: Project) -> None:
    text = (HERE / str(journal.FORMAT) / journal.NAME).read_text(encoding="utf-8").replace(ROOT, str(project.folder))
    first, rest = text.split("\n", 1)
    start = json.loads(first) | {"format": journal.FORMAT + 1}
    shutil.copytree(PROJECT, project.folder, dirs_exist_ok=True)
    _write_journal(project.folder, json.dumps(start, separators=(",", ":")) + "\n" + rest)
    done = project.atp("report", "last")
    assert done.code == 2
    assert f"has format {journal.FORMAT + 1}, and this version of ATP reads journals up to" in done.err


def test_a_baseline_of_every_format_is_read() -> None:
    numbers = range(1, baselines.FORMAT + 1)
    assert sorted(path.name for path in BASELINES.iterdir()) == [f"{number}.json.gz" for number in numbers]
    for number in numbers:
        found = baselines.read(BASELINES / f"{number}.json.gz")
        assert found.format == number
        assert {case.id: case.status for case in found.cases} == STATUSES
        unstable = next(case for case in found.cases if case.id == "unstable")
        assert (unstable.passed, unstable.judged) == (2, 3)
        assert unstable.answers.keys() == {"passed", "failed"}
