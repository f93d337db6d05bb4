"""Every line is read into a field, prose of the intent, or reported."""

import random
from collections.abc import Callable

import pytest
from tests.loader.markdown import matrix
from tests.loader.markdown.matrix import ACCEPTED, ITEMS, LOOKALIKES, PLACES, losses, misread, whole_case

from atp.loader.load import Loaded
from atp.suite.case import Case

BOTH = "**Prompts:**\n- drink\n\n**Expectations:**\n- It drinks.\n\n"
POUR = f"# Pour\n{BOTH}"


@pytest.mark.parametrize("spelling", ACCEPTED + LOOKALIKES)
def test_a_sample_of_the_generated_files_loses_nothing(spelling: str) -> None:
    """All of them are in `tests/fuzz`."""
    for one in random.Random(spelling).sample(matrix.combinations(spelling), 6):
        name, generated = matrix.generate(*one)
        loaded = matrix.load(generated)
        assert losses(generated, loaded) == [], f"{name}\n{generated.text}"
        if all(label.is_accepted for label in generated.labels.values()):
            assert misread(generated, loaded) == [], f"{name}\n{generated.text}"


@pytest.mark.parametrize("spelling", ACCEPTED + LOOKALIKES)
def test_no_case_vanishes(spelling: str) -> None:
    for place in PLACES:
        generated = whole_case(spelling, place)
        loaded = matrix.load(generated)
        assert losses(generated, loaded) == [], generated.text
        label = next(iter(generated.labels.values()))
        if label.is_accepted or (spelling in ITEMS and place != "paragraph"):
            assert misread(generated, loaded) == [], generated.text


@pytest.mark.parametrize(
    "written",
    [
        "**Before** [Pour](#pour)\n\n",
        "**Before** Pour\n\n",
        "__Before__ Pour\n\n",
        "### Before Pour\n\n",
        "### Before [Pour](#pour)\n\n",
        "Some prose.\n**Before** Pour\n\n",
        "Some prose\n**Before** [Pour](#pour)\n\n",
    ],
)
def test_a_bold_label_needs_no_colon_before_its_value(written: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"{POUR}\n# Drink\n{written}{BOTH}")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert loaded.suite.cases[1].befores == [0]


def test_a_bold_word_of_a_sentence_is_no_label_and_reported(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Drink\n\n**Input** is checked.\n\n{BOTH}")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [("label-not-read", 8)]
    assert loaded.suite is not None
    assert loaded.suite.cases[0].intent == "**Input** is checked."


@pytest.mark.parametrize("blanks", [1, 2, 3])
@pytest.mark.parametrize("label", ["**Before:** Pour", "**Before** Pour", "**Before:**\nPour", "**Before:**\n- Pour"])
def test_an_indented_label_after_a_list_is_no_part_of_the_item(
    blanks: int, label: str, load: Callable[[str], Loaded]
) -> None:
    loaded = load(
        f"{POUR}\n# Drink\n**Expectations:**\n- It drinks.\n\n**Prompts:**\n- drink\n\n{' ' * blanks}{label}\n"
    )
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert loaded.suite.cases[1].chains == [["drink"]]
    assert loaded.suite.cases[1].befores == [0]


@pytest.mark.parametrize("behind", ["<br>", " <br/>", "<BR />", "\\", "  "])
def test_a_line_break_behind_a_label_is_no_prompt(behind: str, only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# C\n**Prompts:**{behind}\n- drink\n\n**Expectations**{behind}\n\n- It drinks.\n")
    assert (case.chains, case.expectations) == ([["drink"]], ["It drinks."])


def test_an_empty_box_above_an_indented_label(load: Callable[[str], Loaded]) -> None:
    loaded = load("# A\n- [ ] \n   **Prompts:**\n   - drink\n\n**Expected:** b\n")
    assert loaded.suite is not None
    assert [(case.chains, case.expectations) for case in loaded.suite.cases] == [([["drink"]], ["b"])]


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        pytest.param("**Depends on:** Pour\n", {"unknown-label": [8]}, id="unknown label above the first"),
        pytest.param("**Invoke** [Pour](#pour)\n", {"unknown-label": [8]}, id="unknown label and a link"),
        pytest.param("> **Before:** Pour\n", {"label-not-read": [8]}, id="quote"),
        pytest.param("<b>Before:</b> Pour\n", {"label-not-read": [8]}, id="tags"),
        pytest.param("Before we begin, drink.\n", {"label-not-read": [8]}, id="first word of the intent"),
        pytest.param("It must wait\nbefore it drinks.\n", {}, id="a word that a sentence was wrapped at"),
        pytest.param("```\nPrompts\n```\n", {}, id="fence"),
        pytest.param("<!--\nPrompts:\n-->\n", {}, id="comment"),
    ],
)
def test_lines_above_the_first_label(body: str, reported: dict[str, list[int]], load: Callable[[str], Loaded]) -> None:
    found: dict[str, list[int]] = {}
    for one in load(f"# Drink\n\n{body}\n{BOTH}").diagnostics:
        found.setdefault(one.code, []).append(one.line)
    assert found == reported


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("And also\n\n- sip\n", "unread-list", id="list after prose"),
        pytest.param("It sips.\n", "unread-text", id="prose"),
        pytest.param("---\n\n```\nsip\n```\n", "unread-list", id="fence after a rule"),
        pytest.param("<div>\nsip\n</div>\n", "unread-text", id="text in HTML"),
        pytest.param("| a | b |\n|---|---|\n| sip | gulp |\n", "unread-text", id="table"),
        pytest.param("### Tone\n\n- It is friendly.\n", "heading-in-field", id="list below a deeper heading"),
        pytest.param("### Tone\n\nIt is friendly.\n", "heading-in-field", id="text below a deeper heading"),
    ],
)
def test_text_behind_the_fields_of_a_case(body: str, code: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Drink\n\n{BOTH}{body}")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [(code, 14)]


@pytest.mark.parametrize(
    "body", ["**Note:** it is slow.\n", "### Notes\n\n- slow\n", "<details>\n\n</details>\n", "---\n"]
)
def test_remarks_and_markup_are_fine(body: str, only_case: Callable[[str], Case]) -> None:
    only_case(f"# Drink\n\n{BOTH}{body}")


def test_a_before_may_be_called_before(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Before\n{BOTH}\n# Drink\n{BOTH}**Befores:**\n- Before\n")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert loaded.suite.cases[1].befores == [0]


@pytest.mark.parametrize("body", ["**Invoke** [Pour](#pour)\n", "**Invoke**\n[Pour](#pour)\n"])
def test_an_unknown_label_above_a_link_is_reported_in_any_section(body: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"{POUR}\n# Drink\n\n{body}")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [("unknown-label", 16)]


def test_a_table_of_prompts_and_expectations(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"{POUR}\n# Drink\n\n| Prompts | Expectations |\n|---|---|\n| drink | It drinks. |\n")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [("label-not-read", 16)]


@pytest.mark.parametrize("name", ["Prompt injection", "Before noon", "Input", "Expected failures", "Chain of thought"])
def test_a_case_may_be_called_so(name: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Security\n\n## {name}\n\n{BOTH}## Other\n\n{BOTH}")
    assert loaded.diagnostics == []
    assert loaded.suite is not None
    assert [case.name for case in loaded.suite.cases] == [name, "Other"]
