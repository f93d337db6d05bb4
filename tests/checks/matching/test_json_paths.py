"""`json_path`, `type`, `json_schema` (rulings §4)."""

from collections.abc import Callable
from typing import Any

import hypothesis
import jsonpath_rfc9535
import pytest
from hypothesis import example, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.checks.conftest import make_assertion

from atp.base.json.found import MISSING
from atp.checks.matching.json_paths import look_up, names_one_place
from atp.checks.matching.patterns import TooSlow, allow_searching
from atp.suite.paths import JsonPathText, full_path
from atp.suite.result import Verdict

Judge = Callable[..., Verdict]

DATA = {
    "status": "ok",
    "count": 3,
    "ratio": 1.0,
    "flag": True,
    "nothing": None,
    "empty": [],
    "one": ["x"],
    "items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2}],
    "a b": {"it's": "quoted"},
}


@pytest.mark.parametrize(
    ("path", "value", "holds"),
    [
        ("$.status", "ok", True),
        ("status", "ok", True),
        ("items[0].id", 1, True),
        ("$['a b']['it\\'s']", "quoted", True),
        ("$.items[-1].id", 2, True),
        ("$.status", "no", False),
        ("$.ratio", 1, True),
        ("$.flag", 1, False),
        ("$.count", True, False),
        # A null matches a null, not a missing place.
        ("$.nothing", None, True),
        ("$.missing", None, False),
        ("$.status", None, False),
        ("$.items[7]", None, False),
        ("$.status.deeper", None, False),
        # One place gives its value …
        ("$.one", ["x"], True),
        ("$.one", "x", False),
        ("$.items", [{"id": 1, "tags": ["a", "b"]}, {"id": 2}], True),
        # … any other path the list of its nodes, a list of one counting as its element.
        ("$.items[*].id", [1, 2], True),
        ("$.items[*].id", [2, 1], False),
        ("$.items[*].id", 1, False),
        ("$.one[*]", "x", True),
        ("$.one[*]", ["x"], True),
        ("$..tags", ["a", "b"], True),
        ("$..tags", [["a", "b"]], True),
        ("$.items[?@.id == 2].id", 2, True),
        ("$.items[?search(@.tags[0], 'a')].id", 1, True),
        ("$.items[?match(@.tags[0], 'A')].id", 1, False),
        # A list against a single result means one of them.
        ("$.status", ["ok", "fine"], True),
        ("$.status", ["bad", "fine"], False),
        ("$.count", [1, {"$gt": 2}], True),
        ("$.nothing", [None, 1], True),
        ("$.missing", [None], False),
        ("$.count", [], False),
        # Nothing found by a path that could find many: an empty list, and no value.
        ("$.empty[*]", [], True),
        ("$.empty[*]", None, False),
        ("$.empty[*]", {"$length": 0}, True),
        ("$.empty[*]", {"$any": True}, False),
        ("$.empty[*]", {"$ne": 3}, False),
        ("$.missing", [], False),
        ("$.missing", {"$ne": 3}, False),
        ("$.missing", {"$any": True}, False),
        ("$.items[*].id", {"$length": 2}, True),
        ("$.count", {"$gt": 2, "$lt": 4}, True),
        ("$.status", {"$regex": "^o"}, True),
        ("$.items[0]", {"id": {"$type": "integer"}, "tags": {"$length": 2}}, True),
        ("$.items[0]", {"id": 1}, False),
    ],
)
def test_json_path_with_a_value(judge: Judge, path: str, value: Any, holds: bool) -> None:
    verdict = judge({"type": "json_path", "path": path, "value": value}, DATA)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("$.status", True),
        ("$.nothing", True),
        ("$.empty", True),
        ("$.missing", False),
        ("$.items[1]", True),
        ("$.items[2]", False),
        ("$.items[*].tags", True),
        ("$.empty[*]", False),
        ("$..nowhere", False),
        ("$", True),
    ],
)
def test_json_path_without_a_value_means_exists(judge: Judge, path: str, holds: bool) -> None:
    assert judge({"type": "json_path", "path": path}, DATA).passed is holds


@pytest.mark.parametrize("output", ["just words", "", None])
def test_text_without_json_fails(judge: Judge, output: Any) -> None:
    for given in ({}, {"value": None}, {"value": {"$any": True}}):
        assert judge({"type": "json_path", "path": "$.a", **given}, output).outcome == "failed"


@pytest.mark.parametrize(
    "output",
    ['{"a": 5}', 'Sure!\n\n```json\n{"a": 5}\n```', '~~~\n{"a": 5}\n~~~', 'I found {"a": 5} for you', {"a": 5}],
)
def test_json_is_found_wherever_it_stands(judge: Judge, output: Any) -> None:
    assert judge({"type": "json_path", "path": "$.a", "value": 5}, output).passed


def test_the_verdict_names_path_and_values(judge: Judge) -> None:
    verdict = judge({"type": "json_path", "path": "$.items[0].id", "value": 9}, DATA)
    assert verdict.message == "expected $.items[0].id to be 9, found 1 there"
    assert (verdict.expected, verdict.found, verdict.where) == (9, 1, "output, $.items[0].id")


@pytest.mark.parametrize(
    ("wanted", "output", "holds"),
    [
        ("string", "text", True),
        ("string", '{"a": 1}', True),
        ("object", '{"a": 1}', True),
        ("object", 'prose {"a": 1} prose', True),
        ("object", "prose", False),
        ("array", "[1]", True),
        ("array", '{"a": 1}', False),
        ("number", 1.5, True),
        ("number", 1, True),
        ("number", "42", False),
        ("number", True, False),
        ("integer", 1, True),
        ("integer", 1.0, True),
        ("integer", 1.5, False),
        ("boolean", False, True),
        ("boolean", 0, False),
        ("null", None, True),
        ("null", "", False),
        ("array", [], True),
        ("object", {}, True),
    ],
)
def test_type(judge: Judge, wanted: str, output: Any, holds: bool) -> None:
    assert judge({"type": "type", "value": wanted}, output).outcome == ("passed" if holds else "failed")


@pytest.mark.parametrize(
    ("path", "wanted", "holds"),
    [
        ("$.count", "number", True),
        ("$.count", "integer", True),
        ("$.flag", "number", False),
        ("$.nothing", "null", True),
        ("$.missing", "null", False),
        ("$.items", "array", True),
        ("$.items[*].id", "array", True),
        ("$.one[*]", "string", True),
    ],
)
def test_type_at_a_path(judge: Judge, path: str, wanted: str, holds: bool) -> None:
    assert judge({"type": "type", "path": path, "value": wanted}, DATA).passed is holds


def test_type_at_a_path_needs_json(judge: Judge) -> None:
    assert judge({"type": "type", "path": "$.a", "value": "string"}, "words").outcome == "failed"


SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 1}}}


@pytest.mark.parametrize(
    ("schema", "output", "holds"),
    [
        (SCHEMA, {"id": 1}, True),
        (SCHEMA, 'found: {"id": 3}', True),
        (SCHEMA, {"id": 0}, False),
        (SCHEMA, {}, False),
        (SCHEMA, "no json", False),
        # A schema that says nothing of the type would hold for any text.
        ({"properties": {"id": {"type": "integer"}}}, "no json", False),
        ({}, "no json", False),
        ({"type": "string", "minLength": 3}, "no json", True),
        ({"type": "string", "pattern": "^y"}, "no json", False),
        ({"additionalProperties": False, "properties": {"a": {}}}, {"a": 1, "b": 2}, False),
        ({"additionalProperties": {"type": "integer"}}, {"a": "x"}, False),
        ({"patternProperties": {"^x_": {"type": "integer"}}, "additionalProperties": False}, {"x_a": 1}, True),
        ({"patternProperties": {"^x_": {"type": "integer"}}}, {"x_a": "1"}, False),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1.0}], False),
        ({"uniqueItems": True}, [1, True, "1"], True),
        ({"multipleOf": 0.1}, "0.3", True),
        ({"multipleOf": 0.1}, "0.35", False),
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 3}, 1e300, False),
        ({"multipleOf": 2}, "text", False),
        ({"type": "integer"}, "42", True),
        ({"type": "object"}, None, False),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}, 3, False),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "null"}}}, [], False),
    ],
)
def test_json_schema(judge: Judge, schema: Any, output: Any, holds: bool) -> None:
    verdict = judge({"type": "json_schema", "schema": schema}, output)
    assert verdict.outcome == ("passed" if holds else "failed"), verdict.message


def test_json_schema_at_a_path_says_where(judge: Judge) -> None:
    given = {"type": "json_schema", "schema": {"items": SCHEMA}, "path": "$.items"}
    assert judge(given, DATA).passed
    verdict = judge(given, {"items": [{"id": 1}, {"id": "x"}]})
    assert verdict.where == "output, $.items, $[1].id"
    assert 'found "x"' in verdict.message
    assert judge(given, {}).outcome == "failed"


def test_a_schema_elsewhere_is_not_fetched(judge: Judge) -> None:
    given = {"type": "json_schema", "schema": {"$ref": "http://localhost:9/schema.json"}}
    verdict = judge(given, {"id": 1})
    assert verdict.outcome == "unjudged"
    assert "schema.json" in verdict.message


def test_an_invalid_pattern_in_the_data_finds_nothing(judge: Callable[..., Verdict]) -> None:
    for pattern in ("[", "(?=a)"):
        found = [{"x": "a", "y": pattern}, {"x": 3, "y": pattern}]
        assert judge({"type": "json_path", "path": "$[?search(@.x, @.y)]"}, found).outcome == "failed"
    assert judge({"type": "json_path", "path": "$[?match(@.x, 'a.c')].x", "value": "abc"}, [{"x": "abc"}]).passed


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.用户", {"名前": [1, {"é": ".用户"}]}),
        ("用户.名前[0]", 1),
        ("$..名前[1].é", ".用户"),
        ("$.用户.名前[?@.é == '.用户'].é", ".用户"),
        ("$['用户']['名前'][0]", 1),
    ],
)
def test_member_names_beyond_ascii(judge: Judge, path: str, found: Any) -> None:
    output = {"用户": {"名前": [1, {"é": ".用户"}]}}
    assert judge({"type": "json_path", "path": path, "value": found}, output).passed


def test_a_path_that_is_none_says_why() -> None:
    with pytest.raises(ValidationError, match=r"expected '.', '..' or a bracketed selection, found 'b'"):
        make_assertion({"type": "json_path", "path": "$.a b"})


SEGMENTS = [
    *(
        ".status",
        ".items",
        "['a b']",
        "[0]",
        "[-1]",
        "[*]",
        ".*",
        "..*",
        "..id",
        "..[0]",
        "[::2]",
        "[1:0:-1]",
        "[0,'x']",
    ),
    *(
        "[?@.id == 2]",
        "[?@.id]",
        "[?!@.id]",
        "[?@.tags && @.id > 0 || @ == null]",
        "[?length(@) >= 1]",
        "[?count(@.*)>1]",
    ),
    *("[?match(@, 'o.')]", "[?search(@.tags[0], '[ab]+')]", "[?value(@..id) == 1]", "[?@[?@.id]]", "[?$.count == 3]"),
    *(
        ".用户",
        "['it\\'s']",
        '["\\u00e9"]',
        "[9007199254740991]",
        "[?@ < 'z']",
        " ",
        "$",
        "@",
        "[",
        "]",
        "?",
        "(",
        "'",
        "\\",
    ),
]
PATHS = st.tuples(st.sampled_from(["$", "", "items", "@"]), st.lists(st.sampled_from(SEGMENTS), max_size=4)).map(
    lambda parts: parts[0] + "".join(parts[1])
) | st.text(max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3) | st.just(DATA),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["status", "items", "id", "tags", "a b", "用户", "é"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_PATH: TypeAdapter[str] = TypeAdapter(JsonPathText)


def _accepted(path: str) -> list[str]:
    """The path, unless it is refused for being no JSONPath."""
    try:
        return [_PATH.validate_python(path)]
    except ValidationError as error:
        (why,) = error.errors()
    assert why["type"] == "json_path"
    return []


def check_path(path: str, value: Any) -> None:
    """A path is refused when it is loaded, or finds a value, several, or none within its time."""
    if path not in _accepted(path):
        return
    allow_searching()
    try:
        found = look_up(path, value)
    except TooSlow:
        return
    if names_one_place(path):
        nodes = jsonpath_rfc9535.find(full_path(path), value)
        assert found is MISSING if not nodes else found == nodes[0].value


@settings(max_examples=150)
@hypothesis.given(PATHS, VALUES)
@example("$" + "[?@" * 300 + "]" * 300, DATA)
@example("$" + ".a" * 3_000, DATA)
@example("$" + "..*" * 200, 1)
@example("$" + ".*" * 200, DATA)
@example("$" + "[?@" * 29 + ".a" + "]" * 29, DATA)
@example("$[?" + "(" * 28 + "@.a" + ")" * 28 + "]", DATA)
@example("$[?" + "!(" * 28 + "@.a" + ")" * 28 + "]", DATA)
@example("$[" + "9" * 5_000 + "]", DATA)
@example("$['\ud800']", {"\ud800": 1})
def test_any_path_is_refused_or_finds_values(path: str, value: Any) -> None:
    check_path(path, value)
