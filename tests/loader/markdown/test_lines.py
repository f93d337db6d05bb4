"""What became of each line of a file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.loader.markdown import soup

from atp.loader.load import Loaded, load_text

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "markdown").rglob("*.test.md"))

FILE = """\
---
target: agents/tide.md
tags:
  - sea
---

# Tides

Prose.

## High water

What it shows.
<!-- a comment -->

**Prompts:**

- one
  and more
- **Chain:**
  - two
  - ```
    three
    ```

-

**Note:** a remark.

And text.

- a list

**Expectations:** it answers
well

- [ ] it is quick

### Before

- 0

**Timeout:** 30s

---

## Low water

Prompts –

- four
"""
ROLES = [
    *("frontmatter", "target", "tags", "tags", "frontmatter", "", "heading", "", "prose", "", "case 0", ""),
    *("intent", "comment", "", "Prompts", "", "prompt 1 of chain 1", "prompt 1 of chain 1", "chain 2"),
    *("prompt 1 of chain 2", "prompt 2 of chain 2", "prompt 2 of chain 2", "prompt 2 of chain 2", ""),
    *("empty prompt ! empty-prompt", "", "remark", "", "not read ! unread-list", "", "not read < 30", ""),
    *("Expectations: expectation 1", "expectation 1", "", "expectation 2", "", "Before", "", "before 1 ! before-cycle"),
    *("", "Timeout", "", "", "", "heading", "", "prose ! label-not-read", "", "prose < 49", ""),
]


def roles(loaded: Loaded) -> list[str]:
    lines = loaded.lines()
    assert lines is not None
    return [
        one.role + (f" ! {', '.join(one.codes)}" if one.codes else f" < {one.reported}" if one.reported else "")
        for one in lines
    ]


def test_each_line_has_a_role() -> None:
    loaded = load_text(FILE, "markdown")
    lines = loaded.lines()
    assert lines is not None
    assert [one.text for one in lines] == FILE.split("\n")
    assert [one.number for one in lines] == list(range(1, len(lines) + 1))
    assert roles(loaded)[1:] == ROLES[1:]
    assert {one.case for one in lines[10:45] if one.kind not in ("blank", "comment", "markup")} == {0}


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name.removesuffix(".test.md"))
def test_what_is_not_read_is_reported(path: Path) -> None:
    lines = load_text(path.read_text(encoding="utf-8"), "markdown").lines()
    assert lines is not None
    assert [one for one in lines if one.kind == "unread" and one.reported is None] == []
    assert [one for one in lines if one.kind == "markup" and one.text.strip("-=*_ \t`~").isalpha()] == []


def test_below_the_place_where_reading_stopped(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# C\n**Prompts:** a\n\n# D\n{'- ' * 200}a\n\nlost\n")
    lines = loaded.lines()
    assert lines is not None
    assert (lines[-2].kind, lines[-2].reported) == ("unread", 10)


def test_other_dialects_have_none() -> None:
    assert load_text('{"id": "a", "input": "x"}', "jsonl").lines() is None


@pytest.mark.parametrize("seed", range(60_000, 60_200))
def test_what_is_said_of_the_lines_of_any_file_is_so(seed: int) -> None:
    """More of them are in `tests/fuzz`."""
    text = soup.generate(seed)
    assert list(soup.dishonest(text, soup.load(text))) == [], text


def test_a_link_definition_between_paragraphs_is_no_part_of_the_prompt(load: Callable[[str], Loaded]) -> None:
    loaded = load("# C\n\n**Prompts:** a\n\n[x]: http://y\n\nb\n\n**Expectations:** c\n")
    lines = loaded.lines()
    assert lines is not None
    assert [(line.kind, line.role) for line in lines[7:12]] == [
        ("label", "Prompts: prompt 1 of chain 1"),
        ("blank", ""),
        ("markup", ""),
        ("blank", ""),
        ("value", "prompt 1 of chain 1"),
    ]


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\x0c"])
@pytest.mark.parametrize("label", ["**Prompts:**", "Prompts:"])
def test_an_underlined_label_below_a_line_of_other_blanks_is_on_its_line(
    blank: str, label: str, load: Callable[[str], Loaded]
) -> None:
    loaded = load(f"# C\n\n{blank}\n{label}\n---\n- drink\n\n**Expectations:** It drinks.\n")
    lines = loaded.lines()
    assert lines is not None
    assert [(line.kind, line.number) for line in lines[7:10]] == [("blank", 8), ("label", 9), ("markup", 10)]
