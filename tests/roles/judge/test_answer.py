"""Evidence must stand in the record, letter for letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.roles.judge.answer import Quotable

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


@given(st.text(), st.text(), st.text(min_size=1))
def test_every_part_of_a_text_is_found(before: str, after: str, part: str) -> None:
    assert Quotable([before + " " + part + " " + after]).has(part) == bool(part.strip())


@given(st.text(alphabet="abc ", max_size=30), st.text(alphabet="abcABC ", min_size=1, max_size=6))
def test_what_is_not_there_is_not_found(text: str, quote: str) -> None:
    words = " ".join(quote.split())
    assert Quotable([text]).has(quote) == (bool(words) and words in " ".join(text.split()))
