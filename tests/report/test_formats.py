"""What the formats have in common: golden files, the order of results, published schemas, `-o` by its ending."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from atp.base.diagnostics import LoadError
from atp.engine.prepare.options import Options
from atp.report.choose import Reads, choose
from atp.report.formats.csv import CsvReport
from atp.report.formats.ctrf import CtrfReport
from atp.report.formats.json import JsonReport
from atp.report.formats.jsonl import JsonlReport
from atp.report.formats.junit import JunitReport
from atp.report.formats.markdown import MarkdownReport
from atp.report.html.report import HtmlReport
from atp.report.records.report import event_schema, report_schema
from atp.report.reporter import REPORTERS, Reporter

KINDS: dict[str, type[Reporter]] = {"md": MarkdownReport, "xml": JunitReport, "csv": CsvReport, "ctrf.json": CtrfReport}


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("name", ["troubles", "repeated"])
def test_golden(
    tmp_path: Path,
    story: Any,
    golden: Callable[[str, str], None],
    name: str,
    ending: str,
    request: pytest.FixtureRequest,
) -> None:
    path = tmp_path / f"report.{ending}"
    report = KINDS[ending](path)
    cases = request.getfixturevalue(name)
    runs = {"troubles": 1, "repeated": 3}[name]
    info = story.info(files=("tests/expense.jsonl",), runs=runs, cases=len(cases), trials=runs * len(cases))
    report.start(info)
    report.skipped("tests/expense.jsonl", story.skipped())
    for case in cases:
        report.case(case)
    counts = story.counts(passed=1, failed=4, errors=2, blocked=1, cancelled=1, skipped=1)
    report.end(story.end(info, counts=counts, reason="interrupted" if name == "troubles" else None, exit_code=1))
    assert list(report.problems) == []
    with path.open(encoding="utf-8", newline="") as file:
        golden(f"{name}.{ending}", file.read().replace("\r\n", "\n"))


@pytest.mark.parametrize("ending", KINDS)
def test_results_stand_in_the_order_of_the_files(tmp_path: Path, story: Any, ending: str) -> None:
    path = tmp_path / f"report.{ending}"
    files = ("b.jsonl", "a.jsonl")
    cases = [story.case(f"case-{file[0]}-{index:02}", index=index, file=file) for file in files for index in range(20)]
    info = story.info(files=files)
    story.tell([KINDS[ending](path)], random.Random(1).sample(cases, 40), story.end(info))
    text = path.read_text(encoding="utf-8")
    places = [text.index(one.case) for one in cases]
    assert places == sorted(places)


WHOLE: dict[str, type[Reporter]] = {**KINDS, "json": JsonReport, "html": HtmlReport}
"""Those that write their file when the run ends."""


@pytest.mark.parametrize("ending", WHOLE)
def test_a_folder_that_vanishes(tmp_path: Path, story: Any, ending: str) -> None:
    path = tmp_path / "sub" / f"report.{ending}"
    path.parent.mkdir()
    report = WHOLE[ending](path)
    report.start(story.info())
    report.case(story.case())
    path.parent.rmdir()
    report.end(story.end())
    (problem,) = report.problems
    assert f"report.{ending}: No such file" in problem


@pytest.mark.parametrize("ending", WHOLE)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_at_the_end(tmp_path: Path, story: Any, ending: str) -> None:
    path = tmp_path / f"report.{ending}"
    path.symlink_to("/dev/full")
    report = WHOLE[ending](path)
    story.tell([report], [story.case()], story.end())
    (problem,) = report.problems
    assert "No space left on device" in problem


def test_the_longest_ending_tells_the_format(tmp_path: Path) -> None:
    names = ["a.json", "b.ctrf.json", "c.v2.json", "d.MD", "e.xml", "f.csv", "g.html", "h.x.jsonl"]
    kinds = [JsonReport, CtrfReport, JsonReport, MarkdownReport, JunitReport, CsvReport, HtmlReport, JsonlReport]
    assert [REPORTERS.for_file(Path(name)) for name in names] == kinds
    listeners = choose(Options(output=[str(tmp_path / name) for name in names]), Reads())
    assert [type(one) for one in listeners[:-1]] == kinds


def test_a_tps_report_is_not_a_json_report(tmp_path: Path) -> None:
    with pytest.raises(LoadError) as caught:
        choose(Options(output=[str(tmp_path / "x.tps.json")]), Reads())
    (found,) = caught.value.diagnostics
    assert found.code == "unknown-report-format"
    assert "a TPS report is about one .test.md file" in found.message


@pytest.mark.parametrize("name", ["troubles", "repeated", "document"])
def test_json_reports_keep_to_the_published_schemas(
    tmp_path: Path, story: Any, name: str, request: pytest.FixtureRequest
) -> None:
    whole, lines = tmp_path / "report.json", tmp_path / "report.jsonl"
    reports = [JsonReport(whole), JsonlReport(lines)]
    end = story.end(counts=story.counts(passed=1, failed=2), reason="interrupted")
    for report in reports:
        report.start(end.info)
        report.skipped("tests/expense.jsonl", story.skipped())
        for case in request.getfixturevalue(name):
            report.case(case)
        report.end(end)
    for schema in (report_schema(), event_schema()):
        Draft202012Validator.check_schema(schema)
    Draft202012Validator(report_schema()).validate(json.loads(whole.read_bytes()))
    for line in lines.read_bytes().splitlines():
        Draft202012Validator(event_schema()).validate(json.loads(line))


def test_the_schema_is_closed(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "report.json"
    story.tell([JsonReport(path)], [story.case()], story.end())
    report = json.loads(path.read_bytes())
    valid = Draft202012Validator(report_schema()).is_valid
    assert valid(report)
    report["results"][0]["surprise"] = 1
    assert not valid(report)


def test_a_full_disk_is_a_problem(tmp_path: Path, story: Any) -> None:
    for ending, kind in KINDS.items():
        path = tmp_path / f"report.{ending}"
        path.symlink_to("/dev/full")
        report = kind(path)
        story.tell([report], [story.case()], story.end())
        assert ["No space left" in problem for problem in report.problems] == [True], ending


def test_a_case_without_trials(tmp_path: Path, story: Any) -> None:
    for ending, kind in KINDS.items():
        report = kind(tmp_path / f"report.{ending}")
        story.tell([report], [story.case("c", trials=[], status="cancelled")], story.end())
        assert list(report.problems) == []
