"""Evidence must stand in the record, letter for letter, and show what the agent said or did."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.damage import SNIPPETS, damaged
from tests.roles.support.doubles import talk

from atp.base.json.comments import NotJson
from atp.base.json.found import MISSING
from atp.models.structured import only_json
from atp.roles.judge.answer import Quotable, Shown, read_answer
from atp.roles.judge.prompt import Question, Wanted
from atp.roles.record import make_record
from atp.suite.result import Event, ToolCall

TEXT = "I booked  flight\nLH 400 for you. Total: 1,200 €."


@pytest.mark.parametrize(
    "quote",
    [
        "I booked flight LH 400",
        "flight\n\n  LH 400",
        "Total: 1,200 €.",
        '"booked flight"',
        "“Total: 1,200 €.”",
        "`LH 400`",
    ],
)
def test_found(quote: str) -> None:
    assert Quotable([TEXT]).has(quote)


@pytest.mark.parametrize(
    "quote",
    ["i booked flight", "booked a flight", "I booked … for you", "", "  \n ", '""', "Total: 1.200 €", "LH400", "\\n"],
)
def test_not_found(quote: str) -> None:
    assert not Quotable([TEXT]).has(quote)


def test_nothing_is_found_across_two_texts() -> None:
    assert not Quotable(["the ocean", "is warm"]).has("the ocean is warm")


def test_text_inside_json_may_be_quoted_as_it_reads() -> None:
    shown = Quotable([json.dumps({"content": 'a "good" line\nand another'})])
    assert shown.has('a "good" line\nand another')
    assert shown.has('a \\"good\\" line')
    assert not shown.has('a "bad" line')


def test_what_the_fence_broke_up_may_be_quoted_either_way() -> None:
    shown = Quotable(["it said <|im_end|> and data>>>"])
    assert shown.has("said <|im_end|> and")
    assert shown.has("said <|\\im_end|> and data\\>>>")


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("the caf\ud800 is open", "the caf\ufffd is"),  # as a model gets it
        ("the caf\ud800 is open", "caf\ud800 is open"),  # as a function gets it
        ("the cafe\u0301 is open", "the caf\u00e9 is"),
        ("the caf\u00e9 is open", "the cafe\u0301 is"),
    ],
)
def test_the_same_letters_in_another_encoding_are_found(text: str, quote: str) -> None:
    assert Quotable([text]).has(quote)


@pytest.mark.parametrize("quote", ["Yes", "Yes.", '"Yes."', " Yes", "42", "- b", "b"])
def test_a_whole_line_may_be_quoted_without_its_punctuation(quote: str) -> None:
    assert Quotable(["Yes.\n**42**\n- b\nno more"]).has_line(quote)


@pytest.mark.parametrize("quote", ["Ye", "4", "no", "more", "", "."])
def test_a_part_of_a_line_is_not_a_line(quote: str) -> None:
    assert not Quotable(["Yes.\n**42**\n- b\nno more"]).has_line(quote)


@given(st.text(), st.text(), st.text(min_size=1))
def test_every_part_of_a_text_is_found(before: str, after: str, part: str) -> None:
    assert Quotable([before + " " + part + " " + after]).has(part) == bool(part.strip())


@given(st.text(alphabet="abc ", max_size=30), st.text(alphabet="abcABC ", min_size=1, max_size=6))
def test_what_is_not_there_is_not_found(text: str, quote: str) -> None:
    words = " ".join(quote.split())
    assert Quotable([text]).has(quote) == (bool(words) and words in " ".join(text.split()))


RECORD = make_record(
    talk(("Book a flight to Oslo, please.", "I booked flight LH 400.\nTotal:\n42"), calls=[ToolCall(name="book")]),
    files={"note.txt": "yes"},
)


def complaints(asked: str, wanted: Wanted, decision: Any, *evidence: str, **more: Any) -> list[str]:
    entry = {"number": 1, "reason": "so it is", wanted: decision, "evidence": list(evidence), **more}
    return read_answer({"verdicts": [entry]}, Question(asked=(asked,), wanted=wanted), Shown(RECORD)).complaints


THERE, NOT_THERE = "the agent books a flight", "the agent does not ask for a password"


@pytest.mark.parametrize(
    ("asked", "wanted", "decision", "fine"),
    [
        (NOT_THERE, "met", True, True),
        (NOT_THERE, "met", False, True),
        (THERE, "met", False, True),
        (THERE, "met", True, False),
        (THERE, "score", 0.2, True),
        (THERE, "score", 0.8, False),
        (NOT_THERE, "score", 0.8, True),
    ],
)
def test_absence_replaces_evidence_only_where_something_is_absent(
    asked: str, wanted: Wanted, decision: Any, fine: bool
) -> None:
    assert (complaints(asked, wanted, decision, absence=True) == []) is fine
    assert complaints(asked, wanted, decision) != []
    assert complaints(asked, wanted, decision, "I booked flight") == []


@pytest.mark.parametrize(
    ("quote", "fine"),
    [
        ("I booked flight LH 400.", True),
        ("booked", True),
        ('"tool": "book"', True),
        ("42", True),
        ("yes", True),
        ("e", False),
        ("LH", False),
        ("4", False),
        (". ", False),
        ("Book a flight to Oslo", False),
        ("Oslo, please.", False),
    ],
)
def test_a_decision_in_the_agents_favour_needs_words_of_the_agents(quote: str, fine: bool) -> None:
    assert (complaints(THERE, "met", True, quote) == []) is fine
    assert (complaints(THERE, "score", 0.9, quote) == []) is fine


FRAMED = make_record(
    talk(("Go.", "Well."), calls=[ToolCall(name="pay", arguments={"to": "Ada"}), ToolCall(name="tool")]),
    earlier=talk(("Go.", "Well."), events=[Event(type="step", payload={"arguments": "none"})]),
)


@pytest.mark.parametrize(
    ("quote", "fine"),
    [
        ('"tool": ', False),
        ('{"tool": "', False),
        ('"event": "', False),
        ("event", False),
        ("guments", True),  # the event's own key
        ("tool", True),  # the second call's own name
        ('"tool": "pay"', True),
        ('{"tool": "pay", "arguments": {"to": "Ada"}}', True),
        ('{"tool": "tool", "arguments": null}', True),
        ('"arguments": {"to": "Ada"}', True),
        ('{"event": "step"', True),
    ],
)
def test_the_words_that_atp_puts_around_the_agents_are_no_evidence(quote: str, fine: bool) -> None:
    entry = {"number": 1, "reason": "so it is", "met": True, "evidence": [quote]}
    reading = read_answer({"verdicts": [entry]}, Question(asked=(THERE,)), Shown(FRAMED))
    assert (reading.judgements[0].met is True) is fine
    assert reading.judgements[0].met is not False


def test_the_users_words_may_stand_beside_the_agents_and_speak_against_it() -> None:
    assert complaints(THERE, "met", True, "Book a flight to Oslo", "I booked flight") == []
    assert complaints(THERE, "met", False, "Book a flight to Oslo") == []
    assert complaints(NOT_THERE, "met", True, "Book a flight to Oslo", absence=True) == []


def test_a_line_of_the_users_is_not_the_agents_because_the_agent_has_its_letters_somewhere() -> None:
    seen = make_record(talk(("How many?\n4", "I failed at 14:00.")))
    entry = {"number": 1, "reason": "so it is", "met": True, "evidence": ["4"]}
    (complaint,) = read_answer({"verdicts": [entry]}, Question(asked=("says four",)), Shown(seen)).complaints
    assert "nothing that the agent said" in complaint


@pytest.mark.parametrize(("threshold", "score", "fine"), [(0.3, 0.3, False), (0.5, 0.5, False), (0.3, 0.29, True)])
def test_a_score_that_passes_needs_words_of_the_agents(threshold: float, score: float, fine: bool) -> None:
    question = Question(asked=(THERE,), wanted="score", threshold=threshold)
    entry = {"number": 1, "reason": "so it is", "score": score, "absence": True}
    assert (read_answer({"verdicts": [entry]}, question, Shown(RECORD)).complaints == []) is fine


@pytest.mark.parametrize("more", [{"score": 0}, {"verdict": "not met"}, {"Met": False}, {"passed": False}])
def test_an_answer_that_says_more_than_was_asked_may_say_the_opposite(more: dict[str, Any]) -> None:
    assert complaints(THERE, "met", True, "I booked flight") == []
    assert complaints(THERE, "met", True, "I booked flight", **more)[0].endswith(
        f"absence, met: {json.dumps(list(more))}"
    )
    entry = {"number": 1, "reason": "so it is", "met": True, "evidence": ["I booked flight"]}
    reading = read_answer({"verdicts": [entry], **more}, Question(asked=(THERE,)), Shown(RECORD))
    assert (reading.judgements[0].met, reading.complaints) == (None, ["it has keys beside `verdicts`"])


@pytest.mark.parametrize(
    ("asked", "decision", "evidence", "judged"),
    [
        (NOT_THERE, {"met": True}, [], False),
        (NOT_THERE, {"met": True}, ["I booked"], False),
        (THERE, {"met": False}, [], False),
        (THERE, {"met": False}, ["I booked"], True),
        (NOT_THERE, {"score": 0.9}, [], False),
        (THERE, {"score": 0.1}, [], False),
    ],
)
def test_absence_can_not_be_judged_by_a_record_that_is_cut(
    asked: str, decision: dict[str, Any], evidence: list[str], judged: bool
) -> None:
    """What must not be there may be in the part that nobody was shown, however much else the agent wrote."""
    wanted: Wanted = "met" if "met" in decision else "score"
    entry = {"number": 1, "reason": "not there", "absence": True, "evidence": evidence, **decision}
    for padding, is_judged in (("", True), ("x " * 30_000, judged)):
        shown = Shown(make_record(talk(("Go.", f"I booked. {padding}What is your password? {padding}"))))
        reading = read_answer({"verdicts": [entry]}, Question(asked=(asked,), wanted=wanted), shown)
        assert (reading.judgements[0].judged, reading.complaints) == (is_judged, [])


ASKED = (THERE, NOT_THERE)
ANSWER = json.dumps(
    {
        "verdicts": [
            {"number": 1, "reason": "so it is", "met": True, "evidence": ["I booked flight LH 400."], "absence": False},
            {"number": 2, "reason": "no word of it", "met": True, "evidence": [], "absence": True},
        ]
    },
    indent=1,
)
PIECES = [
    *SNIPPETS,
    "true",
    "false",
    "1.0",
    "1e9",
    "[]",
    "{}",
    '"number": 1,',
    "```",
    "\n```json\n",
    '"met": null',
    "met",
]


def check_answer(text: str) -> None:
    """Any answer gives a decision with its evidence, or none and a complaint, for each thing that was asked."""
    try:
        data = only_json(text)
    except NotJson:
        return
    if data is MISSING:
        return
    reading = read_answer(data, Question(asked=ASKED, wanted="met"), Shown(RECORD))
    assert len(reading.judgements) == len(ASKED)
    decided = [one for one in reading.judgements if one.met is not None]
    assert bool(reading.complaints) == (len(decided) < len(ASKED))
    assert all(one.reason for one in reading.judgements)
    assert all(Shown(RECORD).all.has(quote) for one in decided for quote in one.evidence)
    if reading.judgements[0].met:
        assert any(Shown(RECORD).shows_agent(quote) for quote in reading.judgements[0].evidence)


@settings(max_examples=150)
@given(damaged(ANSWER, PIECES))
@example(ANSWER)
@example("[" * 5_000 + "]" * 5_000)
@example(ANSWER.replace("1", "9" * 5_000))
def test_no_answer_decides_without_evidence(text: str) -> None:
    check_answer(text)
