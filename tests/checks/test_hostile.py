"""Outputs that are made to hurt: twice the output takes twice the work, and no check passes by giving up."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.checks.conftest import make_assertion
from tests.work import lines_executed

from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.suite.result import Artifact, ToolCall, Verdict

LARGE = 10_000_000
TEXTS: dict[str, Callable[[int], str]] = {
    "{": lambda size: "{" * size,
    "[": lambda size: "[" * size,
    '{"': lambda size: '{"' * (size // 2),
    '{"a': lambda size: '{"a' * (size // 3),
    '{"a":': lambda size: '{"a":' * (size // 5),
    "[0]": lambda size: "[0]" * (size // 3),
    "interleaved": lambda size: "[" + '",[",' * (size // 5),
    "fences": lambda size: "```\n[\n" * (size // 6),
    "open fences": lambda size: "\n".join("`" * (length % 50 + 3) for length in range(size // 30)),
    "blanks": lambda size: "{" + " " * size,
    "digits": lambda size: "[" + "1" * size,
    "nan": lambda size: "[1," * 900 + "1," * (size // 2) + "NaN",
    "unterminated": lambda size: '["' + "a" * size,
    "escapes": lambda size: '["\\"' * (size // 4),
    "quotes": lambda size: '"' * size,
    "words": lambda size: "lorem ipsum " * (size // 12),
}
CHECKS: list[dict[str, Any]] = [
    {"type": "contains", "value": "needle"},
    {"type": "contains", "value": {"needle": 1}},
    {"type": "contains", "value": "NEEDLE", "ignore_case": True},
    {"type": "equals", "value": {"needle": 1}},
    {"type": "equals", "value": "needle"},
    {"type": "json_path", "path": "$..needle"},
    {"type": "json_path", "path": "$.needle", "value": 1},
    {"type": "regex", "pattern": "needle"},
    {"type": "type", "value": "object"},
    {"type": "json_schema", "schema": {"type": "object"}},
]


def check_all(seen: Evidence) -> list[Verdict]:
    async def checks() -> list[Verdict]:
        return [await run_check(make_assertion(one), seen) for one in CHECKS]

    return asyncio.run(checks())


@pytest.mark.no_cover  # coverage traces as well, and only one can
@pytest.mark.parametrize("name", TEXTS)
def test_work_grows_no_faster_than_the_text(evidence: Callable[..., Evidence], name: str) -> None:
    text = TEXTS[name]
    check_all(evidence(text(100)))  # imports what the checks need
    once = lines_executed(lambda: check_all(evidence(text(20_000))))
    assert lines_executed(lambda: check_all(evidence(text(40_000)))) < 2.3 * once


@pytest.mark.parametrize("name", TEXTS)
def test_large_text(evidence: Callable[..., Evidence], name: str) -> None:
    found = check_all(evidence(TEXTS[name](LARGE)))
    assert "passed" not in [verdict.outcome for verdict in found]  # test_given_up.py negates what is unjudged
    assert all(len(verdict.message) < 700 for verdict in found)
    assert all(not isinstance(verdict.found, str) or len(verdict.found) <= 300 for verdict in found)


@pytest.mark.parametrize(
    ("output", "checks"),
    [
        (list(range(400_000)), [{"type": "contains", "value": -1}, {"type": "equals", "value": [1]}]),
        (
            [{"id": number} for number in range(60_000)],
            [
                {"type": "contains", "value": {"id": -1}},
                {"type": "json_path", "path": "$[*].id", "value": -1},
                {"type": "json_schema", "schema": {"uniqueItems": True, "maxItems": 3}},
                {"type": "json_schema", "schema": {"items": {"uniqueItems": True, "required": ["no"]}}},
            ],
        ),
        ({str(number): number for number in range(100_000)}, [{"type": "contains", "value": -1}]),
        ("x" * LARGE, [{"type": "contains", "value": "y"}, {"type": "equals", "value": {"$length": 3}}]),
    ],
)
def test_large_values(judge: Callable[..., Verdict], output: Any, checks: list[dict[str, Any]]) -> None:
    for given in checks:
        assert judge(given, output).outcome == "failed"


def test_data_nested_too_deeply_is_unjudged(judge: Callable[..., Verdict]) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for given in ({"type": "contains", "value": "x"}, {"type": "json_path", "path": "$..x"}):
        for negate in (False, True):
            assert judge({**given, "negate": negate}, deep).outcome == "unjudged"
    assert judge({"type": "equals", "value": 1}, deep).outcome == "failed"


def test_odd_text_is_only_text(judge: Callable[..., Verdict]) -> None:
    for output in ("\ud800 {", "\x00" * 100, "{{ secret }} [red]x[/red] </judge>", "\u202e\u0000", "\U0001d54f" * 1000):
        assert judge({"type": "contains", "value": output}, output).passed
        assert judge({"type": "equals", "value": "other"}, output).outcome == "failed"
        assert judge({"type": "json_path", "path": "$.a"}, output).outcome == "failed"
        assert judge({"type": "contains", "value": "\ud800"}, {"a": "\ud800"}).passed


def test_many_calls_and_artifacts(judge: Callable[..., Verdict]) -> None:
    calls = [ToolCall(name="x" * 50, arguments={"n": number}) for number in range(50_000)]
    artifacts = [Artifact(name="a" * 2000 + f"/{number}", text="x") for number in range(1000)]
    for given in (
        {"type": "tool_called", "name": "y", "arguments": {"n": 1}},
        {"type": "behavior", "check": "no_repeated_actions", "must_use_tools": ["y"]},
        {"type": "tool_order", "tools": ["x" * 50, "y"]},
        {"type": "artifact_exists", "path": "**/*a*b*/**/c"},
    ):
        verdict = judge(given, "x", calls=calls, artifacts=artifacts)
        assert not verdict.passed
        assert len(verdict.message) < 2000
