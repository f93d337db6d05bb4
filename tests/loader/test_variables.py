"""Variables in YAML suites: every sentence of the rulings, and document 1's rule 7."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.loader.shop import Expect, one_case, suite_with

from atp.loader import Loaded, LoadError, TestLoader


def data(loaded: Loaded) -> Any:
    task = one_case(loaded).task
    assert task is not None
    return task.input_data


@pytest.mark.parametrize("name", ["API_KEY", "api_key", "Mixed_Case2", "_x", "x"])
def test_names_of_either_case(expect: Expect, name: str) -> None:
    assert one_case(expect(suite_with(f"input: ${{{name}}}"), env={name: "value"})).input == "value"


def test_names_are_case_sensitive(expect: Expect) -> None:
    expect(suite_with("input: «missing-variable»${name}"), env={"NAME": "value"})


def test_several_in_one_string(expect: Expect) -> None:
    loaded = expect(suite_with("input: '${A}-${B:b}${A}/$C'"), env={"A": "a"})
    assert one_case(loaded).input == "a-ba/$C"


@pytest.mark.parametrize(
    "place",
    ["input: ${X}", "tags: ['${X}']", "metadata: {deep: [{down: '${X}'}]}", "description: >\n  about\n  ${X}"],
)
def test_in_any_string_value(expect: Expect, place: str) -> None:
    said = "" if place.startswith("input") else "input: Hello\n"
    case = one_case(expect(suite_with(said + place), env={"X": "found"}))
    assert "found" in str(case)
    assert "${X}" not in str(case)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("runs: '${N:3}'", 3),
        ("runs: ${N}", 7),
        ("skip: ${YES}", True),
        ("skip: ${NO:false}", False),
        ("min_score: ${SCORE:62.5}", 62.5),
        ("timeout: ${T:5m}", 300.0),
        ("timeout: ${T}${U}", 90.0),
    ],
)
def test_typed_fields_parse_the_text(expect: Expect, line: str, value: object) -> None:
    env = {"N": "7", "YES": "true", "T": "1m", "U": "30s"}
    for name in re.findall(r"\$\{(\w+):", line):  # a default is only used where there is no value
        env.pop(name, None)
    case = one_case(expect(suite_with(f"input: Hello\n{line}"), env=env))
    key = line.partition(":")[0]
    assert (case.limits.timeout_seconds if key == "timeout" else getattr(case, key)) == value


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("runs: «wrong-type»${WORD}", "wrong-type"),
        ("runs: «out-of-range»${ZERO:0}", "out-of-range"),
        ("skip: «wrong-type»${WORD}", "wrong-type"),
        ("timeout: «duration»${WORD}", "duration"),
        ("tags: «wrong-type»${WORD}", "wrong-type"),
    ],
)
def test_text_that_is_not_of_the_fields_type_is_an_error_at_the_value(expect: Expect, line: str, code: str) -> None:
    assert expect(suite_with(f"input: Hello\n{line}"), env={"WORD": "often"}).diagnostics[0].code == code


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("30", 30),
        ("0.5", 0.5),
        ("false", False),
        ("null", None),
        ("", None),
        ("text", "text"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("2024-01-01", "2024-01-01"),
        ("yes", "yes"),
        ("[1, two]", [1, "two"]),
        ("-1", -1),
        ("1e999", "1e999"),
        ("[1", "[1"),
    ],
)
def test_untyped_places_parse_a_default_as_yaml_would(expect: Expect, written: str, value: object) -> None:
    loaded = expect(suite_with(f'task: {{description: d, input_data: {{x: "${{X:{written}}}"}}}}'))
    assert data(loaded) == {"x": value}
    assert type(data(loaded)["x"]) is type(value)


@pytest.mark.parametrize("value", ["30", "false", "null", "", "[1]"])
def test_untyped_places_keep_an_environment_value_as_text(expect: Expect, value: str) -> None:
    loaded = expect(suite_with('task: {description: d, input_data: {x: "${X:5}"}}'), env={"X": value})
    assert data(loaded) == {"x": value}


def test_a_default_that_is_only_part_of_a_value_stays_text(expect: Expect) -> None:
    loaded = expect(suite_with('task: {description: d, input_data: {x: "${X:5}0", y: "${X:5}${Y:6}"}}'))
    assert data(loaded) == {"x": "50", "y": "56"}


UNTYPED = [
    "metadata: {{x: {0}}}",
    "expected: {0}",
    "options: {{x: {0}}}",
    "options: {{metadata: {{x: {0}}}}}",
    "assertions: [{{type: equals, value: {0}}}]",
    "assertions: [{{type: json_path, path: a, value: {{deep: [{0}]}}}}]",
    "assertions: [{{type: tool_called, name: t, arguments: {{x: {0}}}}}]",
]


@pytest.mark.parametrize("place", UNTYPED)
def test_all_untyped_places_of_a_test(expect: Expect, place: str) -> None:
    given, plain = ('"${N:30}"', "30")
    with_variable = one_case(expect(suite_with("input: Hello\n" + place.format(given))))
    assert with_variable == one_case(expect(suite_with("input: Hello\n" + place.format(plain))))


@pytest.mark.parametrize(
    ("kind", "needs", "key"),
    [
        ("custom", "", "anything"),
        ("langgraph", "graph_path: g.py, ", "thread"),
        ("crewai", "crew_path: c.py, ", "inputs"),
    ],
)
def test_free_keys_of_an_agents_config(expect: Expect, kind: str, needs: str, key: str) -> None:
    loaded = expect(
        f"test_suite: s\nagents:\n  - name: a\n    type: {kind}\n"
        f"    config: {{{needs}{key}: {{n: '${{N:30}}', t: '${{T}}'}}}}\n"
        "tests: [{id: t, name: T, input: Hello}]\n",
        env={"T": "30"},
    )
    assert loaded.suite is not None
    assert loaded.suite.agents[0].config.model_dump()[key] == {"n": 30, "t": "30"}


def test_a_default_serves_every_bare_use_before_and_after(expect: Expect) -> None:
    loaded = expect(suite_with("input: '${URL}/a ${URL:http://x} ${URL}/b'\nexpected: ${URL}"))
    assert one_case(loaded).input == "http://x/a http://x http://x/b"
    assert one_case(loaded).expected == "http://x"


def test_the_environment_wins_over_the_default(expect: Expect) -> None:
    assert one_case(expect(suite_with("input: '${URL:http://x} ${URL}'"), env={"URL": "u"})).input == "u u"


def test_the_same_default_twice_is_fine(expect: Expect) -> None:
    assert one_case(expect(suite_with("input: '${A:1} ${A:1}'"))).input == "1 1"


def test_two_different_defaults_are_an_error_also_when_the_variable_is_set(expect: Expect) -> None:
    for env in ({}, {"A": "3"}):
        expect(suite_with("input: '${A:1} «conflicting-default»${A:2}'"), env=env)
        expect(suite_with("input: '${A:1}'\ntags: ['«conflicting-default»${A:}']"), env=env)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("$${X}", "${X}"),
        ("a $${X} b ${X}", "a ${X} b x"),
        ("$$${X}", "$${X}"),
        ("$X", "$X"),
        ("$$", "$$"),
        ("cost: $5", "cost: $5"),
        ("$${", "${"),
    ],
)
def test_a_doubled_dollar_sign_is_a_literal(expect: Expect, written: str, text: str) -> None:
    assert one_case(expect(suite_with(f"input: '{written}'"), env={"X": "x"})).input == text


def test_all_missing_variables_are_told_together_each_at_its_place(expect: Expect) -> None:
    loaded = expect(
        """\
test_suite: «missing-variable»${SUITE}
agents:
  - name: clerk
    type: custom
    config:
      endpoint: "http://«missing-variable»${HOST}:«missing-variable»${PORT}/"
      list: [a, '«missing-variable»${HOST}']
tests:
  - id: one
    name: «missing-variable»${NAME} and «missing-variable»${NAME}
    task:
      description: |
            First «missing-variable»${LINE}, $${LINE}
            then «missing-variable»${LINE}
      input_data: {ünïcödé: "ä«missing-variable»${A}ö«missing-variable»${B}"}
    description: >
      «missing-variable»${A}

      «missing-variable»${B}
"""
    )
    assert loaded.diagnostics[0].message == "the variable `SUITE` is not set"
    assert loaded.diagnostics[0].hint == "set SUITE in the environment, or give a default: ${SUITE:…}"
    assert one_case(loaded).id == "one"


def test_a_use_written_with_escapes_is_told_at_its_value(expect: Expect) -> None:
    expect(suite_with(r'input: «missing-variable»"\x24{A}"'))


@pytest.mark.parametrize("written", ["${", "${}", "${1A}", "${A", "${A-B}", "${ A }", "a ${:x}"])
def test_what_only_looks_like_a_variable_is_an_error(expect: Expect, written: str) -> None:
    marked = written.replace("${", "«bad-variable»${", 1)
    expect(suite_with(f"input: '{marked}'"), env={"A": "a"})


def test_comments_and_keys_are_not_filled_in(expect: Expect) -> None:
    loaded = expect(suite_with("input: x # ${MISSING}\nmetadata: {'${MISSING}': 1}"))
    assert one_case(loaded).metadata == {"${MISSING}": 1}


def test_variables_behind_aliases_and_merge_keys(expect: Expect) -> None:
    loaded = expect(
        suite_with(
            "input: x\nmetadata: {base: &base {a: '${A}', n: '${N:30}'}, same: *base, more: {<<: *base, a: mine}}"
        ),
        env={"A": "a"},
    )
    assert one_case(loaded).metadata == {
        "base": {"a": "a", "n": 30},
        "same": {"a": "a", "n": 30},
        "more": {"a": "mine", "n": 30},
    }


def test_a_missing_variable_behind_an_alias_is_told_once(expect: Expect) -> None:
    expect(suite_with("input: x\nmetadata: {a: &a {b: '«missing-variable»${A}'}, c: *a, d: {<<: *a}}"))


def test_a_value_is_not_filled_in_again(expect: Expect) -> None:
    assert one_case(expect(suite_with("input: ${A}"), env={"A": "${B}", "B": "b"})).input == "${B}"


# The loader's environment


def test_without_env_the_process_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATP_TEST_WORD", "from the process")
    assert TestLoader().load_string(suite_with("input: ${ATP_TEST_WORD}")).tests[0].input == "from the process"


def test_env_replaces_the_process_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ATP_TEST_WORD", "from the process")
    file = tmp_path / "suite.yaml"
    file.write_text(suite_with("input: ${ATP_TEST_WORD}"))
    with pytest.raises(LoadError) as caught:
        TestLoader(env={}).load_file(file)
    assert [one.code for one in caught.value.diagnostics] == ["missing-variable"]
    assert TestLoader(env={"ATP_TEST_WORD": "given"}).load_file(file).tests[0].input == "given"


@pytest.mark.parametrize(
    "line",
    [
        "runs: «missing-variable»${N}",
        "timeout: «missing-variable»${T}",
        "assertions: [{type: '«missing-variable»${T}', value: 1}]",
        "assertions: [{type: equals, value: 1, weight: '«missing-variable»${T}'}]",
        "assertions: [{type: regex, pattern: '«bad-variable»${('}]",
    ],
)
def test_a_missing_variable_is_one_mistake_whatever_its_place_takes(expect: Expect, line: str) -> None:
    expect(suite_with(f"input: Hello\n{line}"))


def test_a_missing_variable_below_an_unknown_key_is_two(expect: Expect) -> None:
    expect(suite_with("input: Hello\n«unknown-key»rnus: «missing-variable»${N}"))


@pytest.mark.parametrize("env", [{}, {"A": "1"}, {"A": "1", "B": "2"}])
@pytest.mark.parametrize("use", ["${A:${B:2}}", "${A:${B}}", "${A:x ${B:${C:1}} y}", "${A:$${B}}"])
def test_a_default_holds_no_variable(expect: Expect, use: str, env: dict[str, str]) -> None:
    (one,) = expect(suite_with(f"input: 'say «bad-variable»{use}'"), env=env).diagnostics
    assert one.message == "the default of `A` holds a variable"


def test_a_default_may_hold_braces_in_pairs(expect: Expect) -> None:
    lines = 'task: {description: Sell, input_data: {a: "${A:{b: {c: 1}}}", d: "${D:{} x", e: "${E:{}{}}"}}'
    assert data(expect(suite_with(lines))) == {"a": {"b": {"c": 1}}, "d": "{ x", "e": "{}{}"}
    given = {"A": "1", "D": "2", "E": "3"}
    assert data(expect(suite_with(lines), env=given)) == {"a": "1", "d": "2 x", "e": "3"}


def test_a_list_or_mapping_may_come_from_a_variable(expect: Expect) -> None:
    lines = """
    input: Hello
    tags: "${TAGS:[a, b]}"
    constraints: {allowed_tools: "${TOOLS}"}
    metadata: "${DATA:{x: {y: 1}}}"
    assertions: ["${CHECK}", {type: contains, value: "${TAGS}"}]"""
    case = one_case(expect(suite_with(lines), env={"TOOLS": "[c, d]", "CHECK": "{type: contains, value: e}"}))
    assert (case.tags, case.limits.allowed_tools, case.metadata) == (["a", "b"], ["c", "d"], {"x": {"y": 1}})
    assert [one.type for one in case.assertions] == ["contains", "contains"]
    case = one_case(expect(suite_with(lines), env={"TOOLS": "[]", "CHECK": "{type: equals, value: 1}", "TAGS": "[f]"}))
    assert (case.tags, case.limits.allowed_tools) == (["f"], [])
    assert getattr(case.assertions[1], "value", None) == "[f]"


@pytest.mark.parametrize(
    "line",
    [
        'tags: «wrong-type»"${TAGS:a}"',
        'tags: «wrong-type»"${TAGS:{a: 1}}"',
        'tags: «wrong-type»"${TAGS:[1]}"',
        'tags: «wrong-type»"${TAGS:[a}"',
        'tags: «wrong-type»"x${TAGS:[a]}"',
        'metadata: «wrong-type»"${DATA:[a]}"',
        'assertions: [«wrong-type»"${CHECK:a}"]',
    ],
)
def test_text_of_a_variable_that_is_no_such_list_or_mapping(expect: Expect, line: str) -> None:
    expect(suite_with(f"input: Hello\n{line}"))


def test_variables_in_jsonl_stay_text() -> None:
    (case,) = TestLoader(env={"X": "filled"}).load_string('{"id": "a", "input": "${X} and ${UNSET}"}').cases
    assert case.input == "${X} and ${UNSET}"
