"""Assertions that could not fail, or not pass, whatever an agent says, are mistakes in their file."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.loader.shop import Expect

HINT = "say what to look for"


@pytest.mark.parametrize(
    "assertion",
    [
        '{"type": "contains", "value": «empty»""}',
        '{"type": "contains", "value": «empty»"", "negate": true}',
        '{"type": "contains", "value": «empty»{"$literal": ""}}',
        '{"type": "contains", "config": {"value": «empty»"", "ignore_case": true}}',
        '{"type": "not_contains", "value": «empty»""}',
        '{"type": "regex", "value": «empty»""}',
        '{"type": "regex", "pattern": «empty»""}',
        '{"type": "tool_result", "name": "search", "contains": «empty»""}',
        '{"type": "tool_result", "name": "search", "pattern": «empty»""}',
        '{"type": "tool_result", "name": "search", "matches": «empty»""}',
        '{"type": "artifact_exists", "path": "a.txt", "contains": «empty»""}',
        '{"type": "artifact_exists", "path": "a.txt", "matches": «empty»""}',
        '{"type": "any_of", "assertions": [{"type": "none_of", "assert": [{"type": "regex", "value": «empty»""}]}]}',
    ],
)
def test_looking_for_nothing(expect: Expect, assertion: str) -> None:
    for case in (
        f'{{"id": "one", "input": "Hello", "assert": {assertion}}}',
        f'{{"id": "one", "simulator": {{"use": "s"}}, "checkpoints": [{{"id": "c", "assert": {assertion}}}]}}',
    ):
        (one,) = expect(case, "jsonl").diagnostics
        assert one.hint == HINT
        assert "checks nothing" in one.message


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../b", "C:/x", ".", "..", "./.", "\\\\host\\\\x"])
def test_an_artifact_that_no_agent_can_make(expect: Expect, path: str) -> None:
    for case in (
        f'{{"id": "a", "input": "x", "assert": {{"type": "artifact_exists", "path": «artifact-path»"{path}"}}}}',
        f'{{"id": "a", "task": {{"description": "x", "expected_artifacts": ["ok.txt", «artifact-path»"{path}"]}}}}',
    ):
        (one,) = expect(case, "jsonl").diagnostics
        assert one.hint == "write the path in the workspace, for example `out/report.json`"


@pytest.mark.parametrize("matcher", ['{"$regex": ""}', '{"$contains": ""}'])
def test_matchers_that_look_for_nothing(expect: Expect, matcher: str) -> None:
    for keys in (
        f'"expected": «matcher»{{"a": {matcher}}}',
        f'"assert": {{"type": "equals", "value": «matcher»{matcher}}}',
    ):
        (one,) = expect(f'{{"id": "one", "input": "Hello", {keys}}}', "jsonl").diagnostics
        assert "checks nothing" in one.message


@pytest.mark.parametrize(
    "keys",
    [
        '"expected": ""',
        '"assert": {"type": "equals", "value": ""}',
        '"assert": {"type": "regex", "value": ".*"}',
        '"assert": {"type": "contains", "value": " "}',
        '"assert": {"type": "contains", "value": {}}',
        '"assert": {"type": "json_path", "path": "a", "value": ""}',
        '"assert": {"type": "tool_called", "name": "a", "arguments": {"b": ""}}',
        '"pass_rate": 0.01',
        '"min_score": 0',
    ],
)
def test_what_can_fail_is_no_mistake(expect: Expect, keys: str) -> None:
    assert expect(f'{{"id": "one", "input": "Hello", {keys}}}', "jsonl").diagnostics == []


SUITE = """\
test_suite: s
agents: [{name: a, type: custom, config: {entry: "agent.py:run"}}]
defaults: {pass_rate: 0}
tests:
  - {id: t, name: T, input: x, pass_rate: 0, assertions: [{type: regex, config: {value: "${NOTHING:}"}}]}
"""
MARKDOWN = """\
---
target: agents/a.md
assessor: agents/a.md
pass_rate: 0
---

# One

**Prompt:** hello

**Pass rate:** 0

**Expectations:**

- it greets
"""


def test_nothing_runs_in_any_format(tmp_path: Path, atp: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    (tmp_path / "agent.py").write_text("def run(prompt): return prompt")
    (tmp_path / "a.jsonl").write_text('{"id": "a", "input": "x", "assert": {"type": "not_contains", "value": ""}}')
    (tmp_path / "a.yaml").write_text(SUITE)
    (tmp_path / "a.test.md").write_text(MARKDOWN)
    places = {
        "a.jsonl": ["a.jsonl:1:71"],
        "a.yaml": ["a.yaml:3:23", "a.yaml:5:43", "a.yaml:5:89"],
        "a.test.md": ["a.test.md:4:12", "a.test.md:11:16"],
    }
    for file, found in places.items():
        ran = atp("test", file, "-n", "agent.py:run", cwd=tmp_path)
        assert ran.returncode == 2
        assert [line.partition("--> ")[2] for line in ran.stderr.splitlines() if "--> " in line] == found
    assert not (tmp_path / ".atp").exists()
