"""Hostile files: each is read without an exception, and twice the file takes twice the work."""

import pytest
from tests.work import lines_executed

from atp.loader import markdown
from atp.loader.load import load_text
from atp.loader.markdown import blocks


def hostile(size: int) -> dict[str, str]:
    """Files that grow with the size."""
    return {
        "brackets": "# C\n**Prompts:**\n- " + "[" * size + "\n",
        "brackets in a heading": "# " + "[" * size + "\n**Prompts:**\n- a\n",
        "stars": "# C\n" + "**a\n" * size,
        "quotes": "# C\n" + ("> " * 25 + "a\n") * (size // 10),
        "backticks": "# C\n**Prompts:**\n- " + " ".join("`" * (n % 100 + 1) for n in range(size // 5)) + "<!-- x -->\n",
        "comments": "# C\n**Prompts:**\n- " + "<!-- a --> b " * size + "\n",
        "opened comments": "# C\n**Prompts:**\n- " + "<!--" * size + "\n",
        "definitions": "# C\n" + "[a]: b\n" * size,
        "label headings": "# C\n" + "## Tags\n- a\n" * size,
        "lazy labels": "# C\n**Prompts:**\n- a\n" + "  - b\n**Prompts:** x\n" * size,
        "a long chain of befores": "# C0\n**Prompts:** a\n"
        + "".join(f"# C{n}\n**Before:** {n - 1}\n**Prompts:** a\n" for n in range(1, size // 5)),
        "befores of themselves": "".join(f"# C{n}\n**Before:** {n}\n**Prompts:** a\n" for n in range(size // 10)),
        "circles": "".join(f"# C{n}\n**Before:** {n + 1}, 0\n**Prompts:** a\n" for n in range(size // 10)),
        "unknown befores": "".join(f"# C{n}\n**Before:** no{n}\n**Prompts:** a\n" for n in range(size // 10)),
        "same names": "# C\n**Prompts:** a\n" * (size // 5),
        "placeholders": "# C\n**Prompts:**\n- " + "<insert " * size + "\n",
        "label words": "# C\n**Prompts:** a\n\n" + "Prompts – x\n\n" * (size // 2),
        "text between fields": "# C\n" + "**Prompts:**\n- a\n\ntext\n\n- b\n\n" * (size // 4),
        "text behind fields": "# C\n**Prompts:**\n- a\n\n" + "text\n\n- b\n\n" * (size // 4),
        "labels without colons": "# C\n" + "**Prompt** x\n" * size,
        "labels indented after items": "# C\n**Prompts:**\n" + "- a\n\n  **Tags:** x\n\n" * (size // 2),
        "marks": "# C\n**Prompts:** a\n\n" + '*<b>["&' * size + "\n",
        "apostrophes": "# C\n**Prompts:**\n- '" + "a'" * size + "\n",
    }


SMALL, ONCE, TWICE, LARGE = hostile(100), hostile(600), hostile(1_200), hostile(5_000)


def work(text: str) -> int:
    """Lines executed to load a text."""
    return lines_executed(lambda: load_text("---\ntarget: agents/a.md\n---\n" + text, "markdown"))


@pytest.mark.no_cover  # coverage traces as well, and only one can
@pytest.mark.parametrize("kind", ONCE)
def test_work_grows_no_faster_than_the_file(kind: str) -> None:
    work(SMALL[kind])  # imports what loading needs
    once = work(ONCE[kind])
    assert work(TWICE[kind]) < 2.3 * once


@pytest.mark.no_cover  # which doubles what it takes, and other tests cover the same
@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_large_ones_give_a_suite(text: str) -> None:
    assert load_text("---\ntarget: agents/a.md\n---\n" + text, "markdown").suite is not None


@pytest.mark.parametrize("text", SMALL.values(), ids=SMALL)
def test_small_ones_give_a_suite(text: str) -> None:
    assert load_text("---\ntarget: agents/a.md\n---\n" + text, "markdown").suite is not None


@pytest.mark.parametrize(
    "text",
    ["- " * 200 + "a\n", ">" * 200 + "a\n", "".join("  " * n + "- a\n" for n in range(100))],
    ids=["items", "quotes", "lists"],
)
def test_deep_nesting(text: str) -> None:
    loaded = load_text(f"---\ntarget: agents/a.md\n---\n# C\n**Prompts:** a\n\n# D\n{text}", "markdown")
    assert "too-deep" in [one.code for one in loaded.diagnostics]
    assert loaded.suite is not None
    assert loaded.suite.cases[0].chains == [["a"]]


def test_too_many_lines_and_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_BLOCKS", 100)
    frame = "---\ntarget: agents/a.md\n---\n# C\n"
    long_list = load_text(frame + "- a\n" * 200, "markdown").diagnostics
    assert ("too-large", 104) in [(one.code, one.line) for one in long_list]
    monkeypatch.setattr(markdown, "MOST_LINES", 1_000)
    assert "too-large" in [one.code for one in load_text(frame + "\n" * 2_000, "markdown").diagnostics]
