"""Befores: how they are named, and what is replayed."""

from collections.abc import Callable

import pytest

from atp.loader.load import Loaded
from atp.loader.markdown import befores
from atp.suite.case import Case

BOTH = "**Prompts:**\n- a\n**Expectations:**\n- b\n"
SETUP = f"# Fill the *Ocean*\n{BOTH}\n# Warm it\n{BOTH}\n# Main\n{BOTH}"


def last(loaded: Loaded) -> Case:
    assert loaded.suite is not None
    return loaded.suite.cases[-1]


@pytest.mark.parametrize(
    "written",
    [
        "**Before:**\n\n- Fill the Ocean\n- Warm it\n",
        "**Befores:**\n- fill the ocean\n- WARM   IT\n",
        "**Dependencies:**\n1. Fill the\n   Ocean\n2. `Warm it`\n",
        "**Before:**\n- [Fill the Ocean](#fill-the-ocean)\n- [the other](#warm-it)\n",
        "**Before:** [Fill the Ocean](#fill-the-ocean)\n\n**Before:** Warm it\n",
        "**Before:** [Fill](#fill-the-ocean), [Warm](#warm-it)\n",
        "**Before:** Fill the Ocean, Warm it\n",
        "**Before:** [Fill](#fill-the-ocean), Warm it\n",
        "**Before:**\n- [Fill](#fill-the-ocean) and then Warm it\n",
        "**Before:** Fill the Ocean, then [Warm](#Warm-it).\n",
        "**Before:** [Fill](#fill-the-ocean) → [Warm](#warm-it)\n",
        "**Before:**\n```\nFill the Ocean\n- warm it\n```\n",
        "before: 0\nbefore: 1\n",
        "Before: 0, 1\n",
        "**Before:**\n- 0\n- 1\n",
        "**Before:**\n- fill-the-ocean\n- warm-it\n",
        "## Before\n- **Fill the Ocean**\n- [Warm it]\n",
        '---\n\n- **Before:**\n  - "Fill the Ocean"\n  - Warm it\n',
    ],
)
def test_all_ways_to_name_them(written: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(SETUP + "\n" + written)
    assert loaded.diagnostics == []
    assert last(loaded).befores == [0, 1]
    assert last(loaded).before_sequence == [0, 1]


def test_the_sequence_is_never_deduplicated(load: Callable[[str], Loaded]) -> None:
    body = f"# A\n{BOTH}\n# B\n{BOTH}**Before:** A\n\n# C\n{BOTH}**Before:** B, A\n\n# D\n{BOTH}**Before:** 0, 2, 0\n"
    loaded = load(body)
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert [case.befores for case in loaded.suite.cases] == [[], [0], [1, 0], [0, 2, 0]]
    assert [case.before_sequence for case in loaded.suite.cases] == [[], [0], [0, 1, 0], [0, 0, 1, 0, 2, 0]]


def test_a_name_is_found_before_an_index(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# 1\n{BOTH}\n# Other\n{BOTH}\n# Main\n{BOTH}**Before:** 1\n")
    assert last(loaded).befores == [0]


@pytest.mark.parametrize(
    ("body", "index"),
    [
        pytest.param(
            f"# Ocean\n\n## Ocean\n{BOTH}\n## Main\n{BOTH}**Before:** [this](#ocean-1)\n", 0, id="all headings"
        ),
        pytest.param(f"{SETUP}**Before:** [Warm it](#fill-the-ocean)\n", 0, id="whatever the link says"),
        pytest.param(f"# A\n**ID:** b\n{BOTH}\n# B\n{BOTH}\n# Main\n{BOTH}**Before:** [B](#b)\n", 1, id="not an id"),
        pytest.param(f"# Test: Fill it\n{BOTH}\n# Main\n{BOTH}**Before:** [it](#fill-it)\n", 0, id="without a prefix"),
    ],
)
def test_a_link_leads_to_the_anchor_of_a_heading(body: str, index: int, load: Callable[[str], Loaded]) -> None:
    loaded = load(body)
    assert loaded.diagnostics == []
    assert last(loaded).befores == [index]


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("[it](#warm-ti)", "did you mean `Warm it`?"),
        ("[Warm it](other.test.md#x)", "link to a case of this file: `[Warm it](#warm-it)`"),
        ("[it](https://example.com/x)", "link to a case of this file: `[Name](#name)`"),
        ("[Fill](#fill-the-ocean) and Warm ti", "did you mean `Warm it`?"),
    ],
)
def test_links_that_lead_to_no_case(written: str, hint: str, load: Callable[[str], Loaded]) -> None:
    [one] = load(f"{SETUP}**Before:** {written}\n").diagnostics
    assert (one.code, one.severity, one.hint, one.column) == ("unknown-before", "error", hint, 13)


def test_expectations_may_judge_what_a_before_left(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# A\n{BOTH}\n# B\n**Before:** A\n\n**Expectations:**\n- still warm\n")
    assert loaded.diagnostics == []
    assert last(loaded).chains == []


def test_unknown_names(expect: Callable[..., Loaded]) -> None:
    expect(
        f"""---
target: agents/a.md
assessor: agents/b.md
---
# Warm the ocean
{BOTH}
# Main
**Before:**
- «unknown-before»Warm the oecan
- «unknown-before»[x](other.test.md#warm-the-ocean)
- «unknown-before»7

{BOTH}""",
        "markdown",
    )


def test_an_unknown_name_gets_a_suggestion(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Warm the ocean\n{BOTH}\n# Main\n{BOTH}**Before:** warm teh ocean, 0\n")
    [one] = loaded.diagnostics
    assert (one.code, one.hint) == ("unknown-before", "did you mean `Warm the ocean`?")
    assert last(loaded).befores == [0]


def test_a_name_that_two_cases_have(expect: Callable[..., Loaded]) -> None:
    loaded = expect(
        f"""---
target: agents/a.md
assessor: agents/b.md
---
# Warm
{BOTH}
«warning:duplicate-name»# Warm
{BOTH}
# Main
**Before:**
- «ambiguous-before»Warm
- warm-1
- warm
- 1

{BOTH}""",
        "markdown",
    )
    assert last(loaded).befores == [1, 0, 1]


def test_forward_references_and_circles(expect: Callable[..., Loaded]) -> None:
    loaded = expect(
        f"""---
target: agents/a.md
assessor: agents/b.md
---
# A
**Before:** «warning:forward-before»B

{BOTH}
# B
**Before:**

1. «warning:forward-before»C

{BOTH}
# C
**Before:** «before-cycle»A

{BOTH}
# D
**Before:** «before-cycle»D

{BOTH}""",
        "markdown",
    )
    assert loaded.suite is not None
    assert [case.befores for case in loaded.suite.cases] == [[1], [2], [0], [3]]
    assert [case.before_sequence for case in loaded.suite.cases] == [[2, 1], [2], [], []]


def test_a_sequence_that_explodes(load: Callable[[str], Loaded]) -> None:
    body = f"# C0\n{BOTH}" + "".join(f"\n# C{n}\n**Before:** {n - 1}, {n - 1}\n\n{BOTH}" for n in range(1, 60))
    loaded = load(body)
    assert [one.code for one in loaded.diagnostics] == ["too-many-befores"]
    assert loaded.suite is not None
    assert max(len(case.before_sequence) for case in loaded.suite.cases) <= befores.LONGEST
