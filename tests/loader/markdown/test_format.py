"""`atp fmt`: the canonical form."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.loader.markdown.styles import format_markdown

from atp.cli.fmt import command
from atp.loader.load import load_text

FIXTURES = Path(__file__).parents[2] / "fixtures" / "markdown"

UNMOVED = "---\ntarget: agents/a.md\n---\n# C\n- **Prompts:**\n  - a\n- note\n- **Expected:**\n  - x\n"

LOOSE = """---
Target: agents/ocean.md   # who is tested
ASSESSOR:   agents/test-assessor.md
x-other: Kept
---
# Oceans
Some prose,\x20\x20
kept as it is.
* a list of prose

## Warming ##
It must be warm. __prompts__:
1. "one" <!-- why -->
2) two
   lines
* Chain:
    1. x
    2. y
<!-- - not now -->
+ ~~~md
  # z
  ~~~
Expectations: it
     is warm
### Before
  [Cooling](#cooling)
ID: warm
**Tags:**
- sea
- slow

Cooling
-------
- **Test Intent:**
  - Cool it.
- **Single Prompt:**

  - hello
    ```
    code\x20\x20
    ```
- **Expectations:**
  -    "q"
**Metadata:**
~~~yaml
a: 1
~~~
"""

CANONICAL = """---
target: agents/ocean.md   # who is tested
assessor:   agents/test-assessor.md
x-other: Kept
---

# Oceans

Some prose,\x20\x20
kept as it is.
* a list of prose

## Warming

It must be warm.

**Prompts:**

- "one" <!-- why -->
- two
  lines
- **Chain:**
  - x
  - y
<!-- - not now -->
- ```md
  # z
  ```

**Expectations:**

- it
  is warm

**Before:**

- [Cooling](#cooling)

**ID:** warm

**Tags:**

- sea
- slow

## Cooling

**Test Intent:**

- Cool it.

**Prompts:**

- hello
  ```
  code\x20\x20
  ```

**Expectations:**

- "q"

**Metadata:**

```yaml
a: 1
```
"""


def test_the_canonical_form() -> None:
    assert format_markdown(LOOSE) == CANONICAL
    assert format_markdown(CANONICAL) == CANONICAL
    assert load_text(CANONICAL, "markdown").suite == load_text(LOOSE, "markdown").suite


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.test.md")), ids=lambda path: path.name)
def test_fixtures_keep_their_meaning(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    formatted = format_markdown(text)
    assert format_markdown(formatted) == formatted
    assert load_text(formatted, "markdown").suite == load_text(text, "markdown").suite


@pytest.mark.parametrize("path", sorted((FIXTURES / "forms").iterdir()), ids=lambda path: path.name)
def test_every_form_becomes_canonical(path: Path) -> None:
    """None of them falls back to being left as it is."""
    formatted = format_markdown(path.read_text(encoding="utf-8"))
    formatted = re.sub(r"^<!--[^>]*-->\n| ?<!--[^>]*-->|^<[ds][^\n]*\n\n?", "", formatted, flags=re.MULTILINE)
    assert "**Prompts:**\n\n- warm the ocean\n" in formatted
    label = "### Expectations" if path.name.startswith("sections-without") else "**Expectations:**"
    assert f"{label}\n\n- the warm_ocean function was called\n" in formatted
    assert "  - good morning\n" in formatted or "**Chain:**\n\n- good morning\n" in formatted


def test_hard_breaks_stay() -> None:
    text = "---\ntarget: agents/a.md\n---\n# C\nPrompts:\n* one\x20\x20\n  two\n\nExpected: it\x20\x20\nis warm\n"
    formatted = format_markdown(text)
    assert "\n- one\x20\x20\n  two\n" in formatted
    assert "\n- it\x20\x20\n  is warm\n" in formatted


def test_the_last_lines_of_the_frontmatter_stay() -> None:
    text = CANONICAL.replace("x-other: Kept\n", "description: |\n  Kept.\n")
    assert format_markdown(text) == text
    suite = load_text(text, "markdown").suite
    assert suite is not None
    assert suite.description == "Kept.\n"


def run(path: Path, *options: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, [*options, str(path)], standalone_mode=False)
    return result.return_value, result.stdout, result.stderr


def test_the_command_keeps_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.test.md"
    path.write_bytes(CANONICAL.replace("\n", "\r\n").encode())
    assert run(path, "--check") == (0, "", "")
    path.write_bytes(LOOSE.replace("\n", "\r\n").encode())
    assert run(path, "--check")[0] == 1
    assert run(path) == (0, f"formatted {path}\n", "")
    assert path.read_bytes() == CANONICAL.replace("\n", "\r\n").encode()


def test_the_command_says_when_it_gives_up(tmp_path: Path) -> None:
    path = tmp_path / "x.test.md"
    path.write_text(UNMOVED)
    code, out, err = run(path)
    assert (code, out, path.read_text()) == (0, "", UNMOVED)
    assert err.startswith(f"warning: {path} is left as it is")


def test_line_ends_stay_what_they_are() -> None:
    assert format_markdown(LOOSE.replace("\n", "\r\n")) == CANONICAL.replace("\n", "\r\n")
    assert format_markdown("\ufeff" + LOOSE) == CANONICAL


@pytest.mark.parametrize("body", ["", "# C\n", "# C\nPrompts: a\nBefore: b\n", "# C\n**Prompts:**\n- ```\n"])
def test_a_file_with_errors_is_left_alone(body: str) -> None:
    text = f"---\ntarget: agents/a.md\n---\n{body}"
    assert format_markdown(text) == text


def test_what_cannot_be_moved_is_left_alone() -> None:
    """An item that is none of the labels around it would become one of the prompts."""
    assert format_markdown(UNMOVED) == UNMOVED


def test_a_heading_that_is_a_label_stays_where_bold_would_belong_to_another_section() -> None:
    text = (
        "---\ntarget: agents/a.md\n---\n\n# C\n\n**Prompts:**\n\n- a\n\n## Notes\n\nProse.\n\n## Expectations\n\n- x\n"
    )
    assert format_markdown(text.replace("## Expectations", "## expected :")) == text
