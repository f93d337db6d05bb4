"""The frontmatter: what it may say, and every mistake in it at its place."""

from collections.abc import Callable

import pytest

from atp.loader.load import Loaded, load_text
from atp.loader.markdown.frontmatter import agent_file
from atp.loader.source import LoadContext

CASE = "# Case\n\n**Prompts:**\n- a\n- b\n**Expectations:**\n- c\n"


def test_all_it_may_say(expect: Callable[..., Loaded]) -> None:
    suite = expect(
        f"""---
TARGET: agents/ocean.md
Assessor: /agents/test-assessor
iterations: "50"
description: What it tests
generator: agents/sub/generator.md
runs: 3
timeout: 5m
tags: [slow, sea]
pass_rate: 0.9
budget_usd: 1.5
---
{CASE}**Tags:** own, slow
""",
        "markdown",
    ).suite
    assert suite is not None
    [case] = suite.cases
    assert (suite.target, suite.assessor) == ("agents/ocean.md", "/agents/test-assessor")
    assert (suite.generator, suite.description) == ("agents/sub/generator.md", "What it tests")
    assert (suite.iterations, case.iterations) == (50, 50)
    assert (suite.defaults.runs_per_test, case.runs) == (3, 3)
    assert (suite.defaults.timeout_seconds, case.limits.timeout_seconds) == (300, 300)
    assert (suite.defaults.pass_rate, case.pass_rate) == (0.9, 0.9)
    assert suite.defaults.constraints is not None
    assert (suite.defaults.constraints.budget_usd, case.limits.budget_usd) == (1.5, 1.5)
    assert case.tags == ["own", "slow", "sea"]


def test_tags_with_commas() -> None:
    suite = load_text(f"---\ntarget: agents/a.md\ntags: slow, sea\n---\n{CASE}", "markdown").suite
    assert suite is not None
    assert suite.cases[0].tags == ["slow", "sea"]


@pytest.mark.parametrize(
    "text",
    [
        f"«missing-frontmatter»{CASE}",
        f"«missing-frontmatter»\n\nSome text\n\n---\n\n{CASE}",
        f"«missing-target»«warning:missing-assessor»---\n---\n{CASE}",
        f"«missing-target»«warning:missing-assessor»---\n# only a comment\n---\n{CASE}",
        f"\n\n«missing-target»«warning:missing-assessor»---\ntarget:\nassessor:\n---\n{CASE}",
        f"«warning:missing-assessor»---\ntarget: agents/a.md\n---\n{CASE}",
        f"«missing-target»---\nassessor: agents/a.md\n---\n{CASE}",
        f"«unclosed-frontmatter»---\ntarget: agents/a.md\nassessor: agents/a.md\n\n{CASE}",
        f"«unclosed-frontmatter»---\ntarget: agents/a.md\nassessor: agents/a.md\n{CASE}",
        f"---\n«wrong-type»- target\n---\n{CASE}",
        f"---\n«wrong-type»just text\n---\n{CASE}",
        f"---\ntarget: «syntax»[a\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\n«duplicate-key»target: agents/b.md\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\n«duplicate-key»TARGET: agents/b.md\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\niterations: «out-of-range»0\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\niterations: «out-of-range»-3\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\niterations: «wrong-type»1.5\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\niterations: «wrong-type»many\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\niterations: «wrong-type»true\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\n«empty»iterations:\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\n«unknown-key»iteration: 5\n---\n{CASE}",
        f"---\ntarget: agents/a.md\n«unknown-key»asessor: agents/a.md\n---\n{CASE}",
        f"---\n«unknown-key»Targte: agents/a.md\nassessor: agents/a.md\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\n«warning:unknown-key»layout: page\n---\n{CASE}",
        f"---\ntarget: «wrong-type»[agents/a.md]\nassessor: agents/a.md\n---\n{CASE}",
        f"---\ntarget: «outside-agents»../x.md\nassessor: agents/a.md\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: «outside-agents»/etc/passwd\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\nGenerator: «outside-agents»agents/../x.md\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\ntimeout: «duration»soon\n---\n{CASE}",
        f"---\ntarget: agents/a.md\nassessor: agents/a.md\npass_rate: «out-of-range»2\n---\n{CASE}",
        "---\ntarget: agents/a.md\nassessor: agents/a.md\n---\n«no-case»",
        "---\ntarget: agents/a.md\nassessor: agents/a.md\n---\n«no-case»# A heading\n\nSome text.\n",
    ],
)
def test_mistakes(text: str, expect: Callable[..., Loaded]) -> None:
    loaded = expect(text, "markdown")
    assert loaded.suite is not None
    if "# Case" in text:
        assert [case.name for case in loaded.suite.cases] == ["Case"]
        assert loaded.suite.cases[0].chains == [["a"], ["b"]]


def test_the_command_line_names_agent_and_assessor() -> None:
    given = LoadContext(env={}, agent=True, assessor=True)
    assert load_text(f"---\ndescription: x\n---\n{CASE}", "markdown", given).diagnostics == []
    codes = [one.code for one in load_text(CASE, "markdown", given).diagnostics]
    assert codes == ["missing-frontmatter"]


@pytest.mark.parametrize("text", [CASE, f"---\ntarget: helper.py:convert\nassessor: agents/a.md\n---\n{CASE}"])
def test_the_hint_says_how_to_test_a_python_function(text: str) -> None:
    (found,) = [one for one in load_text(text, "markdown").diagnostics if one.severity == "error"]
    assert found.code in ("missing-frontmatter", "outside-agents")
    assert "`type: custom`" in (found.hint or "")
    assert "-n helper.py:convert" in (found.hint or "")


def test_a_rate_in_percent_is_recognized() -> None:
    text = f"---\ntarget: agents/a.md\nassessor: agents/a.md\npass_rate: 60\n---\n{CASE}"
    (found,) = load_text(text, "markdown").diagnostics
    assert found.hint == "give a number from 0 to 1: `0.6`, if 60 % is meant"


@pytest.mark.parametrize("key", ["assessor", "generator"])
def test_the_hint_says_how_a_function_gets_a_role(key: str) -> None:
    text = f"---\ntarget: agents/a.md\n{key}: scripts:house.judge\n---\n{CASE}"
    (found,) = [one for one in load_text(text, "markdown").diagnostics if one.severity == "error"]
    role = f'`--{key} scripts:house.judge`, or with `{key} = "scripts:house.judge"` in atp.toml'
    assert found.hint == f"name a function with {role}"


def test_two_mistakes_are_two_errors(expect: Callable[..., Loaded]) -> None:
    expect(
        "---\ntarget: «outside-agents»x.md\niterations: «out-of-range»0\n«unknown-key»assesor: agents/a.md\n---\n"
        + CASE,
        "markdown",
    )


@pytest.mark.parametrize(
    ("written", "file"),
    [
        ("agents/x.md", "agents/x.md"),
        ("/agents/x.md", "agents/x.md"),
        ("agents/x", "agents/x.md"),
        ("./agents/a/../x.md", "agents/x.md"),
        ("agents/a/b.md", "agents/a/b.md"),
        ("../x.md", None),
        ("/etc/passwd", None),
        ("agents/../../x.md", None),
        ("agents", None),
        ("agents/", None),
        ("agentsx/y.md", None),
        ("x.md", None),
        ("agents\\x.md", None),
        ("https://example.com/agents/x.md", None),
    ],
)
def test_agent_files(written: str, file: str | None) -> None:
    assert agent_file(written) == file


def test_an_id_that_is_taken_names_the_line_that_has_it() -> None:
    head = "---\ntarget: agents/a.md\nassessor: agents/a.md\n---\n"
    case = "# {0}\n\n**ID:** a\n\n**Prompts:**\n\n- x\n\n**Expectations:**\n\n- The answer contains `x`.\n\n"
    (found,) = load_text(head + case.format("One") + case.format("Two"), "markdown").diagnostics
    assert (found.code, found.line, found.hint) == ("duplicate-id", 19, "change it: line 7 has it, too")
