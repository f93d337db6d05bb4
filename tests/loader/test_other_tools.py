"""Hints for what other tools write: types, keys, defaults of variables, whole files."""

import pytest

from atp.base.diagnostics import LoadError
from atp.loader import TestLoader

SUITE = """\
test_suite: s
agents: [{agent}]
tests:
  - {{id: a, name: A, input: x, assertions: [{assertion}]}}
"""
AGENT = "{name: a, type: custom, config: {entry: a.py:f}}"
CHECK = "{type: contains, value: x}"


def hint(agent: str = AGENT, assertion: str = CHECK) -> str:
    with pytest.raises(LoadError) as raised:
        TestLoader(env={}).load_string(SUITE.format(agent=agent, assertion=assertion), "yaml")
    return str(raised.value.diagnostics[0].hint)


@pytest.mark.parametrize(
    ("assertion", "told"),
    [
        ("{type: file_exists, path: a}", "artifact_exists"),
        ("{type: file_contains, path: a, value: x}", "artifact_exists"),
        ("{type: contains, path: a, pattern: x, value: y}", "artifact_exists"),
        ("{type: no_errors}", "`type: behavior` with `check: no_errors`"),
        ("{type: llm_judge, prompt: x}", "`type: llm_eval` with `criteria`"),
        ("{type: llm-rubric, value: x}", "`type: llm_eval` with `criteria`"),
        ("{type: llm_eval, prompt: x, criteria: y}", "did you mean `criteria`?"),
        ("{type: tool_called, tool: x, name: y}", "did you mean `name`?"),
        ("{type: tool_called, name: x, args: {}}", "did you mean `arguments`?"),
    ],
)
def test_assertions_of_other_tools(assertion: str, told: str) -> None:
    assert told in hint(assertion=assertion)


@pytest.mark.parametrize(("kind", "told"), [("python", "`type: custom`"), ("shell", "`type: cli`")])
def test_agents_of_other_tools(kind: str, told: str) -> None:
    assert told in hint(agent=f"{{name: a, type: {kind}, config: {{}}}}")


def test_a_default_as_a_shell_writes_it_is_a_warning() -> None:
    def warnings(default: str) -> list[str]:
        agent = '{name: a, type: custom, config: {entry: a.py:f, x: "${X:' + default + '}"}}'
        text = SUITE.format(agent="AGENT", assertion=CHECK).replace("AGENT", agent)
        with pytest.raises(LoadError) as raised:
            TestLoader(env={}, strict=True).load_string(text + "bad: 1\n", "yaml")
        return [one.code for one in raised.value.diagnostics if one.severity == "warning"]

    assert warnings("-fallback") == ["shell-default"]
    assert warnings("-1") == warnings("-.5") == warnings("a-b") == []


def test_a_file_of_promptfoos() -> None:
    text = "prompts: [file://a.txt]\nproviders: [openai:gpt-4o]\ntests: [{vars: {a: 1}}]\n"
    with pytest.raises(LoadError) as raised:
        TestLoader(env={}).load_string(text, "yaml")
    assert [one.code for one in raised.value.diagnostics] == ["other-format"]


@pytest.mark.parametrize("value", ['"yes"', "1", '"no"', "0"])
def test_skip_is_true_or_false_and_nothing_else(value: str) -> None:
    with pytest.raises(LoadError) as raised:
        TestLoader(env={}).load_string(f'{{"id": "a", "input": "x", "skip": {value}}}', "jsonl")
    assert "`skip` must be true or false" in raised.value.diagnostics[0].message


def test_skip_may_come_from_a_variable() -> None:
    text = SUITE.format(agent=AGENT, assertion=CHECK).replace("input: x", 'input: x, skip: "${SKIP:false}"')
    assert TestLoader(env={"SKIP": "true"}).load_string(text, "yaml").tests[0].skip is True
    assert TestLoader(env={}).load_string(text, "yaml").tests[0].skip is False
