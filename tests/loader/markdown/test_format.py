"""`atp fmt`: the canonical form."""

import re
from pathlib import Path

import pytest

from atp.loader.load import load_text
from atp.loader.markdown.format import format_markdown

FIXTURES = Path(__file__).parents[2] / "fixtures" / "markdown"

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


def test_line_ends_stay_what_they_are() -> None:
    assert format_markdown(LOOSE.replace("\n", "\r\n")) == CANONICAL.replace("\n", "\r\n")
    assert format_markdown("\ufeff" + LOOSE) == CANONICAL


@pytest.mark.parametrize("body", ["", "# C\n", "# C\nPrompts: a\nBefore: b\n", "# C\n**Prompts:**\n- ```\n"])
def test_a_file_with_errors_is_left_alone(body: str) -> None:
    text = f"---\ntarget: agents/a.md\n---\n{body}"
    assert format_markdown(text) == text


def test_what_cannot_be_moved_is_left_alone() -> None:
    """An item that is none of the labels around it would become one of the prompts."""
    text = "---\ntarget: agents/a.md\n---\n# C\n- **Prompts:**\n  - a\n- note\n- **Expected:**\n  - x\n"
    assert format_markdown(text) == text


def test_a_heading_that_is_a_label_stays_where_bold_would_belong_to_another_section() -> None:
    text = (
        "---\ntarget: agents/a.md\n---\n\n# C\n\n**Prompts:**\n\n- a\n\n## Notes\n\nProse.\n\n## Expectations\n\n- x\n"
    )
    assert format_markdown(text.replace("## Expectations", "## expected :")) == text
