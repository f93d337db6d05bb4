"""The JSONL events: the documents' keys, streamed, one valid object a line whatever agents say."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atp.report.formats.jsonl import JsonlReport
from atp.suite.result import CaseResult


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_golden(tmp_path: Path, story: Any, troubles: list[CaseResult], golden: Callable[[str, str], None]) -> None:
    path = tmp_path / "out.jsonl"
    story.tell([JsonlReport(path)], troubles, story.end(reason="interrupted", exit_code=130))
    golden("troubles.jsonl", path.read_text(encoding="utf-8"))


def test_golden_of_repeated_cases(
    tmp_path: Path, story: Any, repeated: list[CaseResult], golden: Callable[[str, str], None]
) -> None:
    path = tmp_path / "out.jsonl"
    info = story.info(trials=9, runs=3)
    story.tell([JsonlReport(path)], repeated, story.end(info))
    golden("repeated.jsonl", path.read_text(encoding="utf-8"))


def test_the_documents_keys_and_texts(tmp_path: Path, story: Any, document: list[CaseResult]) -> None:
    path = tmp_path / "out.jsonl"
    story.tell([JsonlReport(path)], document, story.end())
    start, *results, summary = read(path)
    assert start["type"] == "start"
    assert start["timestamp"] == "2024-12-17T10:00:00Z"
    assert (start["agent_id"], start["total_cases"]) == ("assistants.expense", 3)
    last = results[-1]
    expected = {
        "type": "result",
        "id": "expense-turn3",
        "name": "Final turn - confirm",
        "status": "passed",
        "messages_count": 5,
        "response": "Expense submitted. Reference: EXP-2025-001",
        "assertions": [{"type": "contains", "value": "submitted", "passed": True}],
        "duration_ms": 1800,
        "error": None,
        "pass_rate": 100.0,
    }
    assert {key: last[key] for key in expected} == expected
    assert {"type": "summary", "total": 3, "passed": 3, "failed": 0, "duration_ms": 5100}.items() <= summary.items()


def test_the_documents_dialogue(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    path = tmp_path / "out.jsonl"
    story.tell([JsonlReport(path)], troubles, story.end())
    (dialogue,) = [one for one in read(path) if one.get("id") == "dialogue"]
    assert [(one["turn"], one["input"], one["output"]) for one in dialogue["turns"]] == [
        (1, "Help", "What type?"),
        (2, "Dinner", "Bye"),
    ]
    assert dialogue["checkpoints"] == [
        {"id": "ask_type", "reached_at_turn": 1, "passed": True},
        {"id": "call_create", "reached_at_turn": None, "passed": False},
        {"id": "thanks", "reached_at_turn": None, "passed": False},
    ]
    assert dialogue["missing_checkpoints"] == ["call_create"]
    assert dialogue["total_turns"] == 2
    assert dialogue["error"] == "missing checkpoints: call_create"


def test_several_agents(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "out.jsonl"
    info = story.info(agents=["one", "two"])
    story.tell([JsonlReport(path)], [story.case(agent="one"), story.case(agent="two")], story.end(info))
    start, first, second, _ = read(path)
    assert start["agent_id"] == "one, two"
    assert start["agents"] == ["one", "two"]
    assert (first["agent_id"], second["agent_id"]) == ("one", "two")


def test_each_line_is_there_at_once(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "out.jsonl"
    report = JsonlReport(path)
    report.start(story.info())
    assert [one["type"] for one in read(path)] == ["start"]
    report.skipped("tests/expense.jsonl", story.skipped())
    report.case(story.case())
    assert [one["type"] for one in read(path)] == ["start", "skipped", "result"]
    report.end(story.end())
    assert read(path)[1] == {
        "type": "skipped",
        "id": "later",
        "name": "later",
        "status": "skipped",
        "file": "tests/expense.jsonl",
        "line": 0,
        "tags": [],
    }


def test_an_earlier_report_stays_until_the_run_starts(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("earlier")
    report = JsonlReport(path)
    assert path.read_text() == "earlier"
    story.tell([report], [], story.end())
    assert [one["type"] for one in read(path)] == ["start", "summary"]


def test_a_fresh_report_never_takes_another_runs_name(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "output-20241217100000.jsonl"
    reports = [JsonlReport(path, fresh=True) for _ in range(3)]
    story.tell(reports, [story.case()], story.end())
    names = ["output-20241217100000-2.jsonl", "output-20241217100000-3.jsonl", "output-20241217100000.jsonl"]
    assert sorted(one.name for one in tmp_path.iterdir()) == names
    assert [one.path.name for one in reports if one.path] == [names[2], names[0], names[1]]
    assert all(len(read(one)) == 3 for one in tmp_path.iterdir())


def test_json_on_stdout_is_the_same(
    tmp_path: Path, story: Any, troubles: list[CaseResult], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "out.jsonl"
    story.tell([JsonlReport(path), JsonlReport(None)], troubles, story.end())
    assert capsysbinary.readouterr().out == path.read_bytes()


def test_a_file_that_cannot_be_opened(tmp_path: Path, story: Any) -> None:
    report = JsonlReport(tmp_path / "no" / "out.jsonl")
    story.tell([report], [story.case()], story.end())
    (problem,) = report.problems
    assert problem.endswith("out.jsonl: No such file or directory")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_said_once(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "out.jsonl"
    path.symlink_to("/dev/full")
    assert stat.S_ISCHR(path.stat().st_mode)
    report = JsonlReport(path)
    story.tell([report], [story.case(), story.case()], story.end())
    (problem,) = report.problems
    assert "No space left on device" in problem


def test_half_a_line_is_taken_back(tmp_path: Path, story: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.jsonl"
    report = JsonlReport(path)
    report.start(story.info())
    write = os.write

    def fill_up(fd: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(fd, data[:-50])

    monkeypatch.setattr(os, "write", fill_up)
    report.case(story.case())
    monkeypatch.undo()
    report.end(story.end())
    assert [one["type"] for one in read(path)] == ["start"]
    assert len(report.problems) == 1
