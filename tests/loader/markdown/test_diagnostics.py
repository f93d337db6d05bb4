"""Every mistake in the body of a file, with its code, line and column.

In `fixtures/markdown/mistakes` there is a file for each; a mark stands right before the place of a diagnostic.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from atp.loader.load import Loaded

MISTAKES = Path(__file__).parents[2] / "fixtures" / "markdown" / "mistakes"
FRAME = "---\ntarget: agents/a.md\nassessor: agents/b.md\n---\n"
FRAME_OF_TWO = FRAME.replace("assessor", "iterations: 2\nassessor")


@pytest.mark.parametrize("path", sorted(MISTAKES.iterdir()), ids=lambda path: path.name.removesuffix(".test.md"))
def test_mistakes(path: Path, expect: Callable[..., Loaded]) -> None:
    loaded = expect(path.read_text(encoding="utf-8"), "markdown")
    assert loaded.suite is not None
    assert loaded.suite.cases
    assert all(one.hint for one in loaded.diagnostics if one.code not in ("out-of-range", "wrong-type", "duration"))


def test_columns_before_and_behind_comments(expect: Callable[..., Loaded]) -> None:
    expect(
        f"""{FRAME}# C
<!-- x --> «warning:misspelled-label»**Promts:** <!--
y
--> «warning:placeholder»<insert it> <!-- z --> «warning:placeholder»<insert it>

**Expected:** b
""",
        "markdown",
    )


def test_prompts_that_never_run(expect: Callable[..., Loaded]) -> None:
    loaded = expect(
        f"""{FRAME_OF_TWO}# C
**Prompts:**
- a
- Chain:
  - b
  - c
- «warning:prompts-never-run»d
- Chain:
  - e
  - f

**Expected:** x
""",
        "markdown",
    )
    [one] = loaded.diagnostics
    assert "`d`, `e`" in one.message
    assert loaded.suite is not None
    assert len(loaded.suite.cases[0].chains) == 4


def test_enough_iterations_are_fine(expect: Callable[..., Loaded]) -> None:
    expect(FRAME_OF_TWO + "# C\nPrompts: a\nPrompts: b\nExpected: c\n", "markdown")


def test_the_case_stays_when_something_is_left_out(expect: Callable[..., Loaded]) -> None:
    loaded = expect(
        f"{FRAME}# C\n**Prompts:**\n- Chain:\n  - a\n  «empty-prompt»-\n  - c\n\n**Expected:** b\n", "markdown"
    )
    assert loaded.suite is not None
    assert loaded.suite.cases[0].chains == [["a", "c"]]


def test_all_mistakes_at_once(expect: Callable[..., Loaded]) -> None:
    loaded = expect(
        """---
target: «outside-agents»x.md
iterations: «out-of-range»0
assessor: agents/b.md
---
# One
«warning:misspelled-label»**Promtps:**
- «warning:placeholder»<insert>
«empty-prompt»-

**Expectations:**
- fine

«warning:no-expectations»# Two
**Before:** «unknown-before»Won

**Prompts:**
- «unclosed-fence»```
  x
""",
        "markdown",
    )
    assert loaded.suite is not None
    assert [(case.name, case.chains) for case in loaded.suite.cases] == [("One", [["<insert>"]]), ("Two", [["x"]])]
