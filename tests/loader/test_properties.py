"""What holds for any file: a suite or diagnostics, never an exception, and places that are in the file."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.damage import damaged

from atp.loader import Loaded
from atp.loader.load import FileDialect, load_text
from atp.loader.outline import outline, text
from atp.loader.source import LoadContext

YAML = """\
test_suite: "shop"
version: 1.0
description: >
  A suite with
  many forms
defaults:
  runs_per_test: 2
  constraints: &wide {max_steps: 9, allowed_tools: [a, "b"]}
  scoring: {quality_weight: 0.4, completeness_weight: 0.3, efficiency_weight: 0.2, cost_weight: 0.1}
agents:
  - name: clerk
    type: http
    config: {endpoint: "${URL:http://localhost}", api_key: '${API_KEY}', headers: {X: '$${Y}'}}
  - {name: other, type: custom, config: {n: "${N:3}", deep: [{a: null}]}, matrix: {n: [1, "b"], deep.x: [true]}}
gates: ["pass_rate >= 90% confidence 0.95 margin 0.05", {metric: cost_usd, statistic: p95, at_most: 0.05, tag: smoke}]
tests:
  - id: one
    name: One # a comment
    tags: [smoke]
    task:
      description: |
        Sell ${THING}
      input_data: {a: [1, 2.5, true, null]}
      expected_artifacts: ["a.txt"]
    constraints: {<<: *wide, timeout_seconds: 5m}
    assertions:
      - type: llm_eval
        config: {criteria: completeness, threshold: 0.8}
      - {type: equals, value: {$gt: 3}}
      - {type: snapshot, match: json, ignore: ["$.at"]}
      - {type: any_of, assertions: [{type: regex, pattern: 'a+'}, {type: json_path, path: a.b}]}
  - id: two
    name: Two
    agents: [other]
    simulator: {use: sim, options: {metadata: {goal: g}}}
    checkpoints:
      - {id: a, assertion: {type: contains, value: x}}
      - {id: b, after: [a], assert: {type: tool_called, name: t}, required: false}
    max_turns: 5
"""
JSONL = """\
// a comment
{"id": "a", "input": "x", "assert": {"type": "contains", "value": "y", "negate": true}}
{
  "id": "b",
  # inside
  "messages": [{"role": "user", "content": [{"type": "text", "text": "\\u00e4 \\ud83d\\ude00"}]}],
  "assertions": [{"type": "json_path", "path": "$.a[0]", "value": [1, 2.5e3, null]}]
}

{"id": "c", "simulator": {"use": "s"}, "checkpoints": [{"id": "k", "assertion": {"type": "regex", "value": "a|b"}}]}
"""
JSON = '[{"id": "a", "input": "x"},\n {"id": "b", "input": {"role": "user", "content": "y"}, "timeout": "30s"}]\n'
SEEDS: dict[FileDialect, str] = {"yaml": YAML, "jsonl": JSONL, "json": JSON}
ENV = {"API_KEY": "sk-123456", "THING": "bread"}


def check(source: str, dialect: FileDialect | None) -> Loaded:
    """Load a text, and look at all that comes of it."""
    loaded = load_text(source, dialect, LoadContext(env=ENV))
    assert loaded.suite is not None or loaded.diagnostics
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for one in loaded.diagnostics:
        assert one.severity in ("error", "warning")
        assert one.message
        assert 1 <= one.line <= len(lines), one
        assert 1 <= one.column <= len(lines[one.line - 1]) + 1, one
    json.dumps(outline(loaded), allow_nan=False).encode()
    list(text(loaded))
    return loaded


@pytest.mark.parametrize("dialect", SEEDS)
def test_the_seeds_themselves_are_in_order(dialect: FileDialect) -> None:
    loaded = check(SEEDS[dialect], dialect)
    assert loaded.ok
    assert not loaded.diagnostics


@settings(max_examples=150, deadline=None)
@given(st.text(), st.sampled_from(["yaml", "jsonl", "json"]))
@example("\ud800", "jsonl")
@example("a: \ud800", "yaml")
@example("\x85a: [", "yaml")
@example("a: \u2028\n\x85b: {c: !x 1}", "yaml")
@example("!", "yaml")
@example('{"a": "\\', "jsonl")
@example("a: !<x> y", "yaml")
@example("---", "yaml")
@example("%YAML 9.9\n---\na", "yaml")
def test_any_text(source: str, dialect: FileDialect) -> None:
    check(source, dialect)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(YAML))
def test_damaged_yaml(source: str) -> None:
    check(source, "yaml")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged(JSONL))
def test_damaged_jsonl(source: str) -> None:
    check(source, "jsonl")


@settings(max_examples=60, deadline=None)
@given(damaged(JSON))
def test_damaged_json(source: str) -> None:
    check(source, "json")


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"]), max_size=12)
keys = texts.map(lambda key: key.replace("$", ""))  # only in values is `$${` a literal `${`
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(["", "yes", "1:30", "0o17", "1e3", "~", "- a", "a: b", "# c", " x ", "<<", "x\ny\n"]),
)
values = st.recursive(
    scalars, lambda below: st.lists(below, max_size=3) | st.dictionaries(keys, below, max_size=3), max_leaves=8
)
NAMES = (
    "id name input messages task assert assertions expected simulator checkpoints timeout skip tags options "
    "constraints scoring metadata max_turns type value config role use"
)
names = st.sampled_from(NAMES.split(" "))


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(names, values | st.dictionaries(names, values, max_size=4), max_size=5))
@example({"id": "a", "input": {"type": {"type": {}}}})
@example({"id": "a", "assert": {"config": {"config": {}}}})
@example({"id": "a", "input": "x", "assert": [{"type": []}]})
@example({"id": "a", "task": {"config": 1}, "checkpoints": {"id": [{}]}})
def test_known_keys_with_any_values(record: dict[str, Any]) -> None:
    check(json.dumps(record), "jsonl")
    check(json.dumps([record], ensure_ascii=False), "json")
    suite = {"test_suite": "s", "agents": [{"name": "a", "type": "custom", "config": record}], "tests": [record]}
    check(json.dumps(suite), "yaml")


@settings(max_examples=150, deadline=None)
@given(values)
def test_a_json_value_is_the_same_in_every_dialect(value: Any) -> None:
    case = {"id": "t", "name": "T", "input": "x", "expected": value}
    suite = {"test_suite": "s", "agents": [{"name": "a", "type": "custom", "config": {}}], "tests": [case]}
    literal = json.dumps(suite, ensure_ascii=False, indent=2).replace("${", "$${")
    sources: list[tuple[str, FileDialect]] = [
        (json.dumps(case), "jsonl"),
        (json.dumps(case, indent=2), "jsonl"),
        (json.dumps([case], ensure_ascii=False), "json"),
        (literal, "yaml"),
    ]
    for source, dialect in sources:
        loaded = load_text(source, dialect, LoadContext(env={}))
        assert loaded.suite is not None
        assert loaded.ok, (source, loaded.diagnostics)
        assert repr(loaded.suite.cases[0].expected) == repr(value)
