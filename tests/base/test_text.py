"""Cutting text for people."""

import pytest

from atp.base.text import cut


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("short", "short"),
        ("ten chars.", "ten chars."),
        ("eleven char", "eleven ch…"),
        (b"\xc3\xa4" * 11, "ä" * 9 + "…"),
        (b"\xff", "\ufffd"),
        ({"a": [1, 2, 3]}, '{"a":[1,2…'),
        (None, "null"),
    ],
)
def test_any_value_is_cut_as_text(value: object, text: str) -> None:
    assert cut(value, 10) == text


@pytest.mark.parametrize(
    "value", ["xxxxx secret-token", b"xxxxx secret-token", ["secret-token"]], ids=["text", "bytes", "JSON"]
)
@pytest.mark.parametrize("longest", range(1, 25))
def test_no_part_of_a_secret_survives_the_cut(value: object, longest: int) -> None:
    text = cut(value, longest, ["secret-token"])
    assert "sec" not in text
    assert len(text) <= longest
