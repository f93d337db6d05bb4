"""Keys that aren't known, keys given twice, and two spellings of one key: errors at every level of a file."""

import pytest
from tests.loader.shop import Expect, suite_with

from atp.loader import Loaded

AGENTS = "agents: [{name: clerk, type: custom, config: {}}]\n"
TESTS = "tests: [{id: one, name: One, input: Hello}]\n"
CHECKPOINTS = "checkpoints: [{id: c, assertion: {type: equals, value: 1}}]"
EQUALS = '{"type": "equals", "value": 1}'
ALSO = '«both-spellings»"assert"'
BOTH = f'{{"id": "c", "assertion": {EQUALS}, {ALSO}: {EQUALS}}}'


def suite_for(kind: str, config: str) -> str:
    """A suite whose only agent has this configuration."""
    agent = f"{{name: clerk, type: {kind}, config: {config}}}"
    return f"test_suite: shop\nagents: [{agent}]\n{TESTS}"


def hints(loaded: Loaded) -> list[str | None]:
    return [one.hint for one in loaded.diagnostics]


LEVELS = {
    "suite": (f"«unknown-key»descripton: x\n{suite_with('input: Hello')}", "description"),
    "suite, in place of its name": (
        f"«unknown-key»test_sute: s\n{AGENTS}{TESTS}",
        "test_suite",
    ),
    "defaults": (f"defaults: {{«unknown-key»run_per_test: 3}}\n{suite_with('input: Hello')}", "runs_per_test"),
    "defaults.constraints": (
        f"defaults: {{constraints: {{«unknown-key»max_step: 3}}}}\n{suite_with('input: Hello')}",
        "max_steps",
    ),
    "defaults.scoring": (
        f"defaults: {{scoring: {{«unknown-key»quality_wieght: 0.4}}}}\n{suite_with('input: Hello')}",
        "quality_weight",
    ),
    "agent": (
        f"test_suite: s\nagents: [{{name: a, type: custom, config: {{}}, «unknown-key»desciption: x}}]\n{TESTS}",
        "description",
    ),
    "test": (suite_with("input: Hello\n«unknown-key»tgas: [a]"), "tags"),
    "test, in place of what it says": (suite_with("«unknown-key»mesages: [{role: user, content: Hi}]"), "messages"),
    "task": (suite_with("task: {description: d, «unknown-key»expected_artifact: [a]}"), "expected_artifacts"),
    "constraints": (suite_with("input: Hello\nconstraints: {«unknown-key»budget_us: 1}"), "budget_usd"),
    "scoring": (suite_with("input: Hello\nscoring: {«unknown-key»cost_wight: 0.1}"), "cost_weight"),
    "assertion": (
        suite_with("input: Hello\nassertions: [{type: equals, value: 1, «unknown-key»mesage: x}]"),
        "message",
    ),
    "message": (suite_with("messages: [{role: user, content: Hi, «unknown-key»nme: Bob}]"), "name"),
    "text part": (
        suite_with("messages: [{role: user, content: [{type: text, text: Hi, «unknown-key»txt: x}]}]"),
        "text",
    ),
    "image part": (
        suite_with("messages: [{role: user, content: [{type: image, source: a.png, «unknown-key»sorce: x}]}]"),
        "source",
    ),
    "image_url part": (
        suite_with("input: {role: user, content: [{type: image_url, image_url: {url: x, «unknown-key»detial: low}}]}"),
        "detail",
    ),
    "simulator": (
        suite_with(f"simulator: {{use: sim, «unknown-key»option: {{}}}}\n{CHECKPOINTS}"),
        "options",
    ),
    "checkpoint": (
        suite_with(
            "simulator: {use: sim}\n"
            "checkpoints: [{id: c, assertion: {type: equals, value: 1}, «unknown-key»requierd: false}]"
        ),
        "required",
    ),
    "checkpoint's assertion": (
        suite_with(
            "simulator: {use: sim}\n"
            "checkpoints: [{id: c, assertion: {type: contains, value: x, «unknown-key»ignore_cas: true}}]"
        ),
        "ignore_case",
    ),
    "options": (suite_with("input: Hello\noptions: {«unknown-key»metdata: {}}"), "metadata"),
    "simulator's options": (
        suite_with(f"simulator: {{use: sim, options: {{«unknown-key»metadta: {{}}}}}}\n{CHECKPOINTS}"),
        "metadata",
    ),
    "assertion's options": (
        suite_with("input: Hello\nassertions: [{type: agent, use: 'agents:v', options: {«unknown-key»conector: x}}]"),
        "connector",
    ),
    "assertion in a group": (
        suite_with("input: Hello\nassertions: [{type: any_of, assertions: [{type: regex, «unknown-key»patern: x}]}]"),
        "pattern",
    ),
    "http config": (suite_for("http", "{endpoint: http://x, «unknown-key»timout: 3}"), "timeout"),
    "cli config": (suite_for("cli", "{command: x, «unknown-key»arg: [a]}"), "args"),
    "docker config": (suite_for("docker", "{image: x, «unknown-key»enviroment: {}}"), "environment"),
    "langgraph config": (suite_for("langgraph", "{graph_path: g.py, «unknown-key»temprature: 1}"), "temperature"),
    "crewai config": (suite_for("crewai", "{crew_path: c.py, «unknown-key»input: {}}"), "inputs"),
    "prompt config": (suite_for("prompt", "{path: agents/x.md, «unknown-key»conector: x}"), "connector"),
}


@pytest.mark.parametrize("level", LEVELS)
def test_an_unknown_key_is_an_error_with_a_suggestion(expect: Expect, level: str) -> None:
    text, meant = LEVELS[level]
    assert hints(expect(text)) == [f"did you mean `{meant}`?"]


@pytest.mark.parametrize(
    "text",
    [
        f"«unknown-key»zzz: x\n{suite_with('input: Hello')}",
        suite_with("input: Hello\n«unknown-key»zzz: x"),
        suite_with("task: {description: d, «unknown-key»zzz: x}"),
        suite_with("input: Hello\nconstraints: {«unknown-key»zzz: x}"),
        suite_with("input: Hello\nassertions: [{type: equals, value: 1, «unknown-key»zzz: x}]"),
        suite_with("messages: [{role: user, content: Hi, «unknown-key»zzz: x}]"),
        suite_for("http", "{endpoint: http://x, «unknown-key»zzz: 3}"),
        suite_for("crewai", "{crew_path: x, «unknown-key»zzz: 3}"),
    ],
)
def test_without_a_near_miss_the_known_keys_are_listed(expect: Expect, text: str) -> None:
    (hint,) = hints(expect(text))
    assert hint is not None
    assert hint.startswith("known here: ")


@pytest.mark.parametrize(
    "text",
    [
        suite_for("custom", "{anything: {at: [all]}, entry: a.py:run, entri: x}"),
        suite_for("langgraph", "{graph_path: g.py, thread_id: 7}"),
        suite_with("input: Hello\noptions: {anything: 7}\nmetadata: {anything: 7}"),
    ],
)
def test_open_places_take_any_key(expect: Expect, text: str) -> None:
    expect(text)


KINDS = {
    "equals": "value: x",
    "contains": "value: x",
    "not_contains": "value: x",
    "regex": "pattern: x",
    "json_path": "path: $.x",
    "type": "value: string",
    "json_schema": "schema: {}",
    "tool_called": "name: x",
    "not_tool_called": "name: x",
    "tool_result": "name: x",
    "tool_order": "tools: [x]",
    "artifact_exists": "path: x",
    "behavior": "check: no_errors",
    "snapshot": "match: json",
    "llm_eval": "criteria: x",
    "agent": "use: 'agents:x'",
    "script": "script: scripts.a.b",
    "all_of": "assertions: [{type: equals, value: 1}]",
    "any_of": "assertions: [{type: equals, value: 1}]",
    "none_of": "assertions: [{type: equals, value: 1}]",
    "at_least": "k: 1, assertions: [{type: equals, value: 1}]",
}
"""Every kind of assertion with the keys it needs."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_assertion_is_closed_flat_and_nested(expect: Expect, kind: str) -> None:
    loaded = expect(
        suite_with(
            f"""
            input: Hello
            assertions:
              - {{type: {kind}, {KINDS[kind]}}}
              - {{type: {kind}, config: {{{KINDS[kind]}}}}}
              - {{type: {kind}, {KINDS[kind]}, «unknown-key»wieght: 2}}
              - {{type: {kind}, config: {{{KINDS[kind]}, «unknown-key»wieght: 2}}}}
              - {{type: {kind}, config: {{{KINDS[kind]}}}, «unknown-key»wieght: 2}}
              - {{type: {kind}, {KINDS[kind]}, «unknown-key»zzz: 2}}
            """
        )
    )
    assert hints(loaded)[:3] == ["did you mean `weight`?"] * 3
    assert loaded.suite is not None
    assert len(loaded.suite.cases[0].assertions) == 6


def test_all_registered_kinds_are_covered_here() -> None:
    from atp.suite import ASSERTIONS

    assert set(KINDS) == set(ASSERTIONS.names)


# The same in JSONL


@pytest.mark.parametrize(
    ("record", "meant"),
    [
        ('{"id": "a", "input": "x", «unknown-key»"expectd": 1}', "expected"),
        ('{"id": "a", «unknown-key»"inptu": "x"}', "input"),
        ('{«unknown-key»"Id": "a", "input": "x"}', "id"),
        ('{"id": "a", "input": {"role": "user", "content": "x", «unknown-key»"nme": 1}}', "name"),
        ('{"id": "a", "input": "x", "assert": {"type": "equals", "value": 1, «unknown-key»"negte": true}}', "negate"),
        (f'{{"id": "a", "input": "x", "assert": [{EQUALS}, {EQUALS[:-1]}, «unknown-key»"negte": 1}}]}}', "negate"),
    ],
)
def test_unknown_keys_in_jsonl(expect: Expect, record: str, meant: str) -> None:
    assert hints(expect(record)) == [f"did you mean `{meant}`?"]


def test_agents_is_a_key_of_yaml_tests_only(expect: Expect) -> None:
    expect('{"id": "a", "input": "x", «unknown-key»"agents": ["a"]}')


@pytest.mark.parametrize("key", ["index", "place", "path", "intent", "chains", "befores", "before_sequence", "limits"])
def test_what_the_loader_works_out_itself_is_no_key(expect: Expect, key: str) -> None:
    expect(f'{{"id": "a", "input": "x", «unknown-key»"{key}": "x"}}')


# Keys given twice


@pytest.mark.parametrize(
    "text",
    [
        f"description: a\n«duplicate-key»description: b\n{suite_with('input: Hello')}",
        suite_with("input: Hello\n«duplicate-key»input: Bye"),
        suite_with("input: Hello\nmetadata: {a: 1, «duplicate-key»a: 2}"),
        suite_with("input: Hello\nassertions: [{type: equals, value: 1, «duplicate-key»value: 2}]"),
        suite_with("input: Hello\nassertions: [{type: equals, config: {value: 1, «duplicate-key»value: 2}}]"),
    ],
)
def test_a_key_given_twice_in_a_yaml_mapping(expect: Expect, text: str) -> None:
    expect(text)


@pytest.mark.parametrize(
    "record",
    [
        '{"id": "a", "input": "x", «duplicate-key»"input": "y"}',
        '{"id": "a", "input": "x", "metadata": {"k": 1, "l": {"m": 1, «duplicate-key»"m": 2}, «duplicate-key»"k": 3}}',
        '{\n  "id": "a",\n  «duplicate-key»"id": "b",\n  "input": "x"\n}',
    ],
)
def test_a_key_given_twice_in_a_json_object(expect: Expect, record: str) -> None:
    loaded = expect(record)
    assert loaded.suite is not None
    assert len(loaded.suite.cases) == 1


@pytest.mark.parametrize(
    "one",
    [
        "{type: equals, value: 1, config: {«given-twice»value: 2}}",
        "{type: llm_eval, config: {criteria: x, «given-twice»threshold: 1}, threshold: 0.5}",
    ],
)
def test_a_key_beside_config_and_in_it(expect: Expect, one: str) -> None:
    expect(suite_with(f"input: Hello\nassertions: [{one}]"))


# Both spellings at once


@pytest.mark.parametrize(
    "record",
    [
        '{"id": "a", "input": "x", "assertions": [], «both-spellings»"assert": []}',
        '{"id": "a", "input": "x", "assert": {"type": "regex", "pattern": "a", «both-spellings»"value": "b"}}',
        '{"id": "a", "input": "x", "assert": {"type": "tool_called", "name": "a", «both-spellings»"value": "b"}}',
        '{"id": "a", "input": "x", "assert": {"type": "not_tool_called", "name": "a", «both-spellings»"value": "b"}}',
        '{"id": "a", "input": "x", "assert": {"type": "script", "script": "scripts.a.b", «both-spellings»"use": "x"}}',
        '{"id": "a", "input": "x", "assert": {"type": "json_schema", "schema": {}, «both-spellings»"value": {}}}',
        '{"id": "a", "input": "x", "assert": {"type": "tool_order", "tools": ["a"], «both-spellings»"value": ["a"]}}',
        f'{{"id": "a", "simulator": {{"use": "s"}}, "checkpoints": [{BOTH}]}}',
        f'{{"id": "a", "input": "x", "assert": {{"type": "any_of", "assertions": [{EQUALS}], {ALSO}: [{EQUALS}]}}}}',
    ],
)
def test_both_spellings_of_a_key_are_an_error(expect: Expect, record: str) -> None:
    expect(record)


def test_both_spellings_in_yaml_flat_and_in_config(expect: Expect) -> None:
    expect(
        suite_with(
            """
            input: Hello
            assertions:
              - {type: regex, pattern: a, «both-spellings»value: b}
              - {type: regex, config: {pattern: a, «both-spellings»value: b}}
              - {type: regex, config: {pattern: a}, «both-spellings»value: b}
            """
        )
    )


def test_messages_override_input_with_a_warning(expect: Expect) -> None:
    loaded = expect('{"id": "a", «warning:input-ignored»"input": "x", "messages": [{"role": "user", "content": "y"}]}')
    assert loaded.suite is not None
    assert loaded.suite.cases[0].input == "y"
