"""Expected against found, line by line."""

import json
from typing import Any

import pytest

from atp.report.differences import MOST_SHOWN, WIDEST, compared_values, difference
from atp.suite.result import CaseResult, Transcript, TrialResult, Turn, Verdict

WORDS = (
    "The cheapest hotel near the congress centre costs 142 EUR a night, and it is a walk of 25 minutes away from it. "
)


def changed(expected: Any, found: Any) -> tuple[list[str], list[str]]:
    lines = difference(expected, found) or []
    return [text for sign, text in lines if sign == "-"], [text for sign, text in lines if sign == "+"]


def test_lines_that_differ_stand_with_their_neighbours() -> None:
    before = "\n".join(f"line {number}" for number in range(9))
    lines = difference(before, before.replace("line 4", "LINE 4"))
    assert lines == [
        *((" ", f"line {number}") for number in (2, 3)),
        ("-", "line 4"),
        ("+", "LINE 4"),
        *((" ", f"line {number}") for number in (5, 6)),
    ]


def test_a_long_line_is_shown_from_shortly_before_the_difference() -> None:
    text = WORDS * 20
    (before,), (after,) = changed(text + "yes" + WORDS, text + "no" + WORDS)
    assert before.startswith("…")
    assert after.startswith("…")
    assert "yes" in before
    assert "no" in after
    assert max(len(before), len(after)) <= WIDEST


def test_objects_differ_by_key_whatever_their_order() -> None:
    before = {"trip": "Lisbon", "total": 630.9, "items": list(range(20))}
    after = {"items": list(range(20)), "total": 612.4, "trip": "Lisbon"}
    assert changed(before, after) == (['  "total": 630.9,'], ['  "total": 612.4,'])


def test_texts_that_differ_in_blanks_are_in_a_notation_that_shows_them() -> None:
    (before,), (after,) = changed(WORDS + " end", WORDS + "\tend")
    assert (before, after) == (json.dumps(WORDS + " end"), json.dumps(WORDS + "\tend"))
    (_,), (steers,) = changed(WORDS, WORDS + "\x1b[2J")
    assert steers.isprintable()


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("43 EUR", "42 EUR"),
        ({"a": 1}, {"a": 2}),
        ("Hotel Bristol", WORDS),
        (3, "3\n4"),
        ({"a": WORDS}, [WORDS]),
        (None, WORDS),
    ],
)
def test_short_and_unlike_values_have_none(expected: Any, found: Any) -> None:
    assert difference(expected, found) is None


def test_very_long_texts_cost_and_show_little() -> None:
    before = "\n".join(f"a{number}" for number in range(100_000))
    after = "\n".join(f"a{number}x" for number in range(100_000))
    lines = difference(before, after) or []
    assert len(lines) == MOST_SHOWN + 1
    assert lines[-1][1].endswith("more lines")


def test_a_value_that_the_check_has_cut_is_compared_whole() -> None:
    whole = {"text": WORDS * 5, "total": 1}
    given = json.dumps(whole | {"total": 2})
    trial = TrialResult(
        key="k", agent="a", case="c", transcript=Transcript(turns=[Turn(turn=1, input="", output=given)])
    )
    case = CaseResult(agent="a", case="c", expected=whole)
    verdict = Verdict(type="equals", outcome="failed", expected=json.dumps(whole)[:299] + "…", found=given[:299] + "…")
    assert changed(*compared_values(verdict, case, trial)) == (['  "total": 1'], ['  "total": 2'])


def test_a_missing_call_is_compared_with_the_nearest_by_the_arguments_asked_for() -> None:
    verdict = Verdict(
        type="tool_called",
        outcome="failed",
        expected={"name": "search", "arguments": {"q": "z", "deep": {"a": 1}}},
        found=[{"q": "x"}, {"q": "z", "n": 3, "deep": {"a": 2, "b": 3}}, {}],
    )
    trial = TrialResult(key="k", agent="a", case="c")
    expected, found = compared_values(verdict, CaseResult(agent="a", case="c"), trial)
    assert expected == {"q": "z", "deep": {"a": 1}}
    assert found == {"q": "z", "deep": {"a": 2}}
