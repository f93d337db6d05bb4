"""Wherever a check gives up looking, because of size, depth, time, encoding or what it can't see, it is unjudged.

Neither the check nor its negation passes then. Every registered kind of check must say here where it gives up.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checks.conftest import Folder, make_assertion, make_evidence

from atp.base.json import found as found_json
from atp.base.json.found import DEEPEST
from atp.checks import agent_files, artifacts
from atp.checks.evidence import Evidence
from atp.checks.golden_files import TrialGoldenFiles, Updates
from atp.checks.run_check import run_check
from atp.checks.snapshot import SnapshotAssertion
from atp.checks.verdicts import favourable_outcome
from atp.suite.assertion import ASSERTIONS, Group
from atp.suite.result import Artifact, ToolCall, Turn, Usage

GivenUp = tuple[dict[str, Any], Evidence]
"""An assertion, and what it gives up on."""

LEAK = '{"leak": 1}'
TEXTS = {
    "places": "[1 " * 51 + LEAK,
    "blocks": "```\nno\n```\n" * 51 + f"```json\n{LEAK}\n```",
    "depth": "[" * (DEEPEST + 1) + LEAK + "]" * (DEEPEST + 1),
    "great depth": "[" * 5000 + LEAK + "]" * 5000,
    "digits": f'{{"leak": 1, "n": {"9" * 5000}}}',
    "key twice": '{"leak": 1, "leak": 0}',
    "key twice in prose": 'So: [{"a": {"leak": 1, "leak": 0}}]',
    "too large": '{"leak": 1, "n": 1e400}',
    "deep in a fence": "so\n```json\n" + '{"a":' * 300 + LEAK + "}" * 300 + "\n```",
}
"""Texts that hold JSON and that nobody reads to their end, with the limits of `low_limits`."""
BROKEN_JSON = {
    "cut off": '{"leak": 1, "to": "bo',
    "cut off in prose": 'The answer is {"a": [{"leak": 1}, {"b": ',
    "NaN": '{"leak": 1, "n": NaN}',
    "Infinity": '[{"leak": 1}, -Infinity]',
    "a comma too many": '{"leak": 1,}',
    "in a fence": '```json\n{"leak": 1, }\n```',
    "as Python writes it": "{'leak': 1}",
    "a list": "[1, 2, oh",
    "cut off in a key": 'It is {"leak": 1'[:-5],
    "cut off behind a key": 'It is {"leak"',
    "a long key": f'{{"{"k" * 300}": 0, "leak": 1,}}',
    "as JavaScript writes it": "{leak: 1}",
    "a list as Python writes it": "['leak', 1]",
    "a list of one as Python writes it": "It is ['leak'].",
    "as an older Python writes it": "{u'leak': 1}",
    "with a comment": '{ // what leaks\n "leak": 1}',
    "with a comment in the line": '{/* what leaks */ "leak": 1}',
    "with escaped quotes": r"It is {\"leak\": 1}.",
    "with quotes of a word processor": "{“leak”: 1}",
}
"""Texts that hold JSON which can't be read, so that what it says is not known."""
SEVERAL_JSON = {
    "behind a longer one": '{"answer": "a long text"} {"leak": 1}',
    "before a longer one": 'first {"leak": 1}, then [1, 2, 3, 4, 5, 6, 7, 8]',
    "beside a fence": '```json\n{"answer": 1}\n```\nand {"leak": 1}',
    "in two fences": '```json\n{"answer": 1}\n```\n```json\n{"leak": 1}\n```',
    "beside a number in a fence": '```json\n17\n```\nand {"leak": 1}',
}
"""Texts with several JSON values, of which a check looks at one."""
DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]
WHOLE = [name for name, text in TEXTS.items() if text[0] in "[{" and name != "places"]
"""Those that are JSON as a whole, so that text is also searched in their canonical form."""
SLOW = "(a|aa)+$"
SLOW_ON = "a" * 5000 + "b"


def in_output(*assertions: dict[str, Any], texts: list[str] | None = None) -> Iterator[GivenUp]:
    for text in [TEXTS[name] for name in texts] if texts else [*TEXTS.values(), *BROKEN_JSON.values()]:
        for one in assertions:
            yield one, make_evidence(text)


def equals() -> Iterator[GivenUp]:
    yield from in_output(
        *({"type": "equals", "value": value} for value in ({"leak": 1}, [1], 7, {"$type": "object"}, {"$length": 3}))
    )
    yield {"type": "equals", "value": {"$regex": SLOW}}, make_evidence(SLOW_ON)


def contains() -> Iterator[GivenUp]:
    yield from in_output({"type": "contains", "value": {"leak": 1}}, {"type": "contains", "value": [{"leak": 1}]})
    yield from in_output({"type": "contains", "value": '"leak":1'}, texts=WHOLE)
    yield {"type": "contains", "value": "x"}, make_evidence(DEEP)
    yield from contains_in_any_case()


def contains_in_any_case() -> Iterator[GivenUp]:
    """Of keys that differ only in letter case, one would hide the other."""
    for keys in ('{"leak":1,"LEAK":0}', '{"LEAK":0,"leak":1}', '[{"a":{"Leak":1,"leak":0}}]'):
        yield {"type": "contains", "value": {"leak": 1}, "ignore_case": True}, make_evidence(keys)


def not_contains() -> Iterator[GivenUp]:
    for one, evidence in contains():
        yield {**one, "type": "not_contains"}, evidence


def regex() -> Iterator[GivenUp]:
    yield from in_output({"type": "regex", "pattern": '"leak":1'}, texts=WHOLE)
    yield {"type": "regex", "pattern": SLOW}, make_evidence(SLOW_ON)


def json_path() -> Iterator[GivenUp]:
    yield from in_output({"type": "json_path", "path": "$.leak"}, {"type": "json_path", "path": "$..leak", "value": 1})
    yield {"type": "json_path", "path": "$..leak"}, make_evidence(DEEP)
    nested = [[{"a": number} for number in range(100)] for _ in range(100)]
    for path in ("$..[?@..[?@..[?@==1]]]", "$[0][?$[0][?$[0][?$[0][?@==-1]]]]", "$..*..*..*..*..x"):
        yield {"type": "json_path", "path": path}, make_evidence([nested, nested])
    yield {"type": "json_path", "path": f"$[?search(@, '{SLOW}')]"}, make_evidence([SLOW_ON])


def type_() -> Iterator[GivenUp]:
    yield from in_output(
        *({"type": "type", "value": value} for value in ("object", "array")),
        {"type": "type", "value": "integer", "path": "$.leak"},
    )


def json_schema() -> Iterator[GivenUp]:
    yield from in_output({"type": "json_schema", "schema": {"required": ["leak"]}})
    circle = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    nested: Any = 1  # fits neither alternative, which takes 2 ** 100 steps to find out
    for _ in range(100):
        nested = [nested]
    cases: list[tuple[Any, Any]] = [
        (circle, {}),
        ({"items": {"pattern": SLOW}}, [SLOW_ON]),
        ({"items": {"$ref": "#"}}, DEEP),
        ({"anyOf": [{"items": {"$ref": "#"}, "maxItems": 1}, {"items": {"$ref": "#"}}], "type": "array"}, nested),
    ]
    for schema, output in cases:
        yield {"type": "json_schema", "schema": schema}, make_evidence(output)


ARGUMENTS: list[ToolCall | str] = [ToolCall(name="pay", arguments='{"a":' * 300 + LEAK + "}" * 300)]
RESULT: list[ToolCall | str] = [ToolCall(name="pay", result=TEXTS["depth"])]
UNTOLD: dict[str, Any] = {"calls": ["pay"], "usage": Usage(tool_calls=3)}
"""The agent says that it made more calls than it told of."""


UNREADABLE: list[list[ToolCall | str]] = [
    [ToolCall(name="pay", arguments='{"leak": 1, "to": "bo')],
    [ToolCall(name="pay", arguments='\ufeff {"leak": 1, "to": "bo')],
    [ToolCall(name="pay")],
]
"""Calls whose arguments are JSON that was cut off, or were not reported."""


def tool_called() -> Iterator[GivenUp]:
    for often in ({}, {"times": 0}, {"times": 1}):
        for calls in UNREADABLE:
            paid = {"type": "tool_called", "name": "pay", "arguments": {"leak": 1}, **often}
            yield paid, make_evidence("x", calls=calls)
    yield {"type": "tool_called", "name": "pay", "arguments": {"leak": 1}}, make_evidence("x", calls=ARGUMENTS)
    for more in ({"name": "refund", "negate": True}, {"name": "pay", "times": 1}, {"name": "pay", "before": "pay"}):
        yield {"type": "tool_called", **more}, make_evidence("x", **UNTOLD)


def not_tool_called() -> Iterator[GivenUp]:
    for calls in (*UNREADABLE, ARGUMENTS):
        yield {"type": "not_tool_called", "name": "pay", "arguments": {"leak": 1}}, make_evidence("x", calls=calls)
    yield {"type": "not_tool_called", "name": "refund"}, make_evidence("x", **UNTOLD)


def tool_result() -> Iterator[GivenUp]:
    for rule in ({"value": {"leak": 1}}, {"contains": {"leak": 1}}, {"path": "$.leak"}, {"pattern": '"leak":1'}):
        yield {"type": "tool_result", "name": "pay", **rule}, make_evidence("x", calls=RESULT)
        yield {"type": "tool_result", "name": "pay", **rule}, make_evidence("x", calls=["pay"])
        if "pattern" not in rule:
            for text in BROKEN_JSON.values():
                calls: list[ToolCall | str] = [ToolCall(name="pay", result=text)]
                yield {"type": "tool_result", "name": "pay", **rule}, make_evidence("x", calls=calls)
    yield {"type": "tool_result", "name": "pay"}, make_evidence("x", calls=["pay"])
    begun: list[ToolCall | str] = [ToolCall(name="pay", unfinished=True)]
    for status in ("success", "error"):
        ended = {"type": "tool_result", "name": "pay", "status": status, "negate": True}
        yield ended, make_evidence("x", calls=begun)
    slow: list[ToolCall | str] = [ToolCall(name="pay", result=SLOW_ON)]
    yield {"type": "tool_result", "name": "pay", "pattern": SLOW}, make_evidence("x", calls=slow)
    untold = {"type": "tool_result", "name": "refund", "value": 1}
    yield {**untold, "negate": True}, make_evidence("x", **UNTOLD)


def tool_order() -> Iterator[GivenUp]:
    yield {"type": "tool_order", "tools": ["refund", "pay"]}, make_evidence("x", **UNTOLD)


def behavior() -> Iterator[GivenUp]:
    repeated = {"type": "behavior", "check": "no_repeated_actions"}
    yield repeated, make_evidence("x", calls=ARGUMENTS * 2)
    yield repeated, make_evidence("x", calls=[*UNREADABLE[0], ToolCall(name="pay", arguments={"leak": 1})])
    yield repeated, make_evidence("x", **UNTOLD)
    yield {"type": "behavior", "forbidden_tools": ["refund"]}, make_evidence("x", **UNTOLD)
    yield {"type": "behavior", "check": "no_errors"}, make_evidence("x", **UNTOLD)


def artifact_exists(tmp: Path) -> Iterator[GivenUp]:
    folder = tmp / "workspace"
    folder.mkdir()
    (folder / "latin.txt").write_bytes("größe".encode("latin-1"))
    (folder / "wide.json").write_bytes(LEAK.encode("utf-16"))
    (folder / "wide.txt").write_bytes(LEAK.encode("utf-16-le"))
    (folder / "large.txt").write_bytes(b"x" * (agent_files.LARGEST + 1))
    (folder / "deep.json").write_text(TEXTS["depth"])
    (folder / "slow.txt").write_text(SLOW_ON)
    os.symlink("/etc", folder / "etc")
    os.mkfifo(folder / "pipe")
    workspace = Folder(folder, set())
    for rule in (
        {"path": "latin.txt", "contains": "größe"},
        {"path": "latin.txt", "matches": "größe$"},
        {"path": "wide.json", "json_schema": {"required": ["leak"]}},
        {"path": "wide.json", "contains": "leak"},
        {"path": "wide.txt", "contains": "leak"},
        {"path": "wide.txt", "matches": "leak"},
        {"path": "wide.txt", "json_schema": {"required": ["leak"]}},
        {"path": "latin.txt", "matches": "^[^x]*$"},
        {"path": "large.txt", "contains": "y"},
        {"path": "large.txt", "sha256": "0" * 64},
        {"path": "deep.json", "json_schema": {"required": ["leak"]}},
        {"path": "slow.txt", "matches": SLOW},
        {"path": "etc/passwd"},
        {"path": "etc"},
        {"path": "**/passwd"},
        {"path": "pipe"},
        {"path": "pipe", "contains": "x"},
    ):
        yield {"type": "artifact_exists", **rule}, make_evidence("x", workspace=workspace)
    many = [Artifact(name=f"{number}.txt", text="no") for number in range(artifacts.MOST_CANDIDATES + 1)]
    yield {"type": "artifact_exists", "path": "*.txt", "contains": "yes"}, make_evidence("x", artifacts=many)
    listed = [Artifact(name="out/a.txt", kind="reference", sha256="0" * 64), Artifact(name="b.txt")]
    for path in ("out/a.txt", "./b.txt", "**/*.txt", "out/"):
        for wanted in ({}, {"contains": "leak"}, {"sha256": "0" * 64}):
            yield {"type": "artifact_exists", "path": path, **wanted}, make_evidence("x", artifacts=listed)
    for text in BROKEN_JSON.values():
        broken = [Artifact(name="a.json", text=text)]
        schema = {"required": ["leak"]}
        fits = {"type": "artifact_exists", "path": "a.json", "json_schema": schema}
        yield fits, make_evidence("x", artifacts=broken)
    for letters in ("x", "####", "bGVh*aw=="):
        broken = [Artifact(name="a.bin", base64=letters)]
        for content in ({"min_bytes": 3}, {"contains": "leak"}):
            yield {"type": "artifact_exists", "path": "a.bin", **content}, make_evidence("x", artifacts=broken)


def llm_eval() -> Iterator[GivenUp]:
    yield {"type": "llm_eval", "criteria": "relevance"}, make_evidence("x")  # nobody judges
    yield {"type": "llm_eval", "criteria": "relevance", "path": "a.txt"}, make_evidence("x")


def agent() -> Iterator[GivenUp]:
    yield {"type": "agent", "use": "agents:judge"}, make_evidence("x")  # nobody is there to ask


def script(tmp: Path) -> Iterator[GivenUp]:
    (tmp / "scripts").mkdir()
    (tmp / "scripts" / "decide.py").write_text("def yes(output): return True\ndef none(output): return None\n")
    yield {"type": "script", "script": "scripts:decide.yes"}, make_evidence(DEEP, folders=(tmp,))
    yield {"type": "script", "script": "scripts:decide.none"}, make_evidence("x", folders=(tmp,))
    yield {"type": "script", "script": "scripts:decide.missing"}, make_evidence("x", folders=(tmp,))


def group(kind: str) -> Iterator[GivenUp]:
    inner, evidence = next(contains())
    more = {"k": 1} if kind == "at_least" else {}
    yield {"type": kind, "assertions": [inner], **more}, evidence
    yield {"type": kind, "assertions": [{**inner, "negate": True}], **more}, evidence


def snapshot(folder: Path) -> Iterator[GivenUp]:
    def with_golden(text: str, cases: Iterable[GivenUp]) -> Iterator[GivenUp]:
        for number, (assertion, evidence) in enumerate(cases):
            (folder / f"{number}.json").write_text(text, "utf-8")
            names = {SnapshotAssertion.model_validate(assertion).identity: f"{number}.json"}
            evidence.golden_files = TrialGoldenFiles(folder, names, "run 1", Updates())
            yield assertion, evidence

    json, tools = {"type": "snapshot", "match": "json"}, {"type": "snapshot", "match": "tools"}
    yield from with_golden('{"leak": 1}', in_output(json, {**json, "ignore": ["$.id"]}))
    yield from with_golden("{", [(json, make_evidence('{"leak": 1}'))])
    yield json, make_evidence('{"leak": 1}')  # no golden files at all
    slow = f"$[?search(@, '{SLOW}')]"
    yield from with_golden("[]", [({**json, "ignore": [slow]}, make_evidence([SLOW_ON]))])
    called = '[{"name": "pay", "arguments": {"leak": 1}}]'
    yield from with_golden(called, [(tools, make_evidence("x", calls=[ToolCall(name="pay")]))])
    for text in BROKEN_JSON.values():
        calls: list[ToolCall | str] = [ToolCall(name="pay", arguments=text)]
        yield from with_golden(called, [(tools, make_evidence("x", calls=calls))])


GIVE_UP: dict[str, Callable[..., Iterator[GivenUp]]] = {
    "equals": equals,
    "contains": contains,
    "not_contains": not_contains,
    "regex": regex,
    "json_path": json_path,
    "type": type_,
    "json_schema": json_schema,
    "tool_called": tool_called,
    "not_tool_called": not_tool_called,
    "tool_result": tool_result,
    "tool_order": tool_order,
    "artifact_exists": artifact_exists,
    "behavior": behavior,
    "llm_eval": llm_eval,
    "agent": agent,
    "script": script,
    "snapshot": snapshot,
}


def outcome(assertion: dict[str, Any], evidence: Evidence) -> str:
    return asyncio.run(run_check(make_assertion(assertion), evidence)).outcome


def neither_passes(assertion: dict[str, Any], evidence: Evidence) -> None:
    opposite = {**assertion, "negate": not assertion.get("negate", False)}
    inside = {"type": "none_of", "assertions": [assertion]}
    plain, turned = outcome(assertion, evidence), outcome(opposite, evidence)
    assert (plain != "passed", turned != "passed") == (True, True), assertion
    assert "unjudged" in (plain, turned), assertion
    assert outcome(inside, evidence) != "passed", assertion
    assert outcome({**inside, "negate": True}, evidence) != "passed", assertion


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch, fast_patience: None) -> None:
    monkeypatch.setattr(found_json, "MOST_TRIES", 50)
    monkeypatch.setattr(found_json, "MOST_BLOCKS", 50)
    monkeypatch.setattr(agent_files, "LARGEST", 10_000)
    monkeypatch.setattr(artifacts, "MOST_CANDIDATES", 50)


@pytest.mark.parametrize("kind", ASSERTIONS.names)
def test_what_is_given_up_is_unjudged(kind: str, tmp_path: Path, low_limits: None) -> None:
    known = ASSERTIONS.find(kind)
    assert known is not None
    if issubclass(known, Group):
        cases = group(kind)
    else:
        assert kind in GIVE_UP, f"say here on what `{kind}` gives up looking"
        make = GIVE_UP[kind]
        cases = make(tmp_path) if make.__code__.co_argcount else make()
    for assertion, evidence in cases:
        neither_passes(assertion, evidence)


ON_JSON: list[dict[str, Any]] = [
    {"type": "equals", "value": {"leak": 1}},
    {"type": "contains", "value": {"leak": 1}},
    {"type": "not_contains", "value": {"leak": 1}},
    {"type": "json_path", "path": "$.leak"},
    {"type": "json_path", "path": "$..leak", "value": 1},
    {"type": "type", "value": "array"},
    {"type": "json_schema", "schema": {"required": ["leak"]}},
]


@settings(max_examples=40, deadline=None)
@given(
    assertion=st.sampled_from(ON_JSON),
    levels=st.integers(DEEPEST + 1, 2000),
    opening=st.sampled_from(["[", '{"a":', "[1,"]),
    before=st.sampled_from(["", "So: ", "```json\n", "[1] {x} "]),
    turn=st.booleans(),
)
def test_json_that_is_nested_too_deep(
    assertion: dict[str, Any], levels: int, opening: str, before: str, turn: bool
) -> None:
    text = before + opening * levels + LEAK + ("}" if opening[0] == "{" else "]") * levels
    evidence = make_evidence(turns=[Turn(turn=1, input="x", output=text)], turn=1 if turn else None)
    neither_passes(assertion, evidence)


@pytest.mark.parametrize("text", ["", "no", "[note] see {x} and [1", "{ color: red }", '["so" it says]', "f(a, b) {"])
@pytest.mark.parametrize("assertion", [one for one in ON_JSON if one["type"] != "not_contains"])
def test_a_text_without_json_is_looked_at(assertion: dict[str, Any], text: str) -> None:
    assert outcome(assertion, make_evidence(text)) == "failed"
    assert outcome({**assertion, "negate": True}, make_evidence(text)) == "passed"


BESIDE = {
    f"{how}, beside another": text
    for how, broken in BROKEN_JSON.items()
    for text in [f'```json\n{{"answer": 17}}\n```\n\n{broken}']
}
"""Texts with JSON that can be read, and behind it JSON that can't."""
AROUND = {"around another": '{leaks: {"answer": 17}, leak: 1}'}
"""A text with JSON that can be read in JSON that can't."""
UNREAD = {**SEVERAL_JSON, **BESIDE, **AROUND, **BROKEN_JSON}
LEAKS = {"type": "object", "required": ["leak"]}
ABSENT: list[dict[str, Any]] = [
    {"type": "not_contains", "value": {"leak": 1}},
    {"type": "contains", "value": {"leak": 1}, "negate": True},
    {"type": "contains", "value": ["leak"], "negate": True},
    {"type": "equals", "value": {"leak": 1}, "negate": True},
    {"type": "equals", "value": {"$ne": {"leak": 1}}},
    {"type": "equals", "value": {"$not_in": [{"leak": 1}]}},
    {"type": "json_path", "path": "$.leak", "negate": True},
    {"type": "json_path", "path": "$..leak", "value": []},
    {"type": "json_path", "path": "$..leak", "value": {"$length": 0}},
    {"type": "json_path", "path": "$.answer", "value": {"$ne": 1}},
    {"type": "type", "path": "$.leak", "value": "integer", "negate": True},
    {"type": "json_schema", "schema": LEAKS, "negate": True},
    {"type": "json_schema", "schema": LEAKS, "path": "$.a", "negate": True},
    {"type": "json_schema", "schema": {"not": LEAKS}},
]
"""Checks of an answer that hold where there is no leak in it."""
ABSENT_RESULTS: list[dict[str, Any]] = [
    {"value": {"leak": 1}, "negate": True},
    {"value": {"$ne": {"leak": 1}}},
    {"value": 17.5, "negate": True},
    {"contains": {"leak": 1}, "negate": True},
    {"path": "$.leak", "negate": True},
    {"path": "$..leak", "value": []},
]
"""The same for a tool's result."""


def looks_for_a_leak(text: str) -> Iterator[GivenUp]:
    """Checks that hold where a text has no leak in it, with the text in every place where a check looks."""
    for assertion in ABSENT:
        yield assertion, make_evidence(text)
    for rule in ABSENT_RESULTS:
        assertion = {"type": "tool_result", "name": "pay", **rule}
        for call in (ToolCall(name="pay", result=text), ToolCall(name="pay", error=text)):
            yield assertion, make_evidence("x", calls=[call])
            if "negate" in rule:
                yield assertion, make_evidence("x", calls=[ToolCall(name="pay", result="no"), call])
    inside = {"type": "tool_result", "name": "pay", "path": "$.text", "contains": {"leak": 1}, "negate": True}
    yield inside, make_evidence("x", calls=[ToolCall(name="pay", result={"text": text})])
    called: list[ToolCall | str] = [ToolCall(name="pay", arguments=text)]
    with_leak = {"name": "pay", "arguments": {"leak": 1}}
    yield {"type": "not_tool_called", **with_leak}, make_evidence("x", calls=called)
    yield {"type": "tool_called", **with_leak, "negate": True}, make_evidence("x", calls=called)
    yield {"type": "tool_called", **with_leak, "times": 0}, make_evidence("x", calls=called)
    repeated = {"type": "behavior", "check": "no_repeated_actions"}
    yield repeated, make_evidence("x", calls=[*called, ToolCall(name="pay", arguments={"leak": 1})])
    made = [Artifact(name="a.json", text=text)]
    fits = {"type": "artifact_exists", "path": "a.json", "json_schema": LEAKS, "negate": True}
    yield fits, make_evidence("x", artifacts=made)


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_what_is_not_in_the_json_that_is_read_is_not_absent(text: str) -> None:
    for assertion, evidence in looks_for_a_leak(text):
        verdict = asyncio.run(run_check(make_assertion(assertion), evidence))
        says_why = any(why in verdict.message for why in ("several JSON", "broken JSON", "JSON in the midst"))
        fails = verdict.outcome == "failed" and not assertion.get("negate")
        assert fails or (verdict.outcome, says_why) == ("unjudged", True), (assertion, verdict)


@pytest.mark.parametrize("text", [json.dumps(LEAK), json.dumps(json.dumps(LEAK)), json.dumps(f"So: {LEAK}")])
def test_json_that_was_written_twice_is_not_absent(text: str) -> None:
    for assertion, evidence in looks_for_a_leak(text):
        verdict = asyncio.run(run_check(make_assertion(assertion), evidence))
        assert verdict.outcome != favourable_outcome(make_assertion(assertion)), (assertion, verdict)


@pytest.mark.parametrize(
    "text", ["no", "see [note], {x} and [1", "f(a['b'])", "12", '"12"', '"see [note]"', "so { // no"]
)
def test_a_leak_is_absent_in_every_place_where_there_is_no_json(text: str) -> None:
    for assertion, evidence in looks_for_a_leak(text):
        if assertion.get("negate") or assertion["type"].startswith("not_"):
            verdict = asyncio.run(run_check(make_assertion(assertion), evidence))
            assert verdict.outcome == "passed", (assertion, verdict)


def test_what_is_in_the_json_that_is_looked_at_is_found_beside_others() -> None:
    text = SEVERAL_JSON["behind a longer one"]
    for rule in ({"type": "contains", "value": {"answer": "a long text"}}, {"type": "json_path", "path": "$.answer"}):
        assert asyncio.run(run_check(make_assertion(rule), make_evidence(text))).passed


@pytest.mark.parametrize(
    ("assertion", "outcome"),
    [
        ({"type": "tool_result", "name": "pay", "status": "success"}, "failed"),
        ({"type": "behavior", "check": "no_errors"}, "unjudged"),
        ({"type": "tool_called", "name": "pay"}, "passed"),
    ],
    ids=lambda one: one if isinstance(one, str) else one["type"],
)
def test_a_call_whose_outcome_never_came_is_no_success(assertion: dict[str, Any], outcome: str) -> None:
    begun: list[ToolCall | str] = [ToolCall(name="pay", unfinished=True)]
    verdict = asyncio.run(run_check(make_assertion(assertion), make_evidence("x", calls=begun)))
    assert verdict.outcome == outcome
