"""`contains`, `not_contains`, `regex` (rulings §4)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from atp.suite.result import Turn, Verdict

Judge = Callable[..., Verdict]

CASES: list[tuple[Any, Any, bool]] = [
    # A string is searched in the output's text …
    ("world", "hello world", True),
    ("World", "hello world", False),
    ("world", "", False),
    ("world", None, False),
    # … or, where the output is JSON, in its canonical JSON text.
    ("need_search", {"need_search": True}, True),
    ('"a":1', {"b": 2, "a": 1}, True),
    ('{"a":1,"b":2}', {"b": 2, "a": 1}, True),
    ("AI tools", ["the AI tools of today"], True),
    ("grün", {"farbe": "grün"}, True),
    ('say "hi"', {"text": 'say "hi" twice'}, True),
    ("line\nbreak", {"text": "a line\nbreak"}, True),
    ("true", {"a": True}, True),
    ('"a":1', '{"b": 2, "a": 1}', True),
    ('"a": 1', '{"b": 2, "a": 1}', True),
    ('"a":1', 'so {"b": 2, "a": 1}', False),
    # An object is a recursive subset.
    ({"a": 1}, {"a": 1, "b": 2}, True),
    ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, True),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ({"a": 1}, {"a": True}, False),
    ({"a": 1}, {"a": 1.0}, True),
    ({"a": None}, {}, False),
    ({"a": None}, {"a": None}, True),
    ({"tags": ["x"]}, {"tags": ["w", "x"]}, True),
    ({"tags": ["x"]}, {"tags": []}, False),
    ({"tags": []}, {"tags": []}, True),
    ({"tags": []}, {"tags": ["x"]}, False),
    ({"a": 1}, 'Result: {"a": 1, "b": 2}', True),
    ({"a": 1}, "no json here", False),
    ({"$literal": {"$gt": 1}}, {"$gt": 1, "x": 2}, True),
    ({"$literal": {"$gt": 1}}, 5, False),
    ({"a": {"$literal": {"$gt": 1}}}, {"a": {"$gt": 1}, "b": 2}, True),
    # On a list, membership.
    ("x", ["x", "y"], True),
    (2, [1, 2], True),
    (4, [42], False),
    (1, [True], False),
    (None, [None], True),
    (None, [], False),
    ({"a": 1}, [{"a": 1, "b": 2}], True),
    ({"a": 1}, [{"a": 2}], False),
    ([1], [[1], [2]], True),
    ([1, 2], [3, 2, 1], True),
    ([1, 4], [1, 2], False),
    (2, "[1, 2]", True),
    (4, "[42]", False),
    (4, '{"answer": 42}', False),
    (42, '{"answer": 42}', True),
    # Other single values: as text in text, as a value in an object.
    (42, "the answer is 42", True),
    (42, {"answer": {"n": 42}}, True),
    (4, {"answer": 42}, False),
    (True, {"answer": 1}, False),
]


@pytest.mark.parametrize(("value", "output", "holds"), CASES)
def test_contains(judge: Judge, value: Any, output: Any, holds: bool) -> None:
    assert judge({"type": "contains", "value": value}, output).outcome == ("passed" if holds else "failed")


@pytest.mark.parametrize(("value", "output", "holds"), CASES)
def test_not_contains_is_the_opposite(judge: Judge, value: Any, output: Any, holds: bool) -> None:
    assert judge({"type": "not_contains", "value": value}, output).outcome == ("failed" if holds else "passed")


@pytest.mark.parametrize(
    ("value", "output", "holds"),
    [
        ("HELLO", "hello", True),
        ("STRASSE", "Straße", True),
        ({"NAME": "bob"}, {"name": "Bob"}, True),
        (["Bob"], ["BOB", "eve"], True),
        ("bye", "hello", False),
    ],
)
def test_letter_case_can_be_ignored(judge: Judge, value: Any, output: Any, holds: bool) -> None:
    assert judge({"type": "contains", "value": value, "ignore_case": True}, output).passed is holds
    assert judge({"type": "not_contains", "value": value, "ignore_case": True}, output).passed is not holds


@pytest.mark.parametrize("before", ["", " \r\n", "\ufeff", "\ufeff \n"])
def test_json_is_read_behind_blanks_and_a_byte_order_mark(judge: Judge, before: str) -> None:
    text = before + json.dumps({"a": "größe"})
    assert judge({"type": "contains", "value": "größe"}, text).passed
    assert judge({"type": "regex", "pattern": "größe"}, text).passed
    assert not judge({"type": "not_contains", "value": "größe"}, text).passed


def test_not_contains_shows_what_it_found(judge: Judge) -> None:
    verdict = judge({"type": "not_contains", "value": "secret"}, "x" * 5000 + " the secret is out")
    assert "the secret is out" in verdict.found
    assert len(verdict.found) <= 300


def test_the_last_answer_is_the_output(judge: Judge) -> None:
    turns = [Turn(turn=1, input="a", output="first"), Turn(turn=2, input="b", output="second")]
    assert judge({"type": "contains", "value": "second"}, turns=turns).where == "turn 2"
    assert judge({"type": "contains", "value": "first"}, turns=turns).outcome == "failed"
    assert judge({"type": "contains", "value": "first"}, turns=turns, turn=1).passed


@pytest.mark.parametrize("key", ["pattern", "value"])
@pytest.mark.parametrize(
    ("pattern", "output", "holds"),
    [
        (r"\d{3}-\d{4}", "call 555-1234 now", True),
        (r"^\d+$", "42", True),
        (r"^\d+$", "42 apples", False),
        (r"(?i)HELLO", "say hello", True),
        (r'"a":1\b', {"b": 2, "a": 1}, True),
        (r'"a":1\b', '{"b": 2, "a": 1}', True),
        (r"x", None, False),
        (r"^$", None, True),
        (r"(?P<year>\d{4})-(?P=year)", "2024-2024", True),
        (r"(?<=\$)\d+", "costs $30", True),
        # `regex` would read these two as something else than `re` does.
        (r"x{e}", "y", False),
        (r"x{e}", "x{e}", True),
    ],
)
def test_regex_searches_the_same_text(judge: Judge, key: str, pattern: str, output: Any, holds: bool) -> None:
    assert judge({"type": "regex", key: pattern}, output).passed is holds


def test_regex_says_what_matched(judge: Judge) -> None:
    verdict = judge({"type": "regex", "pattern": r"EXP-\d+"}, "Reference EXP-17.")
    assert verdict.found == "EXP-17"
    assert "character 10" in verdict.message
