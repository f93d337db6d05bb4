"""Assertions of all kinds: what each takes, in every dialect, and what is wrong with one."""

from typing import Any

import pytest
from tests.loader.shop import HEAD, Expect

from atp.loader import Loaded, TestLoader
from atp.loader.outline import assertion_outline
from atp.suite import ASSERTIONS, Assertion


def yaml_with(*assertions: str) -> str:
    listed = "".join(f"      - {one}\n" for one in assertions)
    return f"{HEAD}tests:\n  - id: one\n    name: One\n    input: Hello\n    assertions:\n{listed}"


def assertions_of(loaded: Loaded) -> list[Assertion]:
    assert loaded.suite is not None
    return loaded.suite.cases[0].assertions


FORMS: dict[str, list[str]] = {
    "equals": ["value: OK", "value: null", "value: {a: [1, true]}", "value: {$gt: 3}"],
    "contains": ["value: ok", "value: {a: 1}", "value: ok, ignore_case: true"],
    "not_contains": ["value: ok", "value: [1]", "value: ok, ignore_case: true"],
    "snapshot": ["match: text", "match: json, ignore: [$.id]", "match: tools"],
    "regex": [r"pattern: 'order-\d+'", "value: x"],
    "json_path": [
        "path: $.a",
        "path: a.b",
        "path: 'a[0].b'",
        "path: '[0]'",
        "path: $..a, value: [1, 2]",
        "path: a, value: null",
    ],
    "type": [f"value: {name}" for name in ("string", "number", "integer", "boolean", "object", "array", "'null'")]
    + ["value: number, path: $.count"],
    "json_schema": [
        "schema: {type: object}",
        "value: {type: object}, path: $.a",
        "schema: {properties: {requird: {}, tpye: true}, $ref: '#', note: x, example: y, x-item: z, required: [q]}",
    ],
    "tool_called": [
        "name: search",
        "value: search",
        "name: search, arguments: {q: {$regex: '^a'}}, times: 0, before: a, after: b",
        "value: [search, read]",
    ],
    "not_tool_called": ["name: rm", "value: rm, arguments: {path: /}", "name: [rm, mv]"],
    "tool_result": [
        "name: t, value: {a: 1}",
        "name: t, contains: x",
        "name: t, matches: x",
        "name: t, path: a, status: error",
    ],
    "tool_order": ["tools: [a, b]", "value: [a]", "tool_order: [a]"],
    "artifact_exists": [
        "path: a.txt",
        "path: '*.csv', contains: x, matches: y, json_schema: {}, min_bytes: 3",
        f"path: a, sha256: {'aB' * 32}",
    ],
    "behavior": [
        "check: no_repeated_actions, max_repeats: 1",
        "check: efficient_tool_use, max_redundant_calls: 2, max_tool_calls: 5",
        "check: no_errors, allow_recovered: true",
        "must_use_tools: [a], forbidden_tools: [b], min_tool_calls: 1, max_tool_calls: 3, tool_order: [a, c]",
    ],
    "llm_eval": ["criteria: completeness", "criteria: is polite, threshold: 0.5, judge: gpt, votes: 3, path: a.md"],
    "agent": ["use: 'agents:workers.test.validator'", "use: 'agents:v', options: {metadata: {criteria: c}}, value: 1"],
    "script": ["script: scripts.test.Assert", "use: 'scripts:tests.validate-expense', options: {metadata: {min: 1}}"],
    "all_of": ["assertions: [{type: equals, value: 1}]", "assert: [{type: equals, value: 1}]"],
    "any_of": [
        "assertions: [{type: all_of, assertions: [{type: regex, pattern: x}]}, {type: equals, config: {value: 1}}]"
    ],
    "none_of": ["assertions: [{type: tool_called, name: rm}]"],
    "at_least": ["k: 2, assertions: [{type: equals, value: 1}, {type: equals, value: 2}, {type: equals, value: 3}]"],
}
"""Every kind of assertion in its accepted forms."""


def test_all_registered_kinds_are_covered_here() -> None:
    assert set(FORMS) == set(ASSERTIONS.names)


@pytest.mark.parametrize("kind", FORMS)
def test_flat_and_in_config_mean_the_same(expect: Expect, kind: str) -> None:
    flat = assertions_of(expect(yaml_with(*(f"{{type: {kind}, {form}}}" for form in FORMS[kind]))))
    nested = assertions_of(expect(yaml_with(*(f"{{type: {kind}, config: {{{form}}}}}" for form in FORMS[kind]))))
    assert flat == nested
    assert {one.type for one in flat} == {kind}


@pytest.mark.parametrize("kind", FORMS)
def test_every_kind_takes_the_common_keys(expect: Expect, kind: str) -> None:
    common = "critical: true, weight: 2, message: Oh no, negate: true"
    (one,) = assertions_of(expect(yaml_with(f"{{type: {kind}, {FORMS[kind][0]}, {common}}}")))
    assert (one.critical, one.weight, one.message, one.negate) == (True, 2, "Oh no", True)


def test_yaml_takes_assert_and_a_single_object_too(expect: Expect) -> None:
    single = expect(f"{HEAD}tests: [{{id: a, name: A, input: x, assert: {{type: equals, value: 1}}}}]\n")
    assert assertions_of(single) == assertions_of(expect(yaml_with("{type: equals, value: 1}")))


@pytest.mark.parametrize(
    "one",
    [
        # equals and matchers
        "«missing-key»{type: equals}",
        "{type: equals, value: «matcher»{$grt: 3}}",
        "{type: equals, value: «matcher»{deep: [{$nonsense: 3}]}}",
        "{type: equals, value: «matcher»{$regex: '('}}",
        "{type: equals, value: «matcher»{$regex: 7}}",
        "{type: equals, value: «matcher»{$gt: true}}",
        "{type: equals, value: «matcher»{$lte: [1]}}",
        "{type: equals, value: «matcher»{$in: 3}}",
        "{type: equals, value: «matcher»{$length: x}}",
        "{type: equals, value: «matcher»{$any: false}}",
        "{type: json_path, path: a, value: «matcher»{$lenght: 3}}",
        "{type: tool_called, name: t, arguments: «matcher»{a: {$nt: 3}}}",
        "{type: tool_result, name: t, value: «matcher»{$nt: 3}}",
        # contains
        "«missing-key»{type: contains}",
        "{type: contains, value: x, ignore_case: «wrong-type»maybe}",
        # regex
        "{type: regex, pattern: «regex»'('}",
        "{type: regex, value: «regex»'*'}",
        "{type: regex, pattern: «wrong-type»7}",
        "«missing-key»{type: regex}",
        # json_path, type, json_schema
        "{type: json_path, path: «json-path»\"$[?match(@.a, '(')]\"}",
        "{type: json_path, path: «json-path»\"$.b[?!(@.a == 1 && count(@[?search(@, '[')]) > 1)]\"}",
        "«missing-key»{type: json_path}",
        "{type: json_path, path: «json-path»'$.a['}",
        "{type: type, value: «bad-value»strng}",
        "{type: type, value: string, path: «json-path»'$$'}",
        "{type: json_schema, schema: «json-schema»{type: objct}}",
        "{type: json_schema, schema: «json-schema»{requird: [a]}}",
        "{type: json_schema, schema: «json-schema»{properties: {a: {tpye: string}}}}",
        "{type: json_schema, schema: «json-schema»{anyOf: [{items: {$defs: {a: {maxlength: 3}}}}]}}",
        "{type: artifact_exists, path: a, json_schema: «json-schema»{propertys: {}}}",
        "{type: json_schema, schema: «wrong-type»object}",
        "«missing-key»{type: json_schema}",
        # tools
        "«missing-key»{type: tool_called}",
        "{type: tool_called, name: «empty»''}",
        "{type: tool_called, name: «empty»[]}",
        "{type: tool_called, name: [a, «empty»'']}",
        "{type: tool_called, name: «wrong-type»1}",
        "{type: tool_called, name: t, times: «out-of-range»-1}",
        "{type: tool_called, name: t, times: «wrong-type»once}",
        "{type: tool_called, name: t, arguments: «wrong-type»[a]}",
        "{type: tool_result, name: t, status: «bad-value»ok}",
        "{type: tool_order, tools: «empty»[]}",
        "{type: tool_order, tools: «wrong-type»a}",
        # artifacts
        "«missing-key»{type: artifact_exists}",
        "{type: artifact_exists, path: «empty»''}",
        "{type: artifact_exists, path: a, matches: «regex»'['}",
        "{type: artifact_exists, path: a, sha256: «bad-value»abc}",
        "{type: artifact_exists, path: a, min_bytes: «out-of-range»-1}",
        # behaviour
        "«missing-check»{type: behavior}",
        "{type: behavior, check: «unknown-check»no_error}",
        "{type: behavior, config: {check: «unknown-check»be_nice}}",
        "{type: behavior, check: no_errors, max_repeats: «out-of-range»-1}",
        "{type: behavior, check: no_errors, max_repeats: «without-effect»1}",
        "{type: behavior, config: {check: no_repeated_actions, allow_recovered: «without-effect»true}}",
        "{type: behavior, max_tool_calls: 3, max_redundant_calls: «without-effect»1}",
        # judges
        "«missing-key»{type: llm_eval}",
        "{type: llm_eval, criteria: x, threshold: «out-of-range»1.5}",
        "{type: llm_eval, config: {criteria: x, threshold: «wrong-type»high}}",
        "{type: llm_eval, criteria: x, votes: «out-of-range»0}",
        "{type: agent, use: «reference»workers.test.validator}",
        "{type: agent, use: «reference»'scripts:a.b'}",
        "{type: script, use: «reference»'agents:a.b'}",
        "{type: script, script: «reference»test}",
        "{type: script, script: «reference»scripts.test}",
        # groups
        "«missing-key»{type: all_of}",
        "{type: any_of, assertions: «empty»[]}",
        "{type: none_of, assertions: [{type: «unknown-assertion»equal, value: 1}]}",
        "{type: any_of, assertions: [{type: equals, value: 1}, {type: regex, pattern: «regex»'('}]}",
        "«unreachable»{type: at_least, k: 2, assertions: [{type: equals, value: 1}]}",
        "«missing-key»{type: at_least, assertions: [{type: equals, value: 1}]}",
        "{type: at_least, k: «out-of-range»0, assertions: [{type: equals, value: 1}]}",
        # all of them
        "«missing-key»{value: 1}",
        "{type: «unknown-assertion»equal, value: 1}",
        "{type: «unknown-assertion»null, value: 1}",
        "«wrong-type»equals",
        "{type: equals, value: 1, weight: «out-of-range»-1}",
        "{type: equals, value: 1, negate: «wrong-type»maybe}",
        "{type: equals, value: 1, critical: «wrong-type»2}",
        "{type: equals, value: 1, message: «wrong-type»7}",
        "{type: equals, config: «wrong-type»[1]}",
        "{type: equals, value: 1, «empty»config: null}",
    ],
)
def test_a_wrong_assertion_is_an_error_at_its_place_and_the_others_are_kept(expect: Expect, one: str) -> None:
    found = assertions_of(expect(yaml_with("{type: contains, value: before}", one, "{type: contains, value: after}")))
    kept = [assertion_outline(each)["value"] for each in found if each.type == "contains"]
    assert (kept[0], kept[-1]) == ("before", "after")


def test_matchers_that_exist(expect: Expect) -> None:
    matchers = (
        "{$any: true}, {$contains: a}, {$gt: 1}, {$gte: a}, {$in: [1]}, {$length: 3}, {$length: {$gt: 2}}, "
        "{$literal: {$foo: 1}}, {$lt: 1, $gt: 0}, {$lte: 1.5}, {$ne: null}, {$not_in: [1]}, {$regex: '^a'}, "
        "{$type: string}"
    )
    expect(yaml_with(f"{{type: equals, value: [{matchers}]}}"))


def test_a_pattern_that_python_only_warns_of_is_fine(expect: Expect) -> None:
    expect(yaml_with("{type: regex, pattern: '[[a]'}", "{type: equals, value: {$regex: '[a||b]'}}"))


def test_an_object_with_other_keys_beside_is_data(expect: Expect) -> None:
    expect(yaml_with("{type: equals, value: {$ref: a, name: b}}"))


def test_an_unknown_matcher_gets_a_suggestion(expect: Expect) -> None:
    (one,) = expect(yaml_with("{type: equals, value: «matcher»{$regexp: a}}")).diagnostics
    assert (one.message, one.hint) == ("`value`: unknown matcher `$regexp`", "did you mean `$regex`?")


@pytest.mark.parametrize(
    "one",
    [
        "{type: contains, value: «matcher»{$regex: 'h.*o'}}",
        "{type: not_contains, value: «matcher»{$regex: 'h.*o'}}",
        "{type: not_contains, value: «matcher»{a: [{$foo: 1}]}}",
        "{type: not_contains, value: «matcher»{$gt: 1, y: 2}}",
        "{type: tool_result, name: t, contains: «matcher»{$gt: 1}}",
    ],
)
def test_a_matcher_where_none_is_tried_is_an_error(expect: Expect, one: str) -> None:
    (told,) = expect(yaml_with(one)).diagnostics
    assert told.hint is not None
    assert "`json_path`" in told.hint
    assert "`regex`" in told.hint


@pytest.mark.parametrize(
    "one",
    [
        "{type: equals, value: «matcher»{$gt: 1, y: 2}}",
        "{type: equals, value: «matcher»{y: {z: 1, $regexp: a}}}",
        "{type: json_path, path: a, value: «matcher»[{$any: true, y: 2}]}",
        "{type: not_tool_called, name: t, arguments: «matcher»{$gt: 1, y: 2}}",
        "{type: equals, value: «matcher»{$in: []}}",
        "{type: equals, value: «matcher»{$not_in: []}}",
    ],
)
def test_a_matcher_that_could_not_be_meant_is_an_error(expect: Expect, one: str) -> None:
    expect(yaml_with(one))


def test_a_literal_may_hold_what_looks_like_a_matcher(expect: Expect) -> None:
    expect(
        yaml_with(
            "{type: equals, value: {$literal: {$gt: 1, y: 2}}}",
            "{type: contains, value: {$literal: {$gt: 1}}}",
            "{type: not_contains, value: {a: {$literal: {$gt: 1}}}}",
        )
    )


@pytest.mark.parametrize("key", ["must_use_tools", "forbidden_tools", "tool_order"])
def test_a_rule_about_no_tools_is_an_error(expect: Expect, key: str) -> None:
    expect(yaml_with(f"{{type: behavior, {key}: «empty»[]}}"))


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("[«wrong-type»contains]", '{"type": "contains", "value": "…"}'),
        ("«wrong-type»contains x y", '{"type": "contains", "value": "x y"}'),
        ("«wrong-type»the answer is 4", '{"type": "contains", "value": "…"}'),
        ("[«wrong-type»5]", '{"type": "contains", "value": "…"}'),
        ("[{type: any_of, assertions: [«wrong-type»regex a+]}]", '{"type": "regex", "value": "a+"}'),
    ],
)
def test_an_assertion_that_is_no_mapping_is_told_how_to_be_one(expect: Expect, given: str, hint: str) -> None:
    (one,) = expect(f"{HEAD}tests: [{{id: one, name: One, input: Hello, assertions: {given}}}]\n").diagnostics
    assert "must be a mapping with `type`" in one.message
    assert one.hint == f"write it as {hint}"


def test_a_checkpoints_assertion_that_is_no_mapping(expect: Expect) -> None:
    (one,) = expect(
        '{"id": "a", "simulator": {"use": "s"}, "checkpoints": [{"id": "c", "assert": «wrong-type»"contains x"}]}'
    ).diagnostics
    assert one.message == "`assert` must be a mapping with `type`, found the text 'contains x'"
    assert one.hint == 'write it as {"type": "contains", "value": "x"}'


def test_an_unknown_type_gets_a_suggestion_or_the_list(expect: Expect) -> None:
    near, far = expect(
        yaml_with("{type: «unknown-assertion»tool_caled}", "{type: «unknown-assertion»magic}")
    ).diagnostics
    assert near.hint == "did you mean `tool_called`?"
    assert far.hint is not None
    assert far.hint.startswith("one of: agent, all_of, any_of, ")


def test_llm_eval_threshold_defaults_to_0_7() -> None:
    suite = TestLoader().load_string(yaml_with("{type: llm_eval, criteria: completeness}"))
    outline: Any = suite.cases[0].assertions[0]
    assert outline.threshold == 0.7


def test_a_null_that_is_expected_is_told_from_nothing_expected() -> None:
    suite = TestLoader().load_string(yaml_with("{type: json_path, path: a, value: null}", "{type: json_path, path: a}"))
    null, nothing = suite.cases[0].assertions
    assert assertion_outline(null) == {"type": "json_path", "path": "a", "value": None}
    assert assertion_outline(nothing) == {"type": "json_path", "path": "a"}
