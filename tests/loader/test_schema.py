"""The JSON Schemas accept what loads and refuse what doesn't."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.waiting import WAIT_LIMIT

from atp.loader.cases import NEVER_NULL, YAML_KEYS
from atp.loader.load import load_text
from atp.loader.schema import SchemaName, schema
from atp.loader.source import LoadContext

DOCUMENTS = Path(__file__).parents[1] / "documents"
AGENT = {"name": "a", "type": "custom", "config": {}}
TEST = {"id": "t", "name": "T", "input": "Hello"}


def check(name: SchemaName, value: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(SCHEMAS[name]).iter_errors(value)]


SCHEMAS = {name: schema(name) for name in ("yaml", "jsonl", "frontmatter")}


def suite(**more: Any) -> dict[str, Any]:
    return {"test_suite": "s", "agents": [AGENT], "tests": [TEST]} | more


def test(**more: Any) -> dict[str, Any]:
    return suite(tests=[TEST | more])


test.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["yaml", "jsonl", "frontmatter"])
def test_each_is_a_schema_of_2020_12_with_a_title_and_no_address(name: SchemaName) -> None:
    made = SCHEMAS[name]
    Draft202012Validator.check_schema(made)
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert made["title"]
    assert "$id" not in made


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "yaml" / "complete").iterdir()), ids=lambda path: path.stem)
def test_the_complete_suites_of_document_1_are_valid(path: Path) -> None:
    assert check("yaml", yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "yaml" / "suite").iterdir()), ids=lambda path: path.stem)
def test_the_fragments_of_a_suite_in_document_1_are_valid(path: Path) -> None:
    fragment = yaml.safe_load(path.read_text())
    for agent in fragment.get("agents", []):
        agent.setdefault("type", "custom")
    assert check("yaml", suite(**fragment)) == []


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "yaml" / "test").iterdir()), ids=lambda path: path.stem)
def test_the_fragments_of_a_test_in_document_1_are_valid(path: Path) -> None:
    fragment = yaml.safe_load("tests:\n  -\n" + indent(path.read_text(), "    "))["tests"][0]
    task = {} if "task" in fragment else {"task": {"description": "Do it"}}
    assert check("yaml", suite(tests=[{"id": "t", "name": "T", **task, **fragment}])) == []


def records(path: Path) -> list[Any]:
    """The objects of a file, comments left out."""
    lines = [line for line in path.read_text().split("\n") if not line.lstrip().startswith(("//", "#"))]
    found, decoder, text = [], json.JSONDecoder(), "\n".join(lines).strip()
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "jsonl" / "cases").iterdir()), ids=lambda path: path.stem)
def test_the_cases_of_documents_4_and_5_are_valid(path: Path) -> None:
    for record in records(path):
        assert check("jsonl", record) == []
        assert check("yaml", suite(tests=[{"name": "T", **record}])) == []


@pytest.mark.parametrize("path", sorted((DOCUMENTS / "jsonl" / "assertions").iterdir()), ids=lambda path: path.stem)
def test_the_assertions_of_documents_4_and_5_are_valid_flat_and_nested(path: Path) -> None:
    for flat in records(path):
        nested = {"type": flat["type"], "config": {key: value for key, value in flat.items() if key != "type"}}
        for one in (flat, nested, [flat, nested]):
            for key in ("assert", "assertions"):
                assert check("jsonl", {"id": "t", "input": "Hello", key: one}) == []


RIGHT = {
    "version-number": suite(version=1.0),
    "variables": test(runs="${N:3}", skip="${S:false}", constraints={"max_steps": "${STEPS}"}, timeout="${T}"),
    "variable-in-an-address": suite(agents=[AGENT | {"type": "http", "config": {"endpoint": "${URL}/x"}}]),
    "durations": test(timeout="1h30m", constraints={}),
    "message": test(input={"role": "user", "content": [{"type": "text", "text": "Hello"}]}),
    "messages-as-text": suite(tests=[{"id": "t", "name": "T", "messages": "Hello"}]),
    "messages-and-input": test(messages=[{"role": "user", "content": "Hello"}]),
    "spellings": test(assertions=[{"type": "json_schema", "value": {}}, {"type": "tool_called", "value": "x"}]),
    "checkpoint": test(
        simulator={"use": "a.b"}, checkpoints=[{"id": "c", "assert": {"type": "contains", "value": "x"}}], max_turns=3
    ),
    "group": test(assertions={"type": "at_least", "k": 1, "assert": [{"type": "contains", "config": {"value": 1}}]}),
    "null": test(description=None, expected=None),
    "nulls": suite(
        version=None,
        description=None,
        defaults=None,
        tests=[TEST | dict.fromkeys(sorted(YAML_KEYS - NEVER_NULL - {"name"}))],
    ),
    "nulls-inside": suite(defaults={"timeout_seconds": None, "constraints": {"max_steps": None}}),
    "free-keys": suite(agents=[AGENT | {"config": {"anything": [1]}}]),
}
WRONG = {
    "no-name": suite(tests=[{"id": "t", "input": "Hello"}]),
    "no-agents": {"test_suite": "s", "tests": [TEST]},
    "empty-tests": suite(tests=[]),
    "unknown-suite-key": suite(test=[]),
    "unknown-key": test(assertion=[]),
    "field-of-another-dialect": test(chains=[["Hello"]]),
    "nothing-said": suite(tests=[{"id": "t", "name": "T"}]),
    "two-inputs": test(task={"description": "Do it"}),
    "unknown-agent": suite(agents=[AGENT | {"type": "custon"}]),
    "unknown-agent-key": suite(agents=[{"name": "a", "type": "http", "config": {"endpoint": "http://a", "url": "b"}}]),
    "no-address": suite(agents=[{"name": "a", "type": "http", "config": {"endpoint": "localhost"}}]),
    "unknown-assertion": test(assertions=[{"type": "contain", "value": "x"}]),
    "unknown-assertion-key": test(assertions=[{"type": "contains", "values": "x"}]),
    "unknown-key-in-config": test(assertions=[{"type": "contains", "config": {"value": "x", "ignorecase": True}}]),
    "missing-in-config": test(assertions=[{"type": "contains", "config": {}}]),
    "beside-and-in-config": test(assertions=[{"type": "contains", "value": "x", "config": {"value": "x"}}]),
    "both-spellings": test(assertions=[{"type": "regex", "value": "x", "pattern": "x"}]),
    "both-spellings-of-assertions": test(assertions=[], **{"assert": []}),
    "null-assertions": test(assertions=None),
    "null-expectations": test(expectations=None),
    "null-checkpoints": test(simulator={"use": "a"}, checkpoints=None),
    "null-input": suite(tests=[{"id": "t", "name": "T", "input": None}]),
    "null-name": suite(tests=[{"id": "t", "name": None, "input": "Hello"}]),
    "null-agents": suite(agents=None),
    "wrong-type": test(tags="smoke"),
    "number-as-boolean": test(runs=True),
    "out-of-range": test(pass_rate=1.5),
    "out-of-range-score": test(min_score=101),
    "not-a-duration": test(timeout="soon"),
    "wrong-check": test(assertions=[{"type": "behavior", "config": {"check": "no_error"}}]),
    "no-checkpoints": test(simulator={"use": "a.b"}),
    "no-simulator": test(checkpoints=[{"id": "c", "assertion": {"type": "contains", "value": "x"}}]),
    "wrong-part": test(input=[{"role": "user", "content": [{"type": "txt", "text": "x"}]}]),
}


@pytest.mark.parametrize("value", RIGHT.values(), ids=RIGHT)
def test_what_loads_is_valid(value: dict[str, Any]) -> None:
    given = LoadContext(env={"URL": "http://a", "STEPS": "3", "T": "30s"})
    diagnostics = load_text(json.dumps(value), "yaml", given).diagnostics
    assert not [one for one in diagnostics if one.severity == "error"]
    assert check("yaml", value) == []


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_what_does_not_load_is_not_valid(value: dict[str, Any]) -> None:
    assert not load_text(json.dumps(value), "yaml", LoadContext(env={})).ok
    assert check("yaml", value)


def test_variables_are_for_yaml_only() -> None:
    assert check("jsonl", {"id": "t", "input": "Hello", "runs": "${N}"})


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        ({"target": "agents/a.md", "assessor": "agents/b.md", "iterations": 50, "description": "x"}, True),
        ({"target": "agents/a.md", "iterations": "50", "tags": "a, b", "timeout": "5m", "other-tool": {}}, True),
        (
            {"target": "agents/a.md", "tags": ["a"], "runs": 3, "pass_rate": 0.8, "budget_usd": 1, "generator": "g"},
            True,
        ),
        ({"assessor": "agents/b.md"}, False),
        ({"target": "agents/a.md", "iterations": 0}, False),
        ({"target": "agents/a.md", "iterations": "many"}, False),
        ({"target": "agents/a.md", "pass_rate": 80}, False),
        ({"target": None}, False),
    ],
)
def test_frontmatter(value: dict[str, Any], valid: bool) -> None:
    assert (check("frontmatter", value) == []) is valid


def test_the_frontmatter_schema_is_the_one_on_file() -> None:
    golden = Path(__file__).parent / "frontmatter.schema.json"
    assert SCHEMAS["frontmatter"] == json.loads(golden.read_text())


def test_descriptions_are_the_docstrings_of_the_fields() -> None:
    made = SCHEMAS["yaml"]
    assert made["properties"]["tests"]["description"] == "The cases in file order."
    assert made["$defs"]["Case"]["properties"]["assert"]["description"].startswith("What must hold afterwards")
    assert made["$defs"]["Equals"]["properties"]["negate"]["description"].startswith("Turn the verdict round.")
    undescribed = [
        f"{shape}.{key}"
        for shape, definition in made["$defs"].items()
        for key, value in definition.get("properties", {}).items()
        if "description" not in value
    ]
    assert undescribed == []


PLUGIN = """
from typing import Literal
from jsonschema import Draft202012Validator
from atp.loader.schema import schema
from atp.suite import ASSERTIONS, Assertion

@ASSERTIONS.register
class Polite(Assertion):
    type: Literal["polite"]
    words: list[str]

    def check(self, evidence):
        raise NotImplementedError

record = {"id": "t", "input": "Hello", "assert": {"type": "polite", "words": ["please"]}}
Draft202012Validator(schema("jsonl")).validate(record)
"""


def test_a_kind_that_a_plugin_adds_is_in_it() -> None:
    subprocess.run([sys.executable, "-c", PLUGIN], check=True, timeout=WAIT_LIMIT)
    assert check("jsonl", {"id": "t", "input": "Hello", "assert": {"type": "polite", "words": ["please"]}})
