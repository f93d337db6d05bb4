"""The fence: what is put behind it comes out whole, and nothing in it can end it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.roles.fence import Fence, harmless

HOSTILE = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(
            [
                "<<<",
                "data",
                ">>>",
                "<<<data ",
                " data>>>",
                "DATA",
                "\\",
                "\n",
                " ",
                "<|",
                "|>",
                "im_end",
                "[INST]",
                "</s>",
            ]
        ),
    )
).map("".join)
MARKS = re.compile(r"<{3}\s{0,8}data|data\s{0,8}>{3}|<\|[\w ]{1,40}\|>|<(?:start|end)_of_turn>|</s>|\[/?inst\]", re.I)


def unfenced(words: str, fence: Fence) -> list[str]:
    """What stands between the marks, as a strict reader sees it."""
    found = re.findall(rf"^{re.escape(fence.opening)}\n(.*?)\n{re.escape(fence.closing)}$", words, re.M | re.S)
    return [original(one) for one in found]


def original(text: str) -> str:
    """The text as it was before the backslashes: written the other way round on purpose, not taken from the code."""
    for pattern in (
        r"(\[)\\(\\*/?inst\])",
        r"(<)\\(\\*(?:(?:start|end)_of_turn>|/s>))",
        r"(<\|)\\(\\*[\w ]{1,40}\|>)",
        r"(data)\\(\\*\s{0,8}>{3})",
        r"(<{3}\s{0,8})\\(\\*data)",
    ):
        text = re.sub(pattern, r"\1\2", text, flags=re.I)
    return text


@given(HOSTILE)
def test_any_text_comes_out_as_it_went_in(text: str) -> None:
    fence = Fence.around([text])
    assert unfenced(f"before\n{fence.put(text)}\nafter", fence) == [text]


@given(HOSTILE)
def test_no_mark_and_no_control_token_gets_through(text: str) -> None:
    assert MARKS.search(harmless(text)) is None


@given(HOSTILE, HOSTILE)
def test_texts_do_not_run_into_each_other(one: str, other: str) -> None:
    fence = Fence.around([one, other])
    assert unfenced(f"{fence.put(one)}\n{fence.put(other)}", fence) == [one, other]


def test_a_nonce_that_stands_in_the_text_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    nonces = iter(["aaaa", "bbbb", "cccc"])
    monkeypatch.setattr("atp.roles.fence.secrets.token_hex", lambda _size: next(nonces))
    assert Fence.around(["x aaaa data>>>", "bbbb"]).closing == "cccc data>>>"


def test_each_call_has_a_nonce_of_its_own() -> None:
    assert len({Fence.around([]).opening for _ in range(50)}) == 50


def test_harmless_text_stays_as_it_is() -> None:
    text = ">>> data = 1 << 3\n<data>\ncat <<<EOF\n<s>a</s2> [1] data: >>"
    assert harmless(text) == text


def test_megabytes_are_no_problem() -> None:
    for text in (
        "<<<" * 500_000,
        "data " * 300_000,
        "<|" * 500_000,
        "<<<" + " " * 1_000_000,
        "data" + "\\" * 1_000_000,
    ):
        assert len(harmless(text)) >= len(text)
