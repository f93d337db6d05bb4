"""Headings: what is a case, what is a field of one, and what cases and suites are called."""

from collections.abc import Callable

import pytest

from atp.loader.load import Loaded, load_text
from atp.suite.case import Case

BOTH = "**Prompts:**\n- a\n**Expectations:**\n- b\n"


def cases(loaded: Loaded) -> list[Case]:
    assert loaded.suite is not None
    return loaded.suite.cases


def names(loaded: Loaded) -> list[str]:
    return [case.name for case in cases(loaded)]


def test_cases_are_numbered_and_know_where_they_stand(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Oceans\n\n## Warm\n{BOTH}\n### Warmer\n{BOTH}\n## Cold\n{BOTH}")
    assert loaded.diagnostics == []
    assert [(case.index, case.id, case.path) for case in cases(loaded)] == [
        (0, "warm", ["Oceans", "Warm"]),
        (1, "warmer", ["Oceans", "Warm", "Warmer"]),
        (2, "cold", ["Oceans", "Cold"]),
    ]
    assert [(case.place.line, case.place.column) for case in cases(loaded)] == [(8, 1), (14, 1), (20, 1)]


def test_a_case_can_be_called_like_a_label(load: Callable[[str], Loaded]) -> None:
    loaded = load(
        f"# Oceans\n\n## Before\n{BOTH}\n## Input\n\nSome intent.\n\n{BOTH}\n## Tags\n### Prompt\na\n### Expected\nb\n"
    )
    assert loaded.diagnostics == []
    assert names(loaded) == ["Before", "Input", "Tags"]
    assert cases(loaded)[1].intent == "Some intent."


def test_a_group_of_cases_can_be_called_like_a_label(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Oceans\n\n## Input\n\n### Warm\n{BOTH}\n### Cold\n{BOTH}")
    assert loaded.diagnostics == []
    assert [case.path for case in cases(loaded)] == [["Oceans", "Input", "Warm"], ["Oceans", "Input", "Cold"]]


def test_a_label_on_the_level_of_its_case_is_another_case(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"## Setup\n{BOTH}\n## Before\n{BOTH}\n## Last\n{BOTH}**Before:** Before\n")
    assert loaded.diagnostics == []
    assert names(loaded) == ["Setup", "Before", "Last"]
    assert cases(loaded)[2].befores == [1]


def test_headings_below_a_case_are_its_fields(load: Callable[[str], Loaded]) -> None:
    setup = "# Setup\n## Prompts\n- a\n## Expectations\n- b\n\n"
    loaded = load(setup + "# Main\n## Before: Setup\n## Prompts\n- c\n## Expected\n- d\n")
    assert loaded.diagnostics == []
    assert names(loaded) == ["Setup", "Main"]
    assert cases(loaded)[1].befores == [0]


def test_a_before_in_a_line_of_text_is_a_field(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Setup\n{BOTH}\n# Main\n\n## Before\n\nSetup\n\n{BOTH}")
    assert loaded.diagnostics == []
    assert [case.befores for case in cases(loaded)] == [[], [0]]


def test_a_case_called_like_a_label_in_the_form_of_document_2(load: Callable[[str], Loaded]) -> None:
    loaded = load("# Oceans\n\n## Before\n\n- **Single Prompt:**\n  - a\n- **Expectations:**\n  - b\n")
    assert loaded.diagnostics == []
    assert names(loaded) == ["Before"]


@pytest.mark.parametrize("heading", ["  ## B", "    ## B", "\t## B", "  B\n  -"])
@pytest.mark.parametrize("label", ["Prompts", "Expectations"])
def test_a_heading_that_is_indented_like_an_item_is_reported(
    load: Callable[[str], Loaded], heading: str, label: str
) -> None:
    """It begins no case, and what stands below it would be added to the case before it without a word."""
    first = "# A\n\n**Prompts:**\n- a\n\n" + ("**Expectations:**\n- b\n\n" if label == "Expectations" else "")
    loaded = load(f"{first}{heading}\n\n{BOTH}")
    assert "heading-in-item" in [one.code for one in loaded.diagnostics]
    assert names(loaded) == ["A"]


def test_a_heading_in_a_fence_of_an_item_is_text(load: Callable[[str], Loaded]) -> None:
    loaded = load("# A\n\n**Prompts:**\n- a\n\n  ```\n  ## B\n  ```\n\n**Expectations:**\n- b\n")
    assert loaded.diagnostics == []


def test_bold_items_below_a_heading_field_are_items(load: Callable[[str], Loaded]) -> None:
    loaded = load("# Ocean\n\n## Prompts\n\n- **Input:** one\n- **Input:** two\n\n## Expected\n\n- b\n")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [("label-in-item", 10), ("label-in-item", 11)]
    assert cases(loaded)[0].chains == [["**Input:** one"], ["**Input:** two"]]


@pytest.mark.parametrize(
    ("heading", "name", "id_"),
    [
        ("# Test: Warm it", "Warm it", "test-warm-it"),
        ("# Test Case 3: Warm it", "Warm it", "test-case-3-warm-it"),
        ("# TEST CASE: Warm it", "Warm it", "test-case-warm-it"),
        ("# Testing: it", "Testing: it", "testing-it"),
        ("# **Warm** the `ocean` [now](x.md) ##", "Warm the ocean now", "warm-the-ocean-now"),
        ("# Wärme — für alle, snake_case!", "Wärme — für alle, snake_case!", "wärme--für-alle-snake_case"),
        ("Warm it\n-------", "Warm it", "warm-it"),
        ("# !!!", "!!!", "case-0"),
    ],
)
def test_names_and_slugs(heading: str, name: str, id_: str, only_case: Callable[[str], Case]) -> None:
    case = only_case(f"{heading}\n\n{BOTH}")
    assert (case.name, case.id) == (name, id_)


def test_the_suite_is_called_after_the_first_heading_that_is_no_case(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Warm\n{BOTH}\n# Oceans\n\n## Notes\n")
    assert loaded.suite is not None
    assert loaded.suite.name == "Oceans"


@pytest.mark.parametrize("path", ["x/y/ocean.test.md", "ocean.TEST.md", "ocean.md"])
def test_else_after_its_file(path: str) -> None:
    suite = load_text(f"---\ntarget: agents/a.md\n---\n# Warm\n{BOTH}", "markdown", path=path).suite
    assert suite is not None
    assert (suite.name, suite.path, suite.dialect) == ("ocean", path, "markdown")


def test_a_file_without_headings_is_one_case(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"Some intent.\n\n{BOTH}")
    assert [(one.code, one.severity, one.line, one.column) for one in loaded.diagnostics] == [
        ("no-heading", "warning", 8, 1)
    ]
    [case] = cases(loaded)
    assert (case.name, case.id, case.path, case.intent) == ("ocean", "ocean", [], "Some intent.")


def test_a_file_with_no_headings_but_labels_is_one_case_too(load: Callable[[str], Loaded]) -> None:
    loaded = load("# Prompts\n- a\n# Expectations\n- b\n")
    assert [one.code for one in loaded.diagnostics] == ["no-heading"]
    assert [(case.name, case.chains, case.expectations) for case in cases(loaded)] == [("ocean", [["a"]], ["b"])]


def test_duplicate_names_get_ids_of_their_own(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Warm\n{BOTH}\n# Warm\n{BOTH}\n# WARM\n{BOTH}**ID:** warm-1\n")
    assert [(one.code, one.severity, one.line) for one in loaded.diagnostics] == [
        ("duplicate-name", "warning", 12),
        ("duplicate-name", "warning", 18),
    ]
    assert [case.id for case in cases(loaded)] == ["warm", "warm-2", "warm-1"]


def test_a_line_below_a_label_makes_no_heading_of_it(only_case: Callable[[str], Case]) -> None:
    case = only_case("## C\n\n**Prompts:**\n-----------\n- a\n\nExpected: b\n---\n**Note:** some prose.\n")
    assert (case.chains, case.expectations) == ([["a"]], ["b"])
