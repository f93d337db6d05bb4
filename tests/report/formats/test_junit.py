"""The JUnit report: failures and errors apart, no name twice, and nothing that XML can't say."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml

from atp.report.formats.junit import LONGEST, JunitReport, attributes, xml_text
from atp.suite.result import CaseResult

SCHEMA = Path(__file__).with_name("junit.xsd")


def written(tmp_path: Path, story: Any, cases: list[CaseResult], **end: Any) -> ET.Element:
    path = tmp_path / "report.xml"
    report = JunitReport(path)
    report.start(story.info(files=("tests/expense.jsonl",), agents=["one", "two"]))
    report.skipped("tests/expense.jsonl", story.skipped())
    for case in cases:
        report.case(case)
    report.end(story.end(**end))
    assert list(report.problems) == []
    return ET.fromstring(path.read_bytes())


def test_failures_and_errors_are_told_apart(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    root = written(tmp_path, story, troubles)
    found = {
        one.get("name", "").partition(":")[0]: (kind.tag, kind.get("type"))
        for one in root.iter("testcase")
        for kind in one
        if kind.tag in ("failure", "error", "skipped")
    }
    assert found == {
        "wrong": ("failure", "contains"),
        "slow": ("failure", "timeout"),
        "boom": ("failure", "agent"),
        "gone": ("error", "environment"),
        "unjudged": ("error", "judge"),
        "blocked": ("error", "blocked"),
        "cancelled": ("error", "cancelled"),
        "dialogue": ("failure", "failed"),
        "later": ("skipped", None),
    }
    counts = {name: root.get(name) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": "10", "failures": "4", "errors": "4"}
    assert [one.get("skipped") for one in root] == ["0", "1"]
    first = next(one for one in root.iter("testcase") if one.get("name") == "wrong: Says the wrong thing")
    assert 'found:    "What type?"' in (first.findtext("failure") or "")
    known, _, said = (first.findtext("system-out") or "").partition("\n\n")
    assert known.splitlines() == ["tests/expense.jsonl:1", "tags: smoke", "score: 0.00"]
    assert said.startswith("user: Help me file an expense")


def test_a_suite_for_each_file_and_agent(tmp_path: Path, story: Any) -> None:
    places = [("b.jsonl", "two"), ("a.b", "one"), ("a_b", "one"), ("b.jsonl", "one")]
    cases = [
        story.case(f"c{number}", file=file, agent=agent, index=number) for file, agent in places for number in (1, 0)
    ]
    root = written(tmp_path, story, cases)
    names = [(one.get("name"), [test.get("name") for test in one.iter("testcase")]) for one in root]
    assert names == [
        ("b.jsonl (one)", ["c0", "c1"]),
        ("b.jsonl (two)", ["c0", "c1"]),
        ("a.b (one)", ["c0", "c1"]),
        ("a_b (one)", ["c0", "c1"]),
        ("tests/expense.jsonl", ["later"]),
    ]
    tests = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len(set(tests)) == len(tests)


def test_a_run_that_ended_early_is_no_success(tmp_path: Path, story: Any) -> None:
    root = written(tmp_path, story, [story.case()], reason="the budget is used up")
    assert root.get("errors") == "1"
    (error,) = root.iter("error")
    assert error.attrib == {"message": "the budget is used up", "type": "stopped"}


def test_a_long_conversation_is_cut(tmp_path: Path, story: Any) -> None:
    talk = [{"role": "user", "content": "word " * 50}] * 200
    root = written(tmp_path, story, [story.case("c", story.trial("x", talk), input=talk)])
    (said,) = root.iter("system-out")
    _, _, talk_shown = (said.text or "").partition("\n\n")
    assert LONGEST < len(talk_shown) < LONGEST + 10


@given(st.text(max_size=50))
def test_whatever_the_text_it_parses(text: str) -> None:
    element = ET.fromstring(f"<a{attributes(b=text)}>{xml_text(text)}</a>")
    kept = re.sub(r"[^\x20-\x7e]", "", text)
    assert re.sub(r"[^\x20-\x7e]", "", element.text or "") == kept


@pytest.mark.parametrize("name", ["troubles", "repeated", "document"])
def test_it_keeps_to_what_we_promise(tmp_path: Path, story: Any, name: str, request: pytest.FixtureRequest) -> None:
    written(tmp_path, story, request.getfixturevalue(name), reason="interrupted")
    xmlschema.XMLSchema(str(SCHEMA)).validate(str(tmp_path / "report.xml"))


def test_a_reader_of_such_reports_understands_it(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    written(tmp_path, story, troubles)
    read = JUnitXml.fromfile(str(tmp_path / "report.xml"))
    results = {case.name: [type(one).__name__ for one in case.result] for suite in read for case in suite}
    assert results["boom"] == ["Failure"]
    assert results["gone"] == ["Error"]
    assert results["later"] == ["Skipped"]
    assert results["unchecked"] == []
    before = (read.tests, read.failures, read.errors, [suite.skipped for suite in read])
    read.update_statistics()  # type: ignore[no-untyped-call]
    assert (read.tests, read.failures, read.errors, [suite.skipped for suite in read]) == before
