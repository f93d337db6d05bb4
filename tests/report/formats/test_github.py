"""In a workflow of GitHub's: annotations that nothing can break out of, and a summary that GitHub takes."""

import io
from pathlib import Path
from typing import Any

import pytest

from atp.base.text import without_commands
from atp.engine.prepare.options import Options
from atp.report.choose import Reads, choose
from atp.report.console.console import Console
from atp.report.console.page import PlainPage
from atp.report.formats.github import LARGEST, MOST, Annotations, StepSummary
from atp.suite.result import CaseResult


def bad(story: Any, name: str, error: str = "no", **more: Any) -> CaseResult:
    case: CaseResult = story.case(name, story.trial(status="failed", error=error, verdicts=[]), **more)
    return case


def test_an_annotation_is_one_line(story: Any) -> None:
    stream = io.StringIO()
    case = bad(story, "a::b,c%0A", "50%\r\n::error::x", file="odd,name:x.jsonl", line=7)
    story.tell([Annotations(stream)], [case, story.case("fine")], story.end())
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("::error file=odd%2Cname%3Ax.jsonl,line=7,col=1,title=[a%3A%3Ab%2Cc%250A]::50%25")
    assert "\r" not in line


def test_there_are_not_too_many(story: Any) -> None:
    stream = io.StringIO()
    story.tell([Annotations(stream)], [bad(story, f"c{n}") for n in range(MOST + 5)], story.end(reason="interrupted"))
    lines = stream.getvalue().splitlines()
    assert len(lines) == MOST + 2
    assert lines[-2:] == ["::notice title=ATP::5 more cases did not pass", "::error title=ATP::interrupted"]


def test_they_apply_only_in_a_workflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    assert [type(one) for one in choose(Options(), Reads())] == [Console]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert [type(one) for one in choose(Options(), Reads())] == [StepSummary, Console, Annotations]
    assert Annotations not in [type(one) for one in choose(Options(json_events=True), Reads())]


def test_the_summary_stays_within_its_limit(story: Any, tmp_path: Path) -> None:
    path = tmp_path / "step.md"
    path.write_text("x" * 300_000)
    cases = [bad(story, f"c{number}", input="word " * 400) for number in range(600)]
    story.tell([StepSummary(path)], cases, story.end())
    text = path.read_text()
    assert 600_000 < len(text.encode()) <= LARGEST
    assert text.endswith(" more cases did not pass: see the report.\n")
    shown = text.count("### ")
    assert int(text.splitlines()[-1].split()[0]) == 600 - shown


def test_a_summary_that_cannot_be_written(story: Any, tmp_path: Path) -> None:
    summary = StepSummary(tmp_path / "no" / "step.md")
    story.tell([summary], [story.case()], story.end())
    (problem,) = summary.problems
    assert "No such file" in problem


@pytest.mark.parametrize("text", ["::error::x", "a\n  ::add-mask::b", "x ##[group]y", "##vso[task]", "##teamcity[x]"])
def test_agents_give_no_commands(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert without_commands(text) == text
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    stream = io.StringIO()
    page = PlainPage(stream)
    page.show([(text, "")])
    page.close()
    shown = stream.getvalue()
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert not any(f"##{mark}" in shown for mark in ("[", "vso[", "teamcity["))
    assert shown.replace(" ", "") == f"{text}\n".replace(" ", "")
