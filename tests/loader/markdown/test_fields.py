"""Labels other than prompts and expectations, and the settings that every dialect takes."""

from collections.abc import Callable

import pytest

from atp.loader.load import Loaded
from atp.suite.case import Case

BOTH = "**Prompts:**\n- a\n\n**Expectations:**\n- b\n\n"


@pytest.mark.parametrize(
    "written",
    [
        "**ID:** warm-1",
        "ID: `warm-1`",
        '**Id**: "warm-1"',
        "**ID:**\n- warm-1",
        "## ID\nwarm-1",
        "- **ID:**\n  - warm-1",
    ],
)
def test_ids(written: str, only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# C\n\n{written}\n\n{BOTH}").id == "warm-1"


@pytest.mark.parametrize(
    "written",
    [
        "**Tags:** sea, slow",
        "Tags: `sea`, slow",
        "**Tags:** #sea #slow",
        "**Tags:**\n- sea\n- slow",
        "**Tags:** [sea, slow]",
        "**Tags:** [\"sea\", 'slow']",
        "**Tags:** sea; slow",
        '**Tags:** "sea", `slow`',
        "**Tags:**\n```\nsea\nslow\n```",
        "## Tags\n* sea\n* slow",
    ],
)
def test_tags(written: str, only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# C\n\n{BOTH}{written}\n").tags == ["sea", "slow"]


def test_an_actor_is_the_user(only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# C\n\n**Actor:** alice\n\n{BOTH}").user == "alice"


@pytest.mark.parametrize(
    ("written", "intent"),
    [
        ("Some *prose*\nin two lines.", "Some *prose* in two lines."),
        ("One.\n\n- a\n- b\n\nTwo.", "One.\n\n- a\n- b\n\nTwo."),
        ("**Intent:** This.", "This."),
        ("**Test Intent:**\n\nOne.\n\nTwo.", "One.\n\nTwo."),
        ("**Description:** One.\n\n**Intent:** Two.", "One.\n\nTwo."),
        ("**Intent:**\n- One.\n- Two.", "One.\nTwo."),
        ("[a]: https://example.com\n\nOne.", "One."),
        ("---\n\nOne.\n\n<div>\n", "One."),
        ("", None),
    ],
)
def test_intents(written: str, intent: str | None, only_case: Callable[[str], Case]) -> None:
    assert only_case(f"# C\n\n{written}\n\n{BOTH}").intent == intent


@pytest.mark.parametrize(
    ("written", "key", "value"),
    [
        ("**Skip:** true", "skip", True),
        ("Skip: true", "skip", True),
        ("skip: true", "skip", True),
        ("**Skip**\n\ntrue", "skip", True),
        ("## Skip\ntrue", "skip", True),
        ("## Team\n\nblue", "team", "blue"),
        ("## Metadata\n- depth: 3", "metadata", {"depth": 3}),
        ("**Runs:** 3", "runs", 3),
        ("**Team:** blue", "team", "blue"),
        ("**Pass Rate:** 0.5", "pass_rate", 0.5),
        ("**Min Score:** 70", "min_score", 70),
        ("**Workspace:** files/ocean", "workspace", "files/ocean"),
        ("**Before Hook:** hooks:fill", "before_hook", "hooks:fill"),
        ("**after_hook:** hooks:drain", "after_hook", "hooks:drain"),
        ("**Metadata:**\n- depth: 3\n- name: sea", "metadata", {"depth": 3, "name": "sea"}),
        ("**Metadata:** {depth: 3}", "metadata", {"depth": 3}),
        ("**Metadata:**\n\n```yaml\ndepth:\n  - 3\n```", "metadata", {"depth": [3]}),
    ],
)
def test_settings(written: str, key: str, value: object, only_case: Callable[[str], Case]) -> None:
    assert getattr(only_case(f"# C\n\n{BOTH}{written}\n"), key) == value


def test_limits_of_a_case(only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# C\n\n{BOTH}**Timeout:** 5m\n\n**Constraints:**\n- max_steps: 3\n- allowed_tools: [a]\n")
    assert (case.limits.timeout_seconds, case.limits.max_steps, case.limits.allowed_tools) == (300, 3, ["a"])
    assert case.timeout is None


def test_everyday_words_are_no_settings(load: Callable[[str], Loaded]) -> None:
    prose = "Timeout: it must stop\n\nSkip: not this\n\nOptions:\n\n"
    loaded = load(f"# C\n\n{prose}{BOTH}\n### Metadata\n\nSome prose.\n\n### Options\n- a\n")
    assert [one.code for one in loaded.diagnostics] == ["heading-in-field", "heading-in-field"]
    assert loaded.suite is not None
    [case] = loaded.suite.cases
    assert (case.limits.given(), case.skip, case.options, case.metadata) == ({}, False, None, {})


@pytest.mark.parametrize(
    "body",
    [
        f"# S\n\n## C\n{BOTH}### Timeout\n30s\n",
        f"# S\n\n## C\n### Timeout\n30s\n{BOTH}",
        f"# C\nTimeout: 30s\n{BOTH}",
        f"# C\n{BOTH.rstrip()}\ntimeout: 30s\n",
    ],
)
def test_settings_as_headings_and_plain_labels(body: str, only_case: Callable[[str], Case]) -> None:
    case = only_case(body)
    assert (case.name, case.limits.timeout_seconds, case.expectations) == ("C", 30, ["b"])


def test_a_case_can_be_called_like_a_setting(only_case: Callable[[str], Case]) -> None:
    case = only_case(f"# S\n\n## Timeout\nIt must stop.\n\n{BOTH}")
    assert (case.name, case.intent) == ("Timeout", "It must stop.")


def test_lower_case_labels_below_an_item(only_case: Callable[[str], Case]) -> None:
    case = only_case("# C\nprompts:\n- one\ntags: slow\nid: foo\nexpected: also this\nexpectations:\n- ok\n")
    assert (case.chains, case.tags, case.id, case.expectations) == ([["one"]], ["slow"], "foo", ["also this", "ok"])


def test_lower_case_labels_below_a_value_and_prose(only_case: Callable[[str], Case]) -> None:
    case = only_case("# C\nSome intent\nprompts: one\nand more\ntags: slow\nexpected: ok\n")
    assert (case.intent, case.chains, case.tags, case.expectations) == (
        "Some intent",
        [["one and more"]],
        ["slow"],
        ["ok"],
    )
