"""What is written is read again as it was, whatever it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atp.loader.load import FileDialect, load_path, load_text
from atp.loader.outline import case_outline, suite_outline
from atp.loader.source import LoadContext
from atp.loader.writing import write
from atp.suite.case import Case
from atp.suite.suite import Suite

FREE = LoadContext(env={}, agent=True, simulator=True, assessor=True)
NASTY: list[str] = json.loads((Path(__file__).parent / "nasty.json").read_text())
"""Texts that YAML, JSON Lines or Markdown could take for something else."""

texts = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.sampled_from([*NASTY, "a", "b c", "", "  d"]), max_size=4).map("\n".join),
)
words = texts.filter(bool)
spoken = texts.filter(str.strip)  # only blanks say nothing to an agent
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts.filter(lambda key: not key.startswith("$")), values, max_size=3)
counts = st.integers(1, 10**6)
seconds = st.integers(1, 10**6) | st.floats(0.001, 1e6) | st.sampled_from(["30s", "1h30m", "250ms"])
fractions = st.floats(0, 1)
shares = st.floats(0, 1, exclude_min=True)
lists = st.lists(words, max_size=3)
artifacts = words.map("out/{}".format).filter(lambda path: ".." not in path)
several_artifacts = st.lists(artifacts, max_size=3)


def mapping(needed: dict[str, Any], **optional: Any) -> Any:
    """An object with these keys. Drawn by hand, since hypothesis prints the strategies it combines itself."""

    @st.composite
    def one(draw: Any) -> dict[str, Any]:
        made = {key: draw(value) if isinstance(value, st.SearchStrategy) else value for key, value in needed.items()}
        return made | {key: draw(optional[key]) for key in draw(some_of(tuple(optional)))}

    return one()


def some_of(keys: tuple[str, ...]) -> Any:
    return st.lists(st.sampled_from(keys), max_size=4, unique=True) if keys else st.just([])


def assertion(kind: str, needed: dict[str, Any] | None = None, **optional: Any) -> Any:
    common = {"critical": st.booleans(), "weight": fractions, "message": texts, "negate": st.booleans()}
    return mapping({"type": kind, **(needed or {})}, **optional, **common)


free = values.filter(lambda value: "$" not in json.dumps(value))  # an object with `$…` keys would be a matcher
options = mapping({}, connector=texts, mode=texts, search=values, metadata=objects, zz_free=values)
plain_assertions = st.one_of(
    assertion("equals", {"value": free}),
    assertion("contains", {"value": free.filter(lambda value: value != "")}, ignore_case=st.booleans()),
    assertion("regex", {"value": words.map(re.escape)}),
    assertion("json_path", {"path": st.sampled_from(["$.a", "a.b[0]", "$..x"])}, value=free),
    assertion("json_schema", {"schema": st.sampled_from([{}, {"type": "object", "title": "${X}"}])}),
    assertion("tool_called", {"name": words}, times=st.integers(0, 9), arguments=st.just({"n": {"$gt": 3}})),
    assertion("artifact_exists", {"path": artifacts}, contains=words, min_bytes=st.integers(0, 9)),
    assertion("behavior", {"check": "no_errors"}, allow_recovered=st.booleans(), tool_order=lists.filter(bool)),
    assertion("llm_eval", {"criteria": words}, threshold=fractions, votes=counts),
    assertion("agent", {"use": words.map("agents:a{}".format)}, options=options, value=values),
)
assertions = plain_assertions | st.one_of(
    assertion("any_of", {"assertions": st.lists(plain_assertions, min_size=1, max_size=2)}),
    assertion("at_least", {"k": 1, "assert": st.lists(plain_assertions, min_size=1, max_size=2)}),
)
parts = mapping({"type": "text", "text": texts}) | mapping({"type": "image", "source": words}, mime_type=texts)
messages = mapping(
    {
        "role": st.sampled_from(["user", "system", "assistant"]),
        "content": spoken | st.lists(parts, min_size=1, max_size=2),
    },
    name=texts,
    metadata=values,
)
limits = mapping(
    {}, max_steps=counts, max_tokens=counts, timeout_seconds=seconds, allowed_tools=lists, budget_usd=fractions
)
weights = st.sampled_from(
    [{}, {"quality_weight": 0.6, "completeness_weight": 0.3, "efficiency_weight": 0.1, "cost_weight": 0.0}]
)
checkpoints = st.lists(
    mapping({"id": words, "assertion": plain_assertions}, description=texts, required=st.booleans()),
    min_size=1,
    max_size=2,
    unique_by=lambda one: str(one["id"]),
)
says = st.one_of(
    mapping({"input": spoken}),
    mapping({"messages": st.lists(messages, min_size=1, max_size=3)}),
    mapping({"task": mapping({"description": spoken}, input_data=objects, expected_artifacts=several_artifacts)}),
    mapping({"simulator": mapping({"use": words.map("a{}".format)}, options=options), "checkpoints": checkpoints}),
)
extras = mapping(
    {},
    description=texts,
    tags=lists,
    skip=st.booleans(),
    constraints=limits,
    assertions=st.lists(assertions, max_size=2),
    expectations=lists,
    expected=free,
    scoring=weights,
    min_score=st.floats(0, 100),
    pass_rate=shares,
    runs=counts,
    user=words,
    team=words,
    locale=words,
    metadata=objects,
    options=options,
    workspace=words,
    before_hook=words,
)
cases = st.lists(
    st.builds(lambda head, said, rest: head | said | rest, mapping({"id": words, "name": words}), says, extras),
    min_size=1,
    max_size=3,
    unique_by=lambda case: str(case["id"]),
)
http = mapping({"endpoint": "http://a/${X}", "protocol": "json", "body": {"a": "${X}"}}, timeout=seconds, retry=counts)
entries = st.sampled_from(["clerk:answer", "../a b/c.py:answer", "'${X}' #.py:a.b"])
agents = st.lists(
    st.one_of(
        mapping({"name": words, "type": "custom", "config": mapping({}, entry=entries, zz=values)}, description=texts),
        mapping({"name": words, "type": "http", "config": http}),
        mapping({"name": words, "type": "cli", "config": mapping({"command": lists.filter(bool)}, args=lists)}),
        mapping({"name": words, "type": "prompt", "config": mapping({"path": words})}),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda agent: str(agent["name"]),
)
suites = mapping(
    {"test_suite": words, "agents": agents, "tests": cases},
    version=words,
    description=texts,
    defaults=mapping(
        {}, runs_per_test=counts, timeout_seconds=seconds, constraints=limits, scoring=weights, pass_rate=shares
    ),
)
chains = st.lists(st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=3)
sections = st.lists(
    mapping(
        {"id": words, "name": texts, "chains": chains},
        path=st.lists(texts, max_size=3),
        intent=texts,
        tags=lists,
        user=words,
        expectations=lists,
        befores=st.lists(st.integers(0, 2), max_size=2),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda one: str(one["id"]),
)
quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def as_jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def as_yaml(raw: Any) -> str:
    """JSON is YAML, but for its escapes of the characters beyond U+FFFF, and for what a dollar sign means."""
    pair = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)")
    return pair.sub(_whole, json.dumps(_without_variables(raw)))


def _whole(escape: "re.Match[str]") -> str:
    if not escape[1]:
        return escape[0]
    return f"\\U{0x10000 + ((int(escape[1], 16) & 0x3FF) << 10) + (int(escape[2], 16) & 0x3FF):08x}"


def _without_variables(raw: Any) -> Any:
    if isinstance(raw, str):
        return raw.replace("${", "$${")
    if isinstance(raw, dict):
        return {key: _without_variables(item) for key, item in raw.items()}
    return [_without_variables(item) for item in raw] if isinstance(raw, list) else raw


def load(text: str, dialect: FileDialect, given: LoadContext = FREE) -> Suite:
    loaded = load_text(text, dialect, given)
    assert loaded.ok, (loaded.diagnostics, text)
    assert loaded.suite
    return loaded.suite


def outlines(suite: Suite, *lost: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in case_outline(case).items() if key not in lost} for case in suite.cases]


def shared(suite: Suite) -> dict[str, Any]:
    return {key: value for key, value in suite_outline(suite).items() if key not in ("path", "dialect")}


@quick
@given(cases)
@pytest.mark.parametrize("dialect", ["jsonl", "json", "yaml"])
def test_jsonl_says_the_same_in_yaml_and_jsonl(dialect: FileDialect, records: list[dict[str, Any]]) -> None:
    suite = load(as_jsonl(records), "jsonl")
    written = write(suite, dialect)
    again = load(written.text, dialect)
    assert outlines(again) == outlines(suite)
    assert again.cases == suite.cases
    assert written.losses == []
    assert write(again, dialect) == written


@quick
@given(suites)
def test_yaml_says_the_same_in_yaml(raw: dict[str, Any]) -> None:
    suite = load(as_yaml(raw), "yaml")
    written = write(suite, "yaml")
    again = load(written.text, "yaml")
    assert again.cases == suite.cases
    assert outlines(again) == outlines(suite)
    assert shared(again) == shared(suite)
    assert written.losses == []
    assert write(again, "yaml") == written


@quick
@given(suites)
def test_yaml_says_the_same_cases_in_jsonl(raw: dict[str, Any]) -> None:
    suite = load(as_yaml(raw), "yaml")
    written = write(suite, "jsonl")
    again = load(written.text, "jsonl")
    assert outlines(again) == outlines(suite)
    assert all(loss.startswith("suite: ") for loss in written.losses)
    second = write(again, "jsonl")
    assert (second.text, second.losses) == (written.text, [])


def lost_keys(case: Case, losses: list[str]) -> set[str]:
    """The keys that losses name for a case, in the words of `atp show --json`."""
    owner = f"case `{case.id}`: "
    found = {re.split(r"[. (]", loss.removeprefix(owner), maxsplit=1)[0] for loss in losses if loss.startswith(owner)}
    if any(loss.startswith("suite: iterations") for loss in losses):
        found.add("iterations")
    return found | {"before_sequence"} if "befores" in found else found


def meaning(case: Case, lost: set[str], cases: list[Case]) -> dict[str, Any]:
    """A case's outline in a form that all dialects share: a task or message that is only a prompt is a chain of it."""
    plain = case_outline(case)
    plain["name"] = plain["name"] or plain["id"]
    message = plain["messages"][0] if len(plain["messages"]) == 1 else {}
    if message.keys() == {"role", "content"} and message["role"] == "user" and isinstance(message["content"], str):
        plain["chains"], plain["messages"] = [[message["content"]]], []
    if plain["chains"] and plain.get("task") == {"description": plain["chains"][0][0]}:
        del plain["task"]
    places = {one.index: place for place, one in enumerate(cases)}  # others may have been left out before it
    for key in ("befores", "before_sequence"):
        plain[key] = [places[index] for index in plain[key] if index in places]
    gone = {"index", "path", *lost}
    return {key: value for key, value in plain.items() if key not in gone}


def check_stable(suite: Suite, dialect: FileDialect) -> Suite | None:
    """The file says what the suite says, but for what is listed; and a second time nothing is lost or changed."""
    written = write(suite, dialect)
    lost = {case.id: lost_keys(case, written.losses) for case in suite.cases}
    kept = [case for case in suite.cases if "everything" not in lost[case.id]]
    if not kept:
        assert written.text == ""
        return None
    again = load(written.text, dialect)
    ours = [meaning(case, lost[source.id], again.cases) for source, case in zip(kept, again.cases, strict=True)]
    assert ours == [meaning(case, lost[case.id], kept) for case in kept], written.text
    second = write(again, dialect)
    assert (second.text, second.losses) == (written.text, [])
    return again


@quick
@given(suites)
def test_yaml_to_markdown_is_stable(raw: dict[str, Any]) -> None:
    check_stable(load(as_yaml(raw), "yaml"), "markdown")


@quick
@given(cases)
def test_jsonl_to_markdown_is_stable(records: list[dict[str, Any]]) -> None:
    check_stable(load(as_jsonl(records), "jsonl"), "markdown")


@settings(quick, max_examples=80)
@given(sections, texts)
def test_markdown_is_stable(raw: list[dict[str, Any]], name: str) -> None:
    suite = Suite(name=name or "suite", dialect="markdown", cases=[])
    for index, section in enumerate(raw):
        befores = [before for before in section.pop("befores", []) if before < index]
        sequence = [step for before in befores for step in (*suite.cases[before].before_sequence, before)]
        suite.cases.append(Case(**section, index=index, befores=befores, before_sequence=sequence))
    again = check_stable(suite, "markdown")
    if again is not None:
        check_stable(again, "markdown")
        check_stable(again, "yaml")
        check_stable(again, "jsonl")


TESTS = Path(__file__).parents[2]
FILES = [
    *sorted((TESTS.parent / "examples").glob("*.*")),
    *sorted((TESTS / "documents").glob("*/c*/*.*")),
    *sorted((TESTS / "documents" / "markdown").iterdir()),
    *sorted((TESTS / "fixtures" / "markdown").glob("*/*.test.md")),
]
ENV = dict.fromkeys(("API_ENDPOINT", "BASELINE_ENDPOINT"), "https://example.com")


@pytest.mark.parametrize("dialect", ["yaml", "jsonl", "json", "markdown"])
def test_the_examples_are_stable(dialect: FileDialect) -> None:
    given = LoadContext(env={**ENV, "API_KEY": "short"}, agent=True, simulator=True, assessor=True)
    suites = [loaded.suite for path in FILES if (loaded := load_path(path, given)).ok and loaded.suite]
    assert len(suites) > 100
    for suite in suites:
        again = check_stable(suite, dialect)
        if suite.dialect == dialect == "markdown" and again and suite.cases[0].path:
            assert [case.path for case in again.cases] == [case.path for case in suite.cases]
