"""What a plan shows of expectations: which ones are exact and need no judge, and who decides on the rest."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project

OCEAN = """\
---
target: agents/ocean.md
assessor: agents/judge.md
---

# Ocean

## Warm

**Prompts:**

- warm the ocean
- leave it

**Expectations:**

- the warm_ocean function was called
- The file log.txt exists.
- no errors

## Cool

**Before:** Warm

**Prompts:**

- cool it

**Expectations:**

- warm_ocean was called once
"""
AGENT = """
    def run(prompt, workspace):
        (workspace / "log.txt").write_text(prompt)
        calls = [{"name": "warm_ocean"}] if prompt == "warm the ocean" else []
        return {"output": "done", "tool_calls": calls}
"""


def write(project: Project) -> None:
    project.write("ocean.test.md", OCEAN)
    project.write("agent.py", AGENT)
    project.write("agents/ocean.md", "---\ntype: custom\nconfig:\n  entry: ../agent.py:run\n---\n")


def report(project: Project, name: str = "ocean.tps.json") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project.folder / name).read_bytes())
    return found


def test_exact_expectations_need_no_judge_and_give_a_tps_report(project: Project) -> None:
    write(project)
    ran = project.test("ocean.test.md", "--runs", "2", "--parallel", "3")
    assert ran.code == 1, ran.err
    assert ran.statuses == {"warm": "failed", "cool": "passed"}
    found = report(project)
    summary, (warm, cool) = found["summary"], found["cases"]
    assert (summary["iterations"], summary["completed"], summary["path"]) == (4, 4, "ocean.test.md")
    assert (summary["target"], summary["assessor"]) == ("agents/ocean.md", "agents/judge.md")
    assert warm["summary"]["successes"] == [2, 4, 4]
    assert [one["prompts"] for one in warm["iterations"]] == [["warm the ocean"]] * 2 + [["leave it"]] * 2
    assert (cool["summary"]["dependencies"], cool["summary"]["successes"]) == ([0], [2])
    missed = warm["iterations"][2]["outcomes"][0]
    assert missed["outcome"] is False
    assert missed["reasoning"][0].startswith("expected `warm_ocean` to be called, found no tool calls")


def test_a_report_that_can_not_be_written_is_exit_3(project: Project) -> None:
    write(project)
    project.write("ocean.tps.json/taken", "")
    ran = project.test("ocean.test.md", "--run", "cool")
    assert ran.statuses == {"cool": "passed"}
    assert ran.code == 3
    assert "ocean.tps.json: " in ran.err


def test_the_plan_shows_what_is_exact_and_who_decides_on_the_rest(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("judge.py", "def run(prompt):\n    return '{}'")
    task = {"description": "x", "expected_artifacts": ["a.txt", "b.txt"]}
    cases: list[dict[str, Any]] = [
        {"id": "words", "input": "x", "expectations": ["no errors", "it is kind", "it is short"]},
        {"id": "expected", "input": "x", "expected": "done"},
        {"id": "files", "task": task},
        {"id": "eval", "input": "x", "assert": {"type": "llm_eval", "criteria": "kind", "votes": 3}},
    ]
    file, flags = (
        project.cases(*cases),
        ["-n", "agent.py:run", "--assessor", "judge.py:run", "--dry-run", "--runs", "2"],
    )
    dry = project.atp("test", file, *flags)
    assert dry.code == 0, dry.err
    assert dry.out.count("    expects: no errors → behavior no_errors\n") == 1
    assert dry.out.count("    expects: it is kind → the assessor decides\n") == 1
    assert "8 calls of judges" in dry.out
    *trials, plan = project.test(file, *flags).events
    assert [one["assertions"] for one in trials[::2]] == [3, 1, 2, 1]
    assert trials[0]["expectations"][0] == {"text": "no errors", "check": "behavior no_errors"}
    assert trials[0]["expectations"][1] == {"text": "it is kind", "check": None}
    assert [one.get("judge_calls") for one in trials[::2]] == [1, None, None, 3]
    assert plan["judge_calls"] == 8
    each = project.test(file, *flags, "--judge-each").events[-1]
    assert each["judge_calls"] == 10


def test_the_plan_shows_the_wording_that_would_be_exact(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    project.write("scripts/house.py", "def judge(asked): return {}")
    file = project.cases({"id": "a", "input": "x", "expectations": ["the Search tool was called"]})
    ran = project.atp("test", file, "-n", "agent.py:run", "--assessor", "scripts:house.judge", "--dry-run")
    assert ran.code == 0, ran.err
    assert "→ the assessor decides (exact if it says: the `Search` tool was called)" in ran.out


DESK = """\
---
commands: ["tools.py:search", "tools.py:help"]
agents: [agents/sea/helper.md]
tools: {open: {result: ok}}
---
You work at a desk.
"""
WORDS = {
    "Search was called twice.": "tool_called search, times 2",
    "it never calls help": "not_tool_called help",
    "the open tool was called": "tool_called open",
    "the sea_helper tool was called": "tool_called sea_helper",
    "Bob was not called": None,
}


@pytest.mark.parametrize("kind", ["target", "suite", "package"])
def test_a_word_that_is_a_tool_of_the_agent_names_it(project: Project, kind: str) -> None:
    """In all of `show`, `validate` and the plan, so that a case without other expectations needs no judge."""
    words = [text for text, check in WORDS.items() if check]
    project.write("agents/desk.md", DESK)
    project.write("agents/sea/helper.md", "You help.")
    project.write("agents/tools.py", "def search(q: str): ...\ndef help(q: str): ...")
    if kind == "target":
        file = "desk.test.md"
        listed = "\n".join(f"- {text}" for text in words)
        project.write(
            file, f"---\ntarget: agents/desk.md\n---\n# C\n**Prompts:**\n- x\n\n**Expectations:**\n{listed}\n"
        )
    elif kind == "suite":
        agent = {"name": "desk", "type": "prompt", "config": {"path": "agents/desk"}}
        file = project.suite([agent], [{"id": "c", "input": "x", "expectations": words}])
    else:
        head = {"name": "desk", "connector": "openai.x", "commands": ["../../agents/tools.py:search"]}
        project.write("assistants/desk/package.yao", head)
        project.write("assistants/desk/prompts.yml", [{"role": "system", "content": "You work."}])
        words = words[:1]
        file = project.cases({"id": "c", "input": "x", "expectations": words}, name="assistants/desk/tests/c.jsonl")
    shown = json.loads(project.atp("show", "--json", file).out)["cases"][0]
    assert shown["exact"] == [WORDS[text] for text in words]
    assert project.atp("validate", file).code == 0
    *trials, _ = project.test(file, "-c", "openai.x", "--dry-run").events
    assert [one["check"] for one in trials[0]["expectations"]] == [WORDS[text] for text in words]
    assert "judge_calls" not in trials[0]


def test_an_agent_that_names_no_tools_leaves_words_in_doubt_to_the_judge(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    project.write("scripts/house.py", "def judge(asked): return {}")
    file = project.cases({"id": "a", "input": "x", "expectations": list(WORDS)})
    *trials, _ = project.test(file, "-n", "agent.py:run", "--assessor", "scripts:house.judge", "--dry-run").events
    checks = {one["text"]: one["check"] for one in trials[0]["expectations"]}
    assert checks == dict.fromkeys(WORDS) | {"the sea_helper tool was called": "tool_called sea_helper"}


def test_what_no_agent_of_this_kind_can_show_is_an_error_of_the_plan(project: Project) -> None:
    project.write("says.py", "print('hello')")
    agent = {"name": "text", "type": "cli", "config": {"command": [sys.executable, "says.py"], "protocol": "text"}}
    test: dict[str, Any] = {"id": "words", "input": "x", "expectations": ["the delete_all function was not called"]}
    ran = project.atp("test", project.suite([agent], [test]))
    assert ran.code == 2
    assert "error[unobservable]" in ran.err
    assert "can never report its tool calls (`not_tool_called` delete_all)" in ran.err
    assert not list(Path(project.folder).glob(".atp/runs/*"))


def test_prompts_that_are_still_to_be_made_are_said_to_be_missing(project: Project) -> None:
    write(project)
    project.write("ocean.test.md", OCEAN.replace("assessor: agents/judge.md", "iterations: 5"))
    ran = project.atp("test", "ocean.test.md", "--dry-run")
    assert ran.code == 0, ran.err
    assert "2 cases, 10 trials, 3 calls of agents" in ran.out
    assert "7 trials have prompts that are still to be made; their calls are not counted" in ran.out


PATTERN_IN_MARKDOWN = """\
---
target: agents/a.md
---

# A

**Prompt:** hi

**Expectations:**

- no errors
- the response
  matches /(shipped/
"""


@pytest.mark.parametrize("command", [("validate",), ("test", "--dry-run"), ("test",)])
@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        (
            "a.test.md",
            PATTERN_IN_MARKDOWN,
            "12:3",
        ),
        ("a.jsonl", '{"id": "A",\n "input": "hi",\n "expectations": [\n  "the response matches /(shipped/"]}\n', "4:4"),
    ],
)
def test_a_pattern_that_can_not_be_compiled_is_an_error_at_its_expectation(
    project: Project, command: tuple[str, ...], name: str, text: str, place: str
) -> None:
    project.write("agent.py", "def answer(prompt):\n    raise SystemExit('the agent was asked')\n")
    project.write("scripts/house.py", "def judge(asked):\n    raise SystemExit('the judge was asked')\n")
    project.write("agents/a.md", "---\ntype: custom\nconfig:\n  entry: ../agent.py:answer\n---\n")
    project.write(name, text)
    flags = ("--assessor", "scripts:house.judge", *(("-n", "agent.py:answer") if command[0] == "test" else ()))
    ran = project.atp(*command, name, *flags)
    assert ran.code == 2, ran.err
    why = "not a regular expression: missing ), unterminated subpattern at position 0"
    found = ran.out if command[0] == "validate" else ran.err
    assert "error[regex]: case `" in found
    assert f'"the response matches /(shipped/": {why}\n  --> {name}:{place}\n' in found
    assert "was asked" not in ran.out + ran.err


@pytest.mark.parametrize("command", [("validate",), ("test", "--dry-run", "-n", "agent.py:answer")])
@pytest.mark.parametrize(("expectation", "warned"), [("no errors", False), ("the answer is kind", True)])
def test_a_missing_assessor_is_warned_of_only_if_one_is_needed(
    project: Project, command: tuple[str, ...], expectation: str, warned: bool
) -> None:
    project.write("agent.py", "def answer(prompt):\n    return prompt\n")
    project.write("agents/a.md", "Be kind.\n")
    head = "---\ntarget: agents/a.md\n---\n\n# A\n\n**Prompt:** hi\n\n**Expectations:**\n\n"
    project.write("a.test.md", f"{head}- {expectation}\n")
    ran = project.atp(*command, "a.test.md", "--role-connector", "openai.x", env={"OPENAI_API_KEY": "k" * 20})
    assert ran.code == 0, ran.err
    assert ("warning[missing-assessor]" in ran.out + ran.err) == warned
