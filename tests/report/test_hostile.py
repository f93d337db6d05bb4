"""Agents say what they like, in every field there is: nothing breaks, nothing steers a terminal, no secret leaves."""

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from tests.engine.support.project import Project, together

from atp.base.json.text import encode
from atp.journal.listeners import Listener
from atp.report.console.console import Answer, Console, ConsoleOptions
from atp.report.console.live import LiveConsole
from atp.report.console.page import PlainPage
from atp.report.formats.csv import COLUMNS, CsvReport
from atp.report.formats.ctrf import CtrfReport
from atp.report.formats.github import Annotations, StepSummary
from atp.report.formats.json import JsonReport
from atp.report.formats.jsonl import JsonlReport
from atp.report.formats.junit import JunitReport
from atp.report.formats.markdown import MarkdownReport
from atp.report.formats.summary import SummaryReport
from atp.report.reporter import Reporter
from atp.suite.case import Case
from atp.suite.result import (
    Artifact,
    CaseResult,
    CheckpointResult,
    ToolCall,
    Transcript,
    TrialResult,
    Turn,
    Verdict,
)

HELLO = {"type": "contains", "value": "hello"}
HOSTILE = "[bold red]{{ 7919*7927 }} ${API_KEY} {API_KEY} %(API_KEY)s [/nope] </judge> \x1b[31m\x07 ${{x}}"

NASTY = {
    "escape": "\x1b[2J\x1b]0;owned\x07",
    "markup": "[bold red]x[/] [/nope] [link=http://x]y",
    "surrogate": "half \ud83d a pair \udc00",
    "controls": "\x00\x07\x08\r\x7f\x85\x9b31m",
    "bidi": "\u202eevil\u2066 \u2028 \u2029",
    "lines": "one\ntwo\r\nthree\x0bfour",
    "template": "{{ 7*7 }} ${HOME} %s %(x)s {0}",
    "json": '"}]}\n{"type":"summary","passed":1}',
    "formula": "=cmd|' /C calc'!A0",
    "xml": "]]><failure/>&lt;&#0;<!--",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "markdown": "```\n# mine\n| a | b |\n|---|---|\n[x](javascript:alert(1)) ![y](z) `` ` **b** @somebody",
    "workflow": "::error::x\n::add-mask::y",
}
FORBIDDEN = {chr(number) for number in [*range(10), *range(11, 32), *range(127, 160)]} | set(
    "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def hostile_case(x: Any, status: Any = "failed") -> CaseResult:
    verdict = Verdict(
        type="contains",
        outcome="failed",
        message=x,
        expected={x: x},
        found=[x],
        where=x,
        name=x,
        judged=True,
        evidence=[x],
    )
    verdict.parts = [Verdict(type="any_of", outcome="unjudged", message=x, parts=[verdict])]
    verdict.parts[0].parts = []
    transcript = Transcript(
        messages=[{"role": x, "content": x}, {"role": "assistant", "content": [{"type": "text", "text": x}]}],
        turns=[Turn(turn=1, input=x, output=x)],
        tool_calls=[ToolCall(name=x, arguments={x: x}, result=x), ToolCall(name=x, error=x, turn=9)],
        artifacts=[Artifact(name=x, text=x, content_type=x)],
        logs=[x],
    )
    trial = TrialResult(
        key="k",
        agent=x,
        case=x,
        status=status,
        error=f"{x}!",
        blame="agent",
        verdicts=[verdict],
        transcript=transcript,
        attempt=2,
        retries=[x],
        warnings=[x],
        workspace=x,
        checkpoints=[CheckpointResult(id=x)],
    )
    case = CaseResult(agent=x, case=x, name=f"{x}.", file=x, tags=[x], input=x, expected={x: [x]}, status=status)
    case.trials = [trial, trial]
    return case


def run_everything(story: Any, folder: Path, case: CaseResult, text: str, secrets: list[str]) -> dict[str, str]:
    plain, live = io.StringIO(), io.StringIO()
    look = ConsoleOptions(verbose=2, command=text, secrets=secrets)
    reporters: list[Reporter] = [
        MarkdownReport(folder / "out.md", secrets),
        JunitReport(folder / "out.xml", secrets),
        CsvReport(folder / "out.csv", secrets),
        CtrfReport(folder / "out.ctrf.json", secrets),
        StepSummary(folder / "step.md", secrets),
        JsonlReport(folder / "out.jsonl", secrets),
        JsonReport(folder / "out.json", secrets),
        SummaryReport(folder / "out.txt", secrets),
        JsonlReport(None, secrets),
        Answer(None, secrets),
    ]
    terminal: dict[str, Any] = {"force_terminal": True, "width": 80, "color_system": None, "legacy_windows": False}
    notes = io.StringIO()
    listeners: list[Listener] = [*reporters, Console(PlainPage(plain), look), LiveConsole(live, look, **terminal)]
    listeners.append(Annotations(notes, secrets))
    info = story.info(
        folder=text,
        input=[text],
        agents=[text, "b"],
        connector=text,
        notes=(text,),
        environment={"user": text},
    )
    skipped = Case.model_construct(id=text, name=text, tags=[text])
    for listener in listeners:
        listener.start(info)
        listener.skipped(text, skipped)
        listener.case(case)
        listener.end(story.end(info, reason=text))
        assert list(listener.problems) == []
    found = {path.name: path.read_bytes().decode() for path in folder.iterdir()}
    return {**found, "plain": plain.getvalue(), "live": live.getvalue(), "notes": notes.getvalue()}


def parses(found: dict[str, str], text: str) -> None:
    """What others read is of the shape they expect, whatever agents say."""
    root = ET.fromstring(found["out.xml"])
    assert [one.tag for one in root.iter("testcase")] == ["testcase"] * 3  # the case, one skipped, and the early end
    assert [len(list(root.iter(kind))) for kind in ("failure", "error", "skipped")] == [1, 1, 1]
    rows = list(csv.reader(io.StringIO(found["out.csv"], newline=""), strict=True))
    assert [len(row) for row in rows] == [len(COLUMNS)] * 4
    assert not any(one.startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows for one in row)
    assert len(json.loads(found["out.ctrf.json"])["results"]["tests"]) == 3
    for file in ("out.md", "step.md"):
        tokens = MarkdownIt("commonmark").enable("table").parse(found[file])
        inner = {one.type for token in tokens for one in token.children or []}
        assert inner <= {"text", "text_special", "code_inline", "strong_open", "strong_close", "softbreak"}, file
        assert "html_block" not in {one.type for one in tokens}
        assert sum(one.type == "heading_open" for one in tokens) == (7 if file == "out.md" else 3)
    assert [line.partition(" ")[0] for line in found["notes"].splitlines()] == ["::error", "::error"]


@pytest.mark.parametrize("name", NASTY)
def test_every_field(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    text = NASTY[name]
    found = run_everything(story, tmp_path, hostile_case(text), text, [])
    lines = [json.loads(line) for line in found["out.jsonl"].splitlines()]
    assert [one["type"] for one in lines] == ["start", "skipped", "result", "summary"]
    report = json.loads(found["out.json"])
    if name != "surrogate":
        assert report["results"][0]["output"] == lines[2]["output"] == text
        assert report["results"][0]["expected"] == {text: [text]}
    for file in ("out.jsonl", "out.json", "out.txt", "plain", "out.md", "out.xml", "out.ctrf.json", "step.md", "notes"):
        assert not FORBIDDEN & set(found[file].replace("\t", "")), file
    assert not FORBIDDEN & set(found["out.csv"].replace("\r\n", "\n").replace("\t", ""))
    parses(found, text)
    assert "owned\x07" not in found["live"]
    assert "\x1b[2J" not in found["live"].replace("\x1b[2K", "")
    assert not FORBIDDEN & set(capsys.readouterr().out.replace("\t", ""))


def test_markup_is_shown_as_it_is(tmp_path: Path, story: Any) -> None:
    found = run_everything(story, tmp_path, hostile_case("[red]a[/red]"), "[red]a[/red]", [])
    assert "✗ [[red]a[/red]] [red]a[/red]. – [red]a[/red]" in found["plain"]
    assert "✗ [[red]a[/red]] [red]a[/red]. – [red]a[/red]" in found["live"]


def test_huge_texts(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    huge = "x" * 5_000_000
    case = story.case("c", story.trial(huge, status="failed", error="\x1b" * 100_000, verdicts=[]))
    wrong = Verdict(
        type="equals", outcome="failed", message="\x1b" * 100_000, expected=huge, found={"a": "\x1b" * 100_000}
    )
    case.trials[0].verdicts = [wrong]
    found = run_everything(story, tmp_path, case, "x", [])
    assert json.loads(found["out.jsonl"].splitlines()[2])["output"] == huge
    assert max(len(found[file]) for file in ("out.md", "out.xml", "out.ctrf.json", "step.md", "notes")) < 60_000
    assert len(found["out.csv"]) < 200_000
    assert len(found["plain"]) < 20_000
    assert len(found["live"]) < 40_000
    assert len(capsys.readouterr().out) > 5_000_000


def test_values_that_json_cannot_say() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    odd = {"a": Odd(), None: {1, 2}, (1, 2): float("nan"), "deep": deep, "big": 2**100, "\ud800": ("\ud83d\ude00",)}
    data = json.loads(encode(odd))
    assert data["a"] == "(Odd)"
    assert data["None"] == [1, 2]
    assert data["(1, 2)"] is None
    assert data["big"] == 2**100
    assert data["\ufffd"] == ["😀"]


SECRET = 's3cr3t-\u00e9"\\\n-key'


@pytest.mark.parametrize("status", ["passed", "failed", "error", "blocked"])
def test_secrets(tmp_path: Path, story: Any, capsys: pytest.CaptureFixture[str], status: str) -> None:
    text = f"the key is {SECRET}."
    found = run_everything(story, tmp_path, hostile_case(text, status), text, [SECRET])
    found["stdout"] = capsys.readouterr().out
    for name, content in found.items():
        assert "s3cr3t" not in content, name
        assert "***" in content.replace("\\", ""), name


def test_secrets_do_not_break_the_shape(tmp_path: Path, story: Any) -> None:
    found = run_everything(story, tmp_path, hostile_case("passed status"), "x", ["passed", "status", "assertions"])
    result = json.loads(found["out.json"])["results"][0]
    assert result["status"] == "failed"
    assert result["assertions"][0]["passed"] is False
    assert result["output"] == "*** ***"


def test_agent_output_is_never_a_template_nor_markup(project: Project) -> None:
    project.write("agent.py", f"def run(): return {HOSTILE!r}")
    check = {"type": "equals", "value": HOSTILE}
    file = project.cases({"id": "a", "input": "x", "assert": check}, {"id": "b", "input": "x", "assert": HELLO})
    secret = {"API_KEY": "very-secret-key"}
    ran, shown = together(
        lambda: project.test(file, "-n", "agent.py:run", env=secret),
        lambda: project.atp("test", file, "-n", "agent.py:run", "-vv", env=secret),
    )
    assert ran.statuses == {"a": "passed", "b": "failed"}
    assert ran.results["a"]["output"] == HOSTILE
    assert shown.code == 1
    assert "[bold red]{{ 7919*7927 }} ${API_KEY} {API_KEY} %(API_KEY)s [/nope] </judge>" in shown.out
    assert "\x1b" not in shown.out + shown.err
    assert str(7919 * 7927) not in shown.out
    assert secret["API_KEY"] not in shown.out + shown.err + ran.out
