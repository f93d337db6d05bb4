"""`atp test`: its flags and its help."""

import pytest
from click.testing import CliRunner
from tests.engine.support.project import Project

from atp.cli.main import cli
from atp.cli.test import GROUPS
from atp.engine.prepare.options import settings


def test_every_flag_is_in_one_group_of_the_help() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(settings())
    text = CliRunner().invoke(cli, ["test", "--help"]).output
    headings = [line.removesuffix(":") for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == [*GROUPS, "Other"]
    assert "\n    atp test\n" in text


def test_without_a_path_the_tests_of_this_folder_are_run(project: Project) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write("tests/deep/one.jsonl", {"id": "a", "input": "hi", "expected": "hi"})
    project.write("two.jsonl", {"id": "b", "input": "hi", "expected": "no"})
    project.write("node_modules/three.jsonl", {"id": "c", "input": "hi", "expected": "hi"})
    project.write("output-20240101000000.jsonl", {"id": "d", "input": "hi", "expected": "hi"})
    ran = project.atp("test", "-n", "agent.py:run")
    assert ran.code == 1
    assert "Input: . (2 test cases in 2 files)\n" in ran.out
    assert "Found: two.jsonl, tests/deep/one.jsonl\n" in ran.out
    assert "Only what failed: atp test -n agent.py:run --only-failed\n" in ran.out
    again = project.atp("test", "-n", "agent.py:run", "--only-failed")
    assert "  Total:   1 test\n" in again.out


def test_without_a_path_and_without_tests_there_is_help(project: Project) -> None:
    project.write("notes.yaml", "a: 1\n")
    ran = project.atp("test")
    assert ran.code == 2
    assert ran.out == ""
    for told in ("Usage: atp test", "there are no test files in this folder or below it", "*.test.md", "atp init"):
        assert told in ran.err
    assert not (project.folder / ".atp").exists()


def test_without_a_path_a_broken_file_is_said(project: Project) -> None:
    project.write("bad.yaml", "test_suite: x\ntests: [\n")
    ran = project.atp("test")
    assert ran.code == 2
    assert "bad.yaml" in ran.err


@pytest.mark.parametrize(("given", "shown"), [(["-v"], 1), (["-vv"], 2), (["--verbose", "--verbose"], 2), ([], 0)])
def test_how_much_is_shown(project: Project, given: list[str], shown: int) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write("a.jsonl", {"id": "a", "input": "hello there", "expected": "hello there"})
    out = project.atp("test", "a.jsonl", "-n", "agent.py:run", *given).out
    assert ("✓ [a]" in out) == (shown >= 1)
    assert ("user: hello there" in out) == (shown >= 2)


@pytest.mark.parametrize(("value", "shown"), [("true", 1), ("2", 2), ("false", 0)])
def test_how_much_is_shown_by_a_setting(project: Project, value: str, shown: int) -> None:
    project.write("agent.py", "def run(prompt):\n    return prompt\n")
    project.write("a.jsonl", {"id": "a", "input": "hello there", "expected": "hello there"})
    project.write("atp.toml", f"verbose = {value}\n")
    by_file = project.atp("test", "a.jsonl", "-n", "agent.py:run")
    project.write("atp.toml", "")
    by_environment = project.atp("test", "a.jsonl", "-n", "agent.py:run", env={"ATP_VERBOSE": value})
    for ran in (by_file, by_environment):
        assert ("✓ [a]" in ran.out, "user: hello there" in ran.out) == (shown >= 1, shown >= 2), ran.err
