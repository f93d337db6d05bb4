"""The CSV report: a row for each trial, and nothing that a spreadsheet takes for a formula."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.report.formats.csv import COLUMNS, LONGEST, CsvReport, cell
from atp.suite.result import CaseResult, Usage


def rows(tmp_path: Path, story: Any, cases: list[CaseResult]) -> list[dict[str, str]]:
    path = tmp_path / "report.csv"
    story.tell([CsvReport(path)], cases, story.end())
    text = path.read_bytes().decode()
    assert text.count("\n") == text.count("\r\n") + sum(one.count("\n") for one in _cells(text))
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def _cells(text: str) -> list[str]:
    return [one for row in csv.reader(io.StringIO(text, newline=""), strict=True) for one in row]


def test_a_row_for_each_trial(tmp_path: Path, story: Any, repeated: list[CaseResult]) -> None:
    found = rows(tmp_path, story, repeated)
    assert [(one["case"], one["run"], one["status"]) for one in found[3:6]] == [
        ("T002", "1", "passed"),
        ("T002", "2", "failed"),
        ("T002", "3", "passed"),
    ]
    assert len(found) == 9
    assert tuple(found[0]) == COLUMNS
    assert found[4]["failed_checks"] == "no type"


def test_what_was_used(tmp_path: Path, story: Any) -> None:
    trial = story.trial(role_usage=Usage(input_tokens=7, output_tokens=3, cost_usd=0.5))
    trial.transcript.usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.0015)
    (row,) = rows(tmp_path, story, [story.case("c", trial)])
    used = {name: row[name] for name in ("input_tokens", "output_tokens", "cost_usd", "role_tokens", "role_cost_usd")}
    assert used == {
        "input_tokens": "10",
        "output_tokens": "5",
        "cost_usd": "0.0015",
        "role_tokens": "10",
        "role_cost_usd": "0.5",
    }


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "|", "%", "\t", "\r", "\n", "\uff1d", " =", "\u00a0 +", " \n@"])
def test_no_formulas(tmp_path: Path, story: Any, begins: str) -> None:
    text = f"{begins}cmd|' /C calc'!A0"
    (row,) = rows(tmp_path, story, [story.case(text, story.trial(text), name=text, tags=[text], input=text)])
    for name in ("case", "name", "tags", "input", "output"):
        assert row[name].startswith("'"), name


@given(st.text(max_size=40))
def test_a_cell_comes_back(text: str) -> None:
    shown = cell(text)
    assert isinstance(shown, str)
    assert not shown.lstrip().startswith(("=", "+", "-", "@", "|", "%"))
    assert not shown.startswith(("\t", "\r"))
    if text.isprintable() and not text.lstrip().startswith(tuple("=+-@|%\uff1d\uff0b\uff0d\uff20")):
        assert shown == text


def test_long_answers_fit_into_a_cell(tmp_path: Path, story: Any) -> None:
    (row,) = rows(tmp_path, story, [story.case("c", story.trial("x" * 100_000))])
    assert len(row["output"]) == LONGEST + 1
