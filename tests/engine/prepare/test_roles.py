"""Judges and simulators are resolved before anything runs, and a missing key is named."""

from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project

from atp.base.diagnostics import Diagnostic, LoadError
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input

ECHO = """
    def run(prompt):
        return f"you said {prompt}"
"""

PROMPT = "---\nconnector: {}\n---\n\nYou are kind.\n"
SPEAK = "def speak(said):\n    return {'input': 'hello?'}\n"
IN_WORDS = """\
    ---
    target: agents/kind.md
    ---
    # Case
    **Prompts:**
    - hello
    **Expectations:**
    - it was kind
    """


def test_a_plan_needs_no_key(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("openai.gpt-4o-mini"))
    file = project.cases("a")
    ran = project.atp("test", file, "-n", "kind", "--dry-run")
    assert ran.code == 0
    assert "kind × a " in ran.out
    assert ran.err.startswith("warning[no-key]: agents/kind.md:2:12: the agent `kind` needs a model: ")
    assert "help: set OPENAI_API_KEY" in ran.err
    assert project.atp("test", file, "-n", "kind").code == 2


def test_a_plan_with_a_slip_in_a_connector_is_refused(project: Project) -> None:
    project.write("agents/kind.md", PROMPT.format("opnai.gpt-4o-mini"))
    ran = project.atp("test", project.cases("a"), "-n", "kind", "--dry-run")
    assert ran.code == 2
    assert "there is no connector `opnai.gpt-4o-mini`" in ran.err


def test_a_judge_without_its_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("words.test.md", IN_WORDS)
    call = ("test", "words.test.md", "-n", "agent.py:answer")
    keyless = project.atp(*call, "--assessor", "openai.gpt-4o")
    assert keyless.code == 2
    assert "help: set OPENAI_API_KEY" in keyless.err
    assert "module:function" not in keyless.err
    planned = project.atp(*call, "--assessor", "openai.gpt-4o", "--dry-run")
    assert (planned.code, "warning[no-key]: the judge needs" in planned.err) == (0, True)
    nobody = project.atp(*call)
    assert (nobody.code, "--assessor scripts:file.function" in nobody.err) == (2, True)


def test_a_simulator_in_a_script_needs_no_key(project: Project) -> None:
    project.write("agent.py", "def answer(prompt): return 'hello'")
    project.write("scripts/buyer.py", SPEAK)
    checkpoints = [{"id": "greeted", "assert": {"type": "contains", "value": "hello"}}]
    case = {"id": "a", "simulator": {"use": "scripts.buyer.speak"}, "checkpoints": checkpoints}
    ran = project.test(project.cases(case), "-n", "agent.py:answer")
    assert ran.statuses == {"a": "passed"}
    keyless = project.test(project.cases({**case, "simulator": {"use": "openai.gpt-4o"}}), "-n", "agent.py:answer")
    assert (keyless.code, "help: set OPENAI_API_KEY" in keyless.err) == (2, True)


def test_without_a_judge_nothing_is_run_that_needs_one(project: Project) -> None:
    project.write("agent.py", ECHO)
    file = project.suite(
        [{"name": "echo", "type": "custom", "config": {"entry": "agent.py:run"}}],
        [{"id": "judged", "assertions": [{"type": "llm_eval", "criteria": "completeness"}]}],
    )
    ran = project.test(file)
    assert ran.code == 2
    assert "no model is set for the judge" in ran.err
    assert "--role-connector" in ran.err


CALLED = """\
test_suite: s
agents:
  - {name: echo, type: custom, config: {entry: "agent.py:run"}}
tests:
  - {id: plain, name: plain, task: {description: hello}, assertions: [{type: contains, value: hello}]}
"""
JUDGED = (
    CALLED
    + "  - {id: j, name: j, task: {description: hello}, assertions: [{type: llm_eval, criteria: completeness}]}\n"
)
VARIED = """\
---
target: agents/kind.md
iterations: 3
---
# Case
**Prompts:**
- hello

**Expected:** contains `hello`
"""
ECHOED = {"name": ["agent.py:run"], "assessor": "scripts:buyer.speak"}
PROMPTED = CALLED.replace(
    'custom, config: {entry: "agent.py:run"}', "prompt, config: {path: agents/kind.md, connector: %s}"
)


@pytest.mark.parametrize(
    ("file", "content", "flags", "place"),
    [
        ("judged.yaml", JUDGED, {"role_connector": "%s"}, ("judged.yaml", 6)),
        ("judged.yaml", JUDGED, {"assessor": "%s"}, ("judged.yaml", 6)),
        ("varied.test.md", VARIED, {"generator": "%s", **ECHOED}, ("varied.test.md", 5)),
        ("prompted.yaml", PROMPTED, {}, ("prompted.yaml", 3)),
    ],
)
def test_who_needs_a_model_that_is_not_there_is_named_with_the_place(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    content: str,
    flags: dict[str, Any],
    place: tuple[str, int],
) -> None:
    monkeypatch.chdir(project.folder)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    project.write("agent.py", ECHO)
    project.write("scripts/buyer.py", SPEAK)
    project.write("agents/kind.md", "You are kind.\n")

    def found(connector: str, **more: Any) -> list[Diagnostic]:
        project.write(file, content.replace("%s", connector))
        named = {key: connector if value == "%s" else value for key, value in flags.items()}
        try:
            return prepare(Input((file,)), {**named, **more}).warnings
        except LoadError as error:
            return error.diagnostics

    keyless = [one for one in found("openai.gpt-4o") if one.severity == "error"]
    planned = [one for one in found("openai.gpt-4o", dry_run=True) if one.code == "no-key"]
    misspelled = [one for one in found("opnai.gpt-4o", dry_run=True) if one.severity == "error"]
    assert (len(keyless), len(planned), len(misspelled)) == (1, 1, 1)
    for one in (*keyless, *planned, *misspelled):
        assert "needs a model" in one.message
        assert (Path(one.file or "").name, one.line) == place


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ("", "1:1"),
        ("---\ndescription: x\n---\n", "1:1"),
        ("---\ndescription: x\nconnector: opnai.x\n---\n", "3:12"),
        ("---\nmodel:   opnai.x\n---\n", "2:10"),
        ("---\nconfig:\n  model: opnai.x\n---\n", "3:10"),
    ],
)
def test_a_prompt_agent_that_needs_a_model_is_named_with_the_place_in_its_file(
    project: Project, monkeypatch: pytest.MonkeyPatch, head: str, place: str
) -> None:
    monkeypatch.chdir(project.folder)
    project.write("agents/kind.md", f"{head}You are kind.\n")
    with pytest.raises(LoadError, match=rf"agents/kind\.md:{place}: the agent `kind` needs a model"):
        prepare(Input((project.cases("a"),)), {"name": ["kind"]})
