"""`equals`, and `expected` alone: JSON values compared (rulings §4)."""

from collections.abc import Callable
from typing import Any

import pytest

from atp.suite.result import Verdict

Judge = Callable[..., Verdict]


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("OK", "OK"),
        ("", ""),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}),
        (1, 1.0),
        ([1, 2], [1.0, 2.0]),
        (None, None),
        (True, True),
        ({"need_search": False}, '{"need_search": false}'),
        ({"need_search": False}, 'Here:\n```json\n{"need_search": false}\n```\nDone.'),
        ({"need_search": False}, 'I think {"need_search": false} is right.'),
        ([1, 2], "[1, 2]"),
        (42, "42"),
        (42, " 42\n"),
        (True, "true"),
        (None, "null"),
        ({}, {}),
        ([], []),
        (10**30, 10**30),
    ],
)
def test_the_same_value_is_equal(judge: Judge, value: Any, output: Any) -> None:
    assert judge({"type": "equals", "value": value}, output).passed


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("OK", "OK "),
        ("OK", "ok"),
        ("42", 42),
        (42, "forty-two"),
        (1, True),
        (True, 1),
        (0, False),
        (False, 0),
        ([1], [True]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ([1, 1], [1]),
        (None, ""),
        (None, "nothing"),
        ("", None),
        ("null", None),
        ({"a": 1}, '{"a": 1, "b'),
        ("OK", '"OK"'),
        ({}, []),
        (0, None),
        ({"a": None}, {}),
    ],
)
def test_another_value_is_not(judge: Judge, value: Any, output: Any) -> None:
    verdict = judge({"type": "equals", "value": value}, output)
    assert verdict.outcome == "failed"
    assert verdict.message


@pytest.mark.parametrize(
    ("value", "output", "said", "where"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "expected 2 at $.a.b[1], found 3", "output, $.a.b[1]"),
        ({"a": 1}, {}, "expected 1 at $.a, found nothing", "output, $.a"),
        ({}, {"a b": 1}, "unexpected 1 at $['a b']", "output, $['a b']"),
        ([1], [1, 2], "unexpected 2 at $[1]", "output, $[1]"),
        ("a b", "a  b\n", "they differ only in blanks", "output"),
        ({"a": 1}, "sorry", 'found no JSON in "sorry"', "output"),
    ],
)
def test_the_verdict_says_where_and_what(judge: Judge, value: Any, output: Any, said: str, where: str) -> None:
    verdict = judge({"type": "equals", "value": value}, output)
    assert said in verdict.message
    assert verdict.where == where


MATCHERS: list[tuple[Any, Any, bool]] = [
    ({"$any": True}, "anything", True),
    ({"$any": True}, None, True),
    ({"$regex": "^ok"}, "ok then", True),
    ({"$regex": "^ok"}, "not ok", False),
    ({"$regex": "4"}, 42, False),
    ({"$gt": 3}, 4, True),
    ({"$gt": 3}, 3, False),
    ({"$gt": 3}, "5", True),
    ({"$gt": 3}, "five", False),
    ({"$gt": "a"}, "b", True),
    ({"$gt": 0}, True, False),
    ({"$gte": 3}, 3, True),
    ({"$lt": 3}, 2.5, True),
    ({"$lte": 3}, 3.1, False),
    ({"$gt": 1, "$lt": 3}, 2, True),
    ({"$gt": 1, "$lt": 3}, 3, False),
    ({"$ne": 5}, 6, True),
    ({"$ne": 5}, 5.0, False),
    ({"$ne": 5}, "5", False),
    ({"$ne": "5"}, "5", False),
    ({"$ne": 1}, True, True),
    ({"$in": [1, 2]}, 2, True),
    ({"$in": [1, 2]}, "2", True),
    ({"$in": ["yes", "no"]}, "yes", True),
    ({"$in": ["yes", "no"]}, "maybe", False),
    ({"$in": [{"$gt": 5}, None]}, 7, True),
    ({"$not_in": [1, 2]}, "2", False),
    ({"$not_in": [1, 2]}, 3, True),
    ({"$type": "string"}, "hello", True),
    ({"$type": "object"}, 'so: {"a": 1}', True),
    ({"$type": "number"}, 3, True),
    ({"$type": "integer"}, 3.5, False),
    ({"$type": "boolean"}, 1, False),
    ({"$type": ["string", "null"]}, None, True),
    ({"$contains": "ell"}, "hello", True),
    ({"$contains": "ell"}, "goodbye", False),
    ({"$contains": 2}, [1, 2], True),
    ({"$contains": {"$gt": 5}}, [1, 7], True),
    ({"$contains": {"$gt": 5}}, [1, 3], False),
    ({"$contains": {"a": 1}}, {"a": 1, "b": 2}, True),
    ({"$length": 5}, "hello", True),
    ({"$length": 3}, [1, 2, 3], True),
    ({"$length": 3}, "[1, 2, 3]", True),
    ({"$length": {"$gte": 2}}, {"a": 1}, False),
    ({"$length": 0}, 7, False),
    ({"$literal": {"$gt": 3}}, {"$gt": 3}, True),
    ({"$literal": {"$gt": 3}}, 4, False),
]


@pytest.mark.parametrize(("matcher", "output", "fits"), MATCHERS)
def test_a_matcher_stands_for_all_that_fits(judge: Judge, matcher: Any, output: Any, fits: bool) -> None:
    assert judge({"type": "equals", "value": matcher}, output).passed is fits


@pytest.mark.parametrize(("matcher", "output", "fits"), [one for one in MATCHERS if not isinstance(one[1], str)])
def test_a_matcher_works_inside_a_value(judge: Judge, matcher: Any, output: Any, fits: bool) -> None:
    assert judge({"type": "equals", "value": {"deep": [matcher]}}, {"deep": [output]}).passed is fits


def test_a_matcher_does_not_stand_for_nothing(judge: Judge) -> None:
    assert judge({"type": "equals", "value": {"a": {"$any": True}}}, {}).outcome == "failed"
    assert judge({"type": "equals", "value": {"a": {"$ne": 1}}}, {}).outcome == "failed"


def test_expected_is_cut_to_a_readable_size(judge: Judge) -> None:
    verdict = judge({"type": "equals", "value": "x"}, "y" * 10_000)
    assert len(verdict.found) == 300
    assert verdict.found.endswith("…")
    assert len(verdict.message) < 400
