"""What items, paragraphs and fences below a label say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from atp.loader.load import Loaded, load_path

ITEMS = Path(__file__).parents[2] / "fixtures" / "markdown" / "items"

CHAINS = {
    "dashes": [["one"], ["two"]],
    "stars": [["one"], ["two"]],
    "pluses": [["one"], ["two"]],
    "numbers": [["one"], ["two"]],
    "numbers-in-brackets": [["one"], ["two"]],
    "boxes": [["one"], ["two"], ["three"]],
    "soft-breaks": [["one and more"], ["two and more"]],
    "hard-breaks": [["one  \nand more"], ["two\\\nand more"]],
    "paragraphs": [["one\n\nand more\n\n    code"]],
    "bare-paragraph": [["one and more"]],
    "bare-paragraph-below-the-label": [["one and more"]],
    "bare-fence": [["# one\n\n- two"]],
    "bare-tildes": [["# one\n\n- two"]],
    "long-fence": [["```\n# one\n```"]],
    "fence-item": [["# one\n  two\n\n**Expectations:**"], ["three"]],
    "fence-below-the-marker": [["one"]],
    "text-and-fence": [["Fix this:\n\n```python\nx = 1\n```"], ["and this:\n~~~\ny\n~~~\nplease"]],
    "straight-quotes": [
        ["one"],
        ["I don't know"],
        ['"one" or "two"'],
        ['say "one"'],
        ['Is it "one"?'],
        ['one \\"two\\"'],
    ],
    "curly-quotes": [["one"], ["two"], ["“one” or “two”"], ["Is it “one”?"]],
    "backticks": [["one"], ["two ` two"], ["`one` or `two`"], ["`one`"]],
    "chain": [["one", "two"]] * 3,
    "chain-italic": [["one", "two"]] * 2,
    "chain-plain": [["one", "two"]] * 2,
    "chain-of-fences": [["one", "two"]] * 2,
    "chain-label": [["one", "two"], ["three", "four"]],
    "chain-below-prompts": [["one", "two"]],
    "markdown-stays": [
        ["**Prompts:** is *bold* and `code`"],
        ["[a link](https://example.com) and ![a picture](x.png)"],
        ["see **Expectations:**"],
        ["# not a heading"],
        ["> a quote of two lines"],
        ["a \\* star &amp; an <b>entity</b>"],
    ],
    "label-in-an-item": [["Explain this: **Expectations:** are high"], ["Explain\n\n**Prompts:**\n\nto me"]],
    "tabs": [["one and more"], ["two", "three"]],
    "wide-markers": [["one"], ["two", "three"]],
    "non-breaking-blanks": [["one\u00a0two"]],
    "comment-signs-in-code": [["<!-- one -->"], ["what is `<!--` for, and `-->`?"], ["<!-- two -->"]],
}
REPORTED = {"label-in-an-item": 2, "markdown-stays": 1}
"""How many lines of items begin with a label: such text is never structure in an item, but it is reported."""


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_items(name: str) -> None:
    loaded = load_path(ITEMS / f"{name}.test.md")
    assert [one.code for one in loaded.diagnostics] == ["label-in-item"] * REPORTED.get(name, 0)
    assert loaded.suite is not None
    [case] = loaded.suite.cases
    assert case.chains == CHAINS[name]
    assert case.expectations == ["it is warm"]


def test_every_fixture_is_checked() -> None:
    assert {path.name.removesuffix(".test.md") for path in ITEMS.iterdir()} == set(CHAINS)


def test_quotes_below_a_label_lose_their_sign(load: Callable[[str], Loaded]) -> None:
    loaded = load("# A\n**Prompts:**\n\n> one\n> two\n\n> three\n\n**Expected:** x\n")
    assert loaded.suite is not None
    assert loaded.suite.cases[0].chains == [["one two\n\nthree"]]
    [warning] = loaded.diagnostics
    assert "without its `>`" in warning.message
