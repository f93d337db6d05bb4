"""From the command line to the listeners, and what is found out before anything runs."""

import io
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import WAIT_LIMIT

from atp.base.diagnostics import LoadError
from atp.engine.case_source import CaseSource, Survey
from atp.engine.prepare.options import Options
from atp.engine.prepare.sources import Input
from atp.journal.listeners import Listener, Listeners, RunEnd
from atp.journal.records import RunInfo
from atp.report.choose import Reads, choose, default_path, reads
from atp.report.console.console import Answer, Console
from atp.report.formats.json import JsonReport
from atp.report.formats.jsonl import JsonlReport
from atp.report.formats.summary import SummaryReport
from atp.report.reporter import REPORTERS
from atp.suite.suite import Suite


def kinds(listeners: list[Listener]) -> list[type]:
    return [type(one) for one in listeners]


def refused(options: Options, given: Reads) -> list[tuple[str, str, str | None]]:
    with pytest.raises(LoadError) as caught:
        choose(options, given)
    return [(one.code, one.message, one.hint) for one in caught.value.diagnostics]


def test_the_extension_tells_the_format(tmp_path: Path) -> None:
    options = Options(output=[str(tmp_path / "a.jsonl"), str(tmp_path / "b.JSON")])
    assert kinds(choose(options, Reads())) == [JsonlReport, JsonReport, Console]


def test_the_default_is_beside_a_single_jsonl_file(tmp_path: Path, story: Any) -> None:
    given = Reads(jsonl=tmp_path / "inputs.jsonl", files=(tmp_path / "inputs.jsonl",))
    (report, console) = choose(Options(), given, now=1734429600.0)
    assert isinstance(report, JsonlReport)
    assert report.path is not None
    assert report.path == default_path(tmp_path / "inputs.jsonl", 1734429600.0)
    assert report.path.name.startswith("output-2024121")
    story.tell([report], [story.case()], story.end())
    assert len(report.path.read_text().splitlines()) == 3
    assert kinds(choose(Options(output=[str(tmp_path / "x.json")]), given)) == [JsonReport, Console]
    assert kinds(choose(Options(), Reads(files=(tmp_path / "a.yaml",)))) == [Console]
    assert console.problems == []


def test_json_leaves_stdout_to_the_events(tmp_path: Path) -> None:
    given = Reads(jsonl=tmp_path / "inputs.jsonl")
    assert kinds(choose(Options(json_events=True), given)) == [JsonlReport, JsonlReport]


def test_a_message_gets_its_answer_on_stdout(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    listeners = choose(Options(), Reads(message=True))
    assert kinds(listeners) == [Answer, Console]
    case = story.case("message", story.trial("one\n\ttwo \x1b[1mbold"), story.trial({"keywords": ["AI"]}, run=2))
    failed = story.case("message", story.trial(transcript=type(story.trial().transcript)(), status="error", error="no"))
    story.tell(listeners, [case, failed], story.end())
    printed = capsys.readouterr()
    assert printed.out == 'one\n\ttwo \ufffd[1mbold\n{"keywords":["AI"]}\n'
    assert "Agent: " in printed.err
    assert kinds(choose(Options(output=[str(tmp_path / "a.json")]), Reads(message=True))) == [JsonReport, Console]
    assert kinds(choose(Options(json_events=True), Reads(message=True))) == [JsonlReport]


def test_named_reporters(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "summary.out", tmp_path / "b.json"
    options = Options(reporter="report.summary", output=[str(first), str(second)])
    listeners = choose(options, Reads(message=True))
    assert kinds(listeners) == [SummaryReport, JsonReport, Console]
    story.tell(listeners, [story.case()], story.end())
    assert first.read_text().startswith("Agent: assistants.expense\n")
    assert "  Passed:  3\n" in first.read_text()
    capsys.readouterr()
    listeners = choose(Options(reporter="report.json"), Reads())
    story.tell(listeners, [story.case()], story.end())
    printed = capsys.readouterr()
    assert json.loads(printed.out)["results"][0]["id"] == "c"
    assert "Agent: " in printed.err


def test_what_cannot_be_made_is_said_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    test, same = tmp_path / "tests.jsonl", str(tmp_path / "same.json")
    test.touch()
    outputs = [
        "report.pdf",
        "report",
        str(tmp_path / "no" / "x.json"),
        str(tmp_path / "folder.json"),
        str(test),
        same,
        same,
    ]
    found = refused(Options(output=outputs), Reads(files=(test,)))
    assert [code for code, _, _ in found] == ["unknown-report-format"] * 2 + ["unwritable-report"] * 4
    messages = [message for _, message, _ in found]
    assert messages[0] == "-o report.pdf: no report is called *.pdf"
    assert found[0][2] == "use .csv, .ctrf.json, .htm, .html, .json, .jsonl, .md, .xml"
    assert "its name has no extension" in messages[1]
    assert "there is no folder" in messages[2]
    assert found[2][2] == f"make the folder: mkdir -p {tmp_path / 'no'}"
    assert found[3][2] == "name another file"
    assert "it is a folder" in messages[3]
    assert "it is a test file of this run" in messages[4]
    assert "two reports can't have the same file" in messages[5]
    assert not (tmp_path / "same.json").exists()


def test_an_unknown_reporter() -> None:
    ((code, message, hint),) = refused(Options(reporter="report.beautiful"), Reads())
    assert (code, message) == ("unknown-reporter", "-r report.beautiful: there is no such reporter")
    assert hint is not None
    assert "report.json, report.jsonl, report.junit, report.markdown, report.summary, or an agent" in hint
    found = refused(Options(reporter="report.beautiful", output=["no/where.html", "b.pdf"]), Reads())
    assert [one[0] for one in found] == ["unknown-reporter", "unwritable-report", "unknown-report-format"]


def test_stdout_is_not_for_two() -> None:
    ((code, _, _),) = refused(Options(reporter="report.json", json_events=True), Reads())
    assert code == "stdout-twice"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are different there")
def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may = os.access
    closed, file = tmp_path / "closed", tmp_path / "file.json"
    closed.mkdir()
    file.touch()
    # Root may write everywhere, so what the system says is played here.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) not in (closed, file) and may(path, mode))
    found = refused(Options(output=[str(closed / "a.json"), str(file)]), Reads())
    assert ["no permission" in message for _, message, _ in found] == [True, True]
    ((_, message, hint),) = refused(Options(), Reads(jsonl=closed / "in.jsonl"))
    assert "no permission" in message
    assert hint == "name another file with -o"


def test_what_was_given(tmp_path: Path) -> None:
    def source(path: Path | None, dialect: Any) -> CaseSource:
        suite = Suite.model_construct(name="x", dialect=dialect, path=str(path) if path else None, cases=[], agents=[])
        return CaseSource(suite, lambda: iter(()), Survey(lambda case: True))

    jsonl, yaml = tmp_path / "a.jsonl", tmp_path / "b.yaml"
    jsonl.touch()
    one = reads(Input((), (str(jsonl),)), [source(jsonl, "jsonl")])
    assert one == Reads(jsonl=jsonl, files=(jsonl,))
    assert reads(Input((str(jsonl),)), [source(jsonl, "jsonl")]) == one
    folder = reads(Input((), (str(tmp_path),)), [source(jsonl, "jsonl")])
    assert folder == Reads(files=(jsonl,))
    assert reads(Input(("hello",)), [source(None, "message")]) == Reads(message=True)
    both = reads(Input(("hello",), (str(yaml),)), [source(None, "message"), source(yaml, "yaml")])
    assert both == Reads(files=(yaml,))


def test_a_plugin_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, story: Any) -> None:
    module = tmp_path / "my_reporter.py"
    module.write_text(
        "from atp.report.reporter import Reporter\n"
        "class Shout(Reporter):\n"
        "    format, extensions = 'report.shout', ('.shout',)\n"
        "    def end(self, end):\n"
        "        self.path.write_text('DONE')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("shout", "my_reporter:Shout", "atp.reporters")
    monkeypatch.setattr("atp.base.registry.entry_points", lambda group: [entry])
    monkeypatch.setattr(REPORTERS, "_discovered", False)
    monkeypatch.setattr(REPORTERS, "_members", {})
    path = tmp_path / "x.shout"
    story.tell(choose(Options(output=[str(path)]), Reads()), [], story.end())
    assert path.read_text() == "DONE"


def test_built_in_reporters_go_by_the_names_that_they_are_listed_under() -> None:
    listed = {name: REPORTERS.find(name) for name in REPORTERS.names}
    assert listed[".json"] is listed["report.json"] is JsonReport
    for name, reporter in listed.items():
        assert reporter is not None
        assert name in (reporter.format, *reporter.extensions)
    assert REPORTERS.for_extension(".JSON") is JsonReport
    assert REPORTERS.find("report.other") is None


def test_a_reader_of_json_who_goes_away(story: Any) -> None:
    script = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from conftest import Story\n"
        "from atp.report.formats.jsonl import JsonlReport\n"
        "story = Story()\n"
        "events = JsonlReport(None)\n"
        "story.tell([events], [story.case()] * 2000, story.end())\n"
        "sys.stderr.write(f'{events.problems}, all told')\n"
    )
    here = str(Path(__file__).parent)
    done = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" "$2" | head -1 > /dev/null; exit 0', sys.executable, script, here],
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT,
        check=True,
    )
    assert done.stderr == "[], all told"


def test_stdout_that_is_closed(monkeypatch: pytest.MonkeyPatch, story: Any) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert choose(Options(), Reads()) == []
    for options in (Options(json_events=True), Options(reporter="report.json"), Options(reporter="report.summary")):
        audience = Listeners(choose(options, Reads()))
        story.tell([audience], [], story.end())
        assert audience.problems == ["stdout: it is closed"]
    answers = Listeners(choose(Options(), Reads(message=True)))
    story.tell([answers], [story.case()], story.end())
    assert answers.problems == ["stdout: it is closed"]


def test_text_streams_without_bytes(monkeypatch: pytest.MonkeyPatch, story: Any) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    story.tell([JsonlReport(None)], [story.case()], story.end())
    assert [json.loads(line)["type"] for line in stream.getvalue().splitlines()] == ["start", "result", "summary"]


def test_the_console_knows_the_reports(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.json"
    listeners = choose(Options(output=[str(path)], quiet=True), Reads())
    info: RunInfo = story.info()
    end: RunEnd = story.end(info)
    story.tell(listeners, [story.case()], end)
    assert f"Report: {path}\n" in capsys.readouterr().out
