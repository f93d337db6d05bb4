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


@pytest.mark.parametrize("behind", ["<br>", " <br/>", "<BR />", "\\", "  ", "\u200b", " \ufeff", "&#8203;"])
def test_a_line_break_behind_a_label_is_no_prompt(behind: str, only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# C\n**Prompts:**{behind}\n- drink\n\n**Expectations**{behind}\n\n- It drinks.\n")
    assert (case.chains, case.expectations) == ([["drink"]], ["It drinks."])


@pytest.mark.parametrize("item", ["", "\u200b", "&ZeroWidthSpace;", "`\u2060`"])
def test_a_prompt_of_which_nothing_is_seen_is_an_error(item: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# C\n**Prompts:**\n- {item}\n- drink\n\n**Expectations**\n- It drinks.\n")
    assert [one.code for one in loaded.diagnostics] == ["empty-prompt"]


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


@pytest.mark.parametrize("text", ["[user]: hello there", "[user]: hello", "[^1]: It sips.", "[a]: b c"])
def test_text_that_begins_like_a_link_definition_is_read(text: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Drink\n\n**Prompts:** drink\n\n{text}\n\n**Expectations:** It drinks.\n\n- It sips.\n\n{text}\n")
    assert loaded.suite is not None
    assert loaded.suite.cases[0].chains == [[f"drink\n\n{text}"]]
    assert [(one.code, one.line) for one in loaded.diagnostics if one.line > 12] == [("unread-text", 16)]


@pytest.mark.parametrize("line", ["[a]: http://x", "[a]: <x y> 'title'", "[a]: x.md", '[a]: #x "title"', "[a]: /x (t)"])
def test_link_definitions_are_neither_sent_nor_reported(line: str, only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# Drink\n\n**Prompts:** drink\n\n{line}\n\n**Expectations:** It drinks.\n").chains == [["drink"]]


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ("**User Prompt:** drink\n\n**My Expectations:** It drinks.\n", {"unknown-label": [8, 10]}),
        ("**Prompt/Input:** drink\n\n**Expected/Then:** It drinks.\n", {"unknown-label": [8, 10]}),
        ("**1. Prompts:** drink\n\n**2. Expectations:** It drinks.\n", {"unknown-label": [8, 10]}),
        ("### User Prompt\n\n- drink\n\n### My Expectations\n\n- It drinks.\n", {"label-not-read": [8, 12]}),
        ("P\u200brompts: drink\n\n**E**xpectations: It drinks.\n", {"label-not-read": [8, 10]}),
    ],
)
def test_a_case_whose_labels_are_other_words_does_not_vanish(
    body: str, reported: dict[str, list[int]], load: Callable[[str], Loaded]
) -> None:
    loaded = load(f"# Drink\n\n{body}\n# Pour\n{BOTH}")
    found: dict[str, list[int]] = {}
    for one in loaded.diagnostics:
        found.setdefault(one.code, []).append(one.line)
    assert found == reported


@pytest.mark.parametrize("body", ["iterations: 50\n---\n", "---\niterations: 50\n---\n", "Iterations: 50\n"])
@pytest.mark.parametrize("key", ["iterations: 50", "assessor: agents/judge.md", "budget_usd: 0.5"])
def test_a_key_of_the_frontmatter_below_it_is_reported(key: str, body: str, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"{body.replace('iterations: 50', key)}\n# Drink\n{BOTH}")
    [one] = loaded.diagnostics
    assert (one.code, "is not in the frontmatter" in one.message) == ("label-not-read", True)


def test_headings_of_prose_are_not_taken_for_labels(load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Guide\n\n## Writing good prompts\n\nShort.\n\n## How it ends\n\nSoon.\n\n# Drink\n{BOTH}")
    assert loaded.diagnostics == []


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        pytest.param("It is cold,\nvery cold. **Tags:**\n- slow\n", "unread-text", 14, id="above a label at the end"),
        pytest.param("<It must be cold>\n", "unread-text", 14, id="text in angle brackets"),
        pytest.param("**Actor:**\n- bob\n  - **Tags:** x\n", "nested-list", 16, id="list below an actor"),
        pytest.param("**Tags:**\n- slow\n\n  It is cold.\n", "several-lines", 17, id="text below a tag"),
        pytest.param("**ID:** drink\nIt must be cold.\n", "several-lines", 15, id="text below an id"),
        pytest.param("**Metadata:**\n```\na: 1\n```\n- b: 2\n", "several-values", 18, id="list below a block"),
        pytest.param("**Metadata:**\n- a: 1\n  - b: 2\n", "syntax", 16, id="list below a value"),
        pytest.param("**Prompts:**\n- sip\n  **Timeout:** 30s\n", "label-in-item", 16, id="setting in an item"),
    ],
)
def test_text_that_is_no_part_of_a_field(body: str, code: str, line: int, load: Callable[[str], Loaded]) -> None:
    loaded = load(f"# Drink\n\n{BOTH}{body}")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [(code, line)]


def test_a_label_below_a_nested_list_is_reported_beside_the_list(load: Callable[[str], Loaded]) -> None:
    loaded = load("# C\n**Prompts:**\n- drink\n  - sip\n\n    **Expected:** cold\n\n**Expectations:**\n- It drinks.\n")
    assert [(one.code, one.line) for one in loaded.diagnostics] == [("nested-list", 9), ("label-in-item", 11)]


@pytest.mark.parametrize("tags", ["**Tags:** a, b,\n  c", "**Tags:** #a #b\n#c", "**Tags:**\n- a\n- b\n- c"])
def test_tags_may_go_on_in_the_next_line(tags: str, only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# Drink\n{BOTH}{tags}\n").tags == ["a", "b", "c"]


def test_a_list_below_a_key_of_a_setting_is_its_value(only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# Drink\n{BOTH}**Metadata:**\n- a:\n  - x\n  - y: 1\n    z: 2\n- b: 3\n")
    assert case.metadata == {"a": ["x", {"y": 1, "z": 2}], "b": 3}


@pytest.mark.parametrize(
    "fence", ["- ```\n  a\n      ```\n  <!-- b -->\n  ```", "- ~~~\n  a\n      ~~~\n  <!-- b -->\n  ~~~"]
)
def test_a_comment_in_a_fence_stays_where_an_indented_line_looks_like_its_end(
    fence: str, only_case: Callable[[str], Case]
) -> None:
    case = only_case(f"# Drink\n**Prompts:**\n{fence}\n\n**Expectations:** It drinks.\n")
    assert case.chains[0][0].endswith("<!-- b -->")
