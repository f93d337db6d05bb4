"""What must hold for every file, whatever stands in it."""

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.loader.markdown.styles import CaseModel, Style, Writer, format_markdown, styles, suites

from atp.loader.load import load_text
from atp.suite.suite import Suite

FIXTURES = [
    path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[2] / "fixtures" / "markdown").rglob("*.test.md"))
]
PIECES = [
    *(
        "# H",
        "## Prompts",
        "**Prompts:**",
        "**Expectations:**",
        "Before: 0",
        "**Tags:** a",
        "- **Chain:**",
        "- a",
        "  - b",
    ),
    *("1. c", "* d", "```", "~~~md", "<!--", "-->", "`", "> q", "    code", "---", "===", "text", "\t", "", "[x](#h)"),
    *(
        "**ID:** x",
        "- [ ] e",
        "<div>",
        "<insert x>",
        "**Metadata:**",
        "- k: v",
        "[a]: b",
        '"',
        "\\",
        "\u00a0",
        "\ufeff",
    ),
    *("tags: slow", "expecations: x", "Timeout: 5s", "### Skip", "true", "<b>Prompts:</b>", "see **Prompts**", "a  "),
    *(
        "**Outcome:** x",
        "  **Expected:** x",
        "   Expectations:",
        "- [ ] **Prompts:**",
        "**Before:** [x](#h), H",
        "## Promts: a",
    ),
]
often = settings(deadline=None, max_examples=60)


def loads(text: str) -> Suite:
    loaded = load_text(text, "markdown")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for one in loaded.diagnostics:
        assert 1 <= one.line <= len(lines) + 1
        assert one.column >= 1
    assert loaded.suite is not None or "\0" in text
    account = loaded.lines() or []
    assert "\n".join(one.text for one in account) == (loaded.markdown or "")
    assert [one for one in account if one.kind == "unread" and one.reported is None] == []
    return loaded.suite or Suite(name="none")


def clean(text: str) -> Suite:
    loaded = load_text(text, "markdown")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    return loaded.suite


@often
@given(st.text())
def test_any_text_gives_a_suite_and_diagnostics(text: str) -> None:
    loads(text)
    loads("---\ntarget: agents/a.md\n---\n" + text)
    assert loads(format_markdown(text)) == loads(text)


@often
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(["\n", "\n", "\n\n", " ", "\r\n"]))
def test_so_do_pieces_in_any_order(pieces: list[str], glue: str) -> None:
    text = "---\ntarget: agents/a.md\n---\n" + glue.join(pieces)
    suite = loads(text)
    formatted = format_markdown(text)
    assert loads(formatted) == suite
    assert format_markdown(formatted) == formatted


@often
@given(st.sampled_from(FIXTURES), st.data())
def test_so_do_damaged_files(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 30)))
        text = text[:start] + data.draw(st.sampled_from([*PIECES, "\n", "x"])) + text[stop:]
    suite = loads(text)
    formatted = format_markdown(text)
    assert loads(formatted) == suite
    assert format_markdown(formatted) == formatted


@often
@given(suites, styles)
def test_every_style_says_the_same(suite: list[CaseModel], style: Style) -> None:
    read = clean(Writer(style).write(suite)).cases
    for case, said in zip(read, suite, strict=True):
        assert case.chains == [[prompt.text for prompt in chain] for chain in said.chains]
        assert (case.expectations, case.intent, case.tags) == (said.expectations, said.intent, said.tags)
        assert case.befores == ([] if said.before is None else [said.before])


@often
@given(suites, styles)
def test_formatting_makes_all_styles_one(suite: list[CaseModel], style: Style) -> None:
    unwrapped = replace(style, wrap=0, crlf=False)
    canonical = format_markdown(Writer(Style(level=style.level, fence=style.fence)).write(suite))
    formatted = format_markdown(Writer(unwrapped).write(suite))
    assert formatted == canonical
    assert format_markdown(formatted) == formatted
    assert clean(formatted) == clean(Writer(style).write(suite))


def test_line_ends_and_byte_order_marks_change_nothing() -> None:
    for text in FIXTURES:
        suite = loads(text)
        assert loads(text.replace("\n", "\r\n")) == suite
        assert loads(text.replace("\n", "\r")) == suite
        assert loads("\ufeff" + text) == suite
        assert loads(text.rstrip("\n")) == suite
