"""The Markdown report: document 4's sections, and agents' texts that stay texts."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from atp.report.formats.markdown import MOST_FILES, MarkdownReport
from atp.report.markdown_text import block, code, plain, table
from atp.suite.result import Artifact, CaseResult, MadeFile, TrialResult

ADVERSE = st.text(alphabet=st.sampled_from("`~|\\<>[]()*_#!&;:@$ \n\r\tab1-=+\"'\u2028\x1b"), max_size=60)


def written(tmp_path: Path, story: Any, cases: list[CaseResult], **end: Any) -> str:
    path = tmp_path / "report.md"
    story.tell([MarkdownReport(path)], cases, story.end(**end))
    return path.read_text(encoding="utf-8")


def test_the_documents_sections(tmp_path: Path, story: Any) -> None:
    trial = story.trial({"keywords": ["AI"]}, duration_ms=234)
    info = story.info(agents=["keyword"], connector="deepseek.v3", cases=42, trials=42)
    counts = story.counts(passed=40, failed=2)
    end = {"info": info, "counts": counts, "duration_ms": 12345}
    text = written(tmp_path, story, [story.case("T001", trial)], **end)
    assert text.startswith(
        """\
# Agent Test Report

## Summary

| Metric    | Value       |
| --------- | ----------- |
| Agent     | keyword     |
| Connector | deepseek.v3 |
| Total     | 42          |
| Passed    | 40          |
| Failed    | 2           |
| Pass Rate | 95.2%       |
| Duration  | 12.3s       |

## Environment

| Setting | Value     |
| ------- | --------- |
| User    | test-user |
| Team    | test-team |
| Locale  | en-us     |

## Results

### ✅ T001 - Passed (234ms)

"""
    )


def test_several_agents_have_totals_and_scores_say_what_they_leave_out(tmp_path: Path, story: Any) -> None:
    trial = story.trial(score=60.0, dimensions={"quality": 0.6}, left_out={"cost": "no budget_usd"})
    low = story.case("c", trial, agent="two", status="failed", min_score=80.0, reason="score 60 is below min_score 80")
    info = story.info(agents=["one", "two"])
    text = written(tmp_path, story, [story.case("c", agent="one"), low], info=info)
    assert "| one   | 1 of 1 case passed (100%)           |\n" in text
    assert "| two   | 0 of 1 case passed (0%), score 60.0 |\n" in text
    assert "- Score: 60 (left out: cost, `no budget_usd`)\n" in text
    assert "| Below Min Score | 1 case, although enough trials passed |\n" in text
    assert "- Why: `score 60 is below min_score 80`\n" in text


def test_a_stopped_run_says_so(tmp_path: Path, story: Any) -> None:
    end = {"info": story.info(cases=5), "counts": story.counts(passed=1), "reason": "interrupted"}
    text = written(tmp_path, story, [story.case()], **end)
    assert "| Not Run   | 4 " in text
    assert "| Stopped   | interrupted " in text


@given(ADVERSE)
def test_a_span_is_one_and_holds_the_text(text: str) -> None:
    """Within a table, where a `|` would end the cell and a backtick the span."""
    tokens = MarkdownIt("commonmark").enable("table").parse("\n".join(table(("a", "b"), [(code(text), "end")])))
    cells = [tokens[number + 1] for number, one in enumerate(tokens) if one.type == "td_open"]
    assert len(cells) == 2
    assert cells[1].content == "end"
    kinds = [one.type for one in cells[0].children or []]
    assert kinds == (["code_inline"] if text.strip(" \n\t") else ["text"])


@given(ADVERSE)
def test_plain_text_is_no_markup(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(f"### ✅ {plain(text)} - Passed")
    assert [one.type for one in tokens] == ["heading_open", "inline", "heading_close"]
    kinds = {one.type for one in tokens[1].children or []}
    assert kinds <= {"text", "text_special"}


@given(ADVERSE)
def test_nothing_ends_a_block(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse("\n".join([*block(text), "after"]))
    assert [one.type for one in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@pytest.mark.parametrize("text", ["| a | b |\n|---|---|", "```\n# mine\n```", "<script>alert(1)</script>", "![x](y)"])
def test_agents_write_no_markup(tmp_path: Path, story: Any, text: str) -> None:
    case = story.case("c", story.trial(text, text, status="failed", error=text, verdicts=[]), name=text, tags=[text])
    case.input = text
    tokens = MarkdownIt("commonmark").enable("table").parse(written(tmp_path, story, [case]))
    headings = [tokens[number + 1].content for number, one in enumerate(tokens) if one.type == "heading_open"]
    assert headings[:4] == ["Agent Test Report", "Summary", "Environment", "Results"]
    assert len(headings) == 5
    assert sum(one.type == "table_open" for one in tokens) == 2
    inner = {child.type for one in tokens for child in one.children or []}
    assert not inner & {"html_inline", "image", "link_open"}
    assert not {one.type for one in tokens} & {"html_block"}
    assert [one.content.rstrip("\n") for one in tokens if one.type == "fence"] == [text, text]


def test_a_stability_table(tmp_path: Path, story: Any, repeated: list[CaseResult]) -> None:
    info = story.info(cases=3, trials=9, runs=3)
    text = written(tmp_path, story, repeated, info=info, counts=story.counts(passed=2, failed=1, runs=9, passed_runs=7))
    assert "## Stability" in text
    assert "| T002 | 3    | 2      | 66.7%     | 0.67        | unstable |" in text
    assert "| Runs      | 7 of 9 passed " in text


def test_variations_are_told_apart_from_runs(tmp_path: Path, story: Any) -> None:
    trials: list[TrialResult] = [story.trial(variation=number) for number in range(2)]
    text = written(tmp_path, story, [story.case("v", *trials)], info=story.info(cases=1, trials=2))
    assert "| v    | 2 variations | 2 " in text
    trials += [story.trial(variation=number, run=2) for number in range(2)]
    info = story.info(cases=1, trials=4, runs=2)
    counts = story.counts(passed=1, variations=2, runs=4, passed_runs=4)
    text = written(tmp_path, story, [story.case("v", *trials)], info=info, counts=counts)
    assert "| v    | 2 variations × 2 runs | 4 " in text
    assert "| Trials    | 4 of 4 passed (2 variations × 2 runs) |" in text
    assert "- Trials: 4/4 passed (100%) of 2 variations × 2 runs, stable, consistency 1.00\n" in text


def test_what_the_agent_made_is_named(tmp_path: Path, story: Any) -> None:
    trial = story.trial(files=[MadeFile(name="a`|<b>.csv", size=1234, sha256="ab" * 32, kept=True)])
    trial.transcript.artifacts = [Artifact(name="a`|<b>.csv", text="x"), Artifact(name="plan", kind="structured")]
    text = written(tmp_path, story, [story.case("c", trial)])
    assert f"- Made by the agent:\n  - ``a`\\|<b>.csv``: 1,234 bytes, sha256 `{'ab' * 32}`\n  - `plan`\n" in text
    many = story.trial(files=[MadeFile(name=f"f{number:03}", size=1) for number in range(MOST_FILES + 2)])
    text = written(tmp_path, story, [story.case("c", many)])
    assert f"  - `f{MOST_FILES - 1:03}`: 1 byte\n  - … and 2 more\n" in text


def test_a_cases_own_user_team_and_metadata_are_told(tmp_path: Path, story: Any) -> None:
    own = story.case("own", user="eve", team="red", metadata={"ticket": "A-7"})
    _, _, text = written(tmp_path, story, [own, story.case("plain")]).partition("## Results")
    assert '- User: `eve`\n- Team: `red`\n- Metadata: `{"ticket":"A-7"}`\n' in text
    assert text.count("- User: ") == text.count("- Team: ") == text.count("- Metadata: ") == 1
