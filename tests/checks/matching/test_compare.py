"""Equality, subsets and matchers on any JSON value."""

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from atp.base.json.canonical import canonical
from atp.checks.matching.compare import contained, difference, equal, fits, has_type, type_of
from atp.checks.matching.json_paths import look_up
from atp.checks.verdicts import show, small

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=8)
JSON = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
SMALL = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 1.5, "", "a", "1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(JSON)
def test_a_value_equals_itself_and_its_way_through_json(value: Any) -> None:
    assert equal(value, value)
    assert equal(value, json.loads(json.dumps(value)))


@given(SMALL, SMALL)
def test_equality_is_that_of_the_canonical_text(one: Any, other: Any) -> None:
    assert equal(one, other) == (canonical(one) == canonical(other))
    assert equal(one, other) == equal(other, one)


@given(SMALL, SMALL, SMALL)
def test_equality_is_transitive(one: Any, two: Any, three: Any) -> None:
    if equal(one, two) and equal(two, three):
        assert equal(one, three)


@given(JSON)
def test_canonical_text_is_json_and_does_not_depend_on_order(value: Any) -> None:
    assert equal(json.loads(canonical(value)), value)

    def turned(one: Any) -> Any:
        if isinstance(one, dict):
            return {key: turned(one[key]) for key in reversed(list(one))}
        return [turned(item) for item in one] if isinstance(one, list) else one

    assert canonical(turned(value)) == canonical(value)


@given(JSON)
def test_true_is_never_one(value: Any) -> None:
    assert not equal([value, True], [value, 1])
    assert not equal({"a": 0}, {"a": False})


@given(st.dictionaries(TEXTS, JSON, max_size=3), st.dictionaries(TEXTS, JSON, max_size=3))
def test_an_object_is_a_subset_of_itself_with_more(value: dict[str, Any], more: dict[str, Any]) -> None:
    assert difference(value, {**more, **value}, subset=True, matchers=False) is None


@given(SMALL, SMALL)
def test_equal_values_are_subsets_of_each_other(one: Any, other: Any) -> None:
    if equal(one, other):
        assert difference(one, other, subset=True) is None


@given(st.lists(JSON, min_size=1, max_size=4), st.data())
def test_an_element_is_contained_in_its_list(values: list[Any], data: st.DataObject) -> None:
    assert contained(data.draw(st.sampled_from(values)), values)


@given(SMALL, SMALL)
def test_a_difference_says_where_it_is(expected: Any, actual: Any) -> None:
    found = difference(expected, actual, matchers=False)
    if found is None:
        return
    place = look_up(f"${found.path}", actual)
    assert equal(place, found.found) if not isinstance(place, type(found.found)) else True
    assert not equal(found.expected, found.found)


NUMBERS = st.integers() | st.floats(allow_nan=False)


@given(NUMBERS, NUMBERS)
def test_comparisons_of_numbers(operand: float, actual: float) -> None:
    assert fits({"$gt": operand}, actual) == (actual > operand)
    assert fits({"$gte": operand}, actual) == (actual >= operand)
    assert fits({"$lt": operand}, actual) == (actual < operand)
    assert fits({"$lte": operand}, actual) == (actual <= operand)
    assert fits({"$ne": operand}, actual) == (actual != operand)


@given(JSON, JSON)
def test_each_matcher_and_its_opposite_part_the_world(operand: Any, actual: Any) -> None:
    assume(not isinstance(operand, dict) or not any(key.startswith("$") for key in operand))
    assert fits({"$ne": {"$literal": operand}}, actual) != fits({"$literal": operand}, actual)
    literal = [{"$literal": operand}]
    assert fits({"$in": literal}, actual) != fits({"$not_in": literal}, actual)
    assert fits({"$any": True}, actual)
    assert fits({"$type": type_of(actual)}, actual)


@given(st.text() | st.lists(st.none()) | st.dictionaries(TEXTS, st.none()))
def test_length(actual: Any) -> None:
    assert fits({"$length": len(actual)}, actual)
    assert fits({"$length": {"$gte": len(actual)}}, actual)
    assert not fits({"$length": len(actual) + 1}, actual)


@given(JSON)
def test_every_value_has_exactly_one_type_but_integers_are_numbers(value: Any) -> None:
    names = ("string", "number", "integer", "boolean", "object", "array", "null")
    found = [name for name in names if has_type(value, name)]
    assert found == ["number", "integer"] or len(found) == 1


@given(JSON, st.integers(10, 80))
def test_what_is_shown_is_the_beginning_of_the_json(value: Any, most: int) -> None:
    whole = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else None
    text = show(value, most)
    big = any(isinstance(one, int) and one.bit_length() > 64 for one in _leaves(value))
    if whole is not None and not big:
        assert text == whole if len(whole) <= most else text == f"{whole[: most - 1]}…"


@given(JSON)
def test_a_small_value_is_kept_as_it_is(value: Any) -> None:
    kept = small(value, 40)
    if isinstance(value, str):
        assert kept == value
    elif not isinstance(kept, str):
        assert kept is value or equal(kept, value)
    else:
        assert len(kept) <= 40


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, list) else [value]


def test_what_cannot_be_json_is_shown_all_the_same() -> None:
    assert "object" in show([object()])
    endless: list[Any] = []
    endless.append(endless)
    assert show(endless, 50).startswith("[[[[")
    assert small(1 << 100_000) == "a number of 100001 bits"
    assert small("x" * 301) == "x" * 299 + "…"
    assert small({"a": "x" * 400}).startswith('{"a": "xxx')


def test_a_matcher_that_nobody_knows_is_no_match_but_an_error() -> None:
    with pytest.raises(ValueError, match="unknown matcher"):
        fits({"$greater": 3}, 4)
