"""Journals carry a format: older ones are read, newer ones are refused by name."""

import json

import pytest
from tests.engine.support.project import Project

from atp.journal.read import bounds
from atp.journal.records import FORMAT


@pytest.fixture
def ran(project: Project) -> Project:
    """A project with one run."""
    project.write("agent.py", "def run(prompt): return prompt")
    assert project.test(project.cases("a"), "-n", "agent.py:run").code == 0
    return project


def rewrite_start(project: Project, **changes: object) -> None:
    """Change the keys of a start line; nothing removes one."""
    path = project.runs()[-1] / "journal.jsonl"
    start, *rest = path.read_text("utf-8").splitlines()
    changed = {name: value for name, value in {**json.loads(start), **changes}.items() if value is not None}
    path.write_text("\n".join([json.dumps(changed, separators=(",", ":")), *rest, ""]), "utf-8")


def test_a_journal_has_its_format(ran: Project) -> None:
    assert ran.journal()[0]["format"] == FORMAT
    start, summary = bounds(ran.runs()[-1])
    assert start is not None
    assert start.format == FORMAT
    assert summary is not None


def test_a_journal_from_before_there_was_a_format_is_read(ran: Project) -> None:
    rewrite_start(ran, format=None)
    assert ran.atp("report", "last", "-o", "report.json").code == 0
    assert json.loads((ran.folder / "report.json").read_text("utf-8"))["summary"]["passed"] == 1


def test_a_newer_journal_is_refused_by_name(ran: Project) -> None:
    rewrite_start(ran, format=FORMAT + 1, options=["no", "mapping"])
    refused = ran.atp("report", "last")
    assert refused.code == 2
    assert f"error[newer-format]: {ran.runs()[-1]}/journal.jsonl has format {FORMAT + 1}" in refused.err
    listed = ran.atp("runs")
    assert (listed.code, "unreadable" in listed.out, "newer-format" in listed.err) == (3, True, True)
