"""Cutting text for people."""

import pytest

from atp.base.secrets import Secrets, masking
from atp.base.text import cut, cut_start, one_line, some_lines, value_text, words


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
    with masking(Secrets(["secret-token"])):
        text = cut(value, longest)
    assert "sec" not in text
    assert len(text) <= longest


@pytest.mark.parametrize("size", range(1, 40))
def test_no_part_of_a_secret_survives_a_cut_of_the_beginning(size: int) -> None:
    with masking(Secrets(["secret-token"])):
        text = cut_start("xxxxx secret-token yyyyy", size)
    assert not {"secret", "token", "tok", "cret", "en y"} & set(text.replace("-", " ").split())
    assert len(text) <= size


@pytest.mark.parametrize("before", [0, 100, 290, 295, 299, 3590, 3599])
def test_every_way_to_cut_masks_first(before: int) -> None:
    text = "x" * before + "secret-token" + "y" * 5000
    with masking(Secrets(["secret-token"])):
        shown = [cut(text), one_line(text), value_text(text), *(line for line, _ in some_lines(text, ""))]
    assert [one for one in shown if "secret" in one or one.rstrip('…"').endswith(("s", "sec"))] == []


def test_a_long_text_of_secrets_is_masked_to_its_end() -> None:
    """Each masked secret makes the text shorter, so that more of it is shown."""
    with masking(Secrets(["secret-token"])):
        assert cut("secret-token." * 1000, 30) == "***.***.***.***.***.***.***.*…"


def test_of_a_long_text_only_the_beginning_is_searched() -> None:
    class Counted(str):
        longest = 0

        def __getitem__(self, part: object) -> str:
            piece = super().__getitem__(part)  # type: ignore[index]
            Counted.longest = max(Counted.longest, len(piece))
            return piece

        def __contains__(self, part: object) -> bool:
            raise AssertionError("the whole text is searched")

    with masking(Secrets(["secret-token"])):
        assert cut(Counted("x" * 10**6), 10) == "x" * 9 + "…"
    assert 0 < Counted.longest < 1000


def test_a_wrapped_secret_is_masked_before_its_lines_are_joined() -> None:
    with masking(Secrets(["first-secret"])):
        assert words("see  first-\nsecret\n there ") == "see *** there"
