"""The real local model from end to end: a prompt agent on it, its instability, and that it must not judge."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project

pytestmark = pytest.mark.usefixtures("smollm2")

AGENT = """\
---
connector: local
temperature: 0.8
max_tokens: 24
---

You answer with one word.
"""
SUITE = """\
---
target: agents/quiz.md
assessor: agents/nobody.md
runs: 5
pass_rate: 0.2
---

# Quiz

## Capital

**Prompts:**

- What is the capital of France?

**Expectations:**

- The response contains "Paris".
- No tools were called.
- No errors.

## Number

**Prompts:**

- Say a long number that nobody has ever said.

**Expectations:**

- The response does not contain "Paris".
"""


def write(project: Project, suite: str = SUITE) -> None:
    project.write("agents/quiz.md", AGENT)
    project.write("quiz.test.md", suite)


def test_five_runs_are_judged_exactly_and_differ(project: Project) -> None:
    write(project)
    ran = project.test("quiz.test.md")
    assert ran.code == 0, ran.err  # the assessor is not there, and nobody misses it
    capital, number = ran.results["capital"], ran.results["number"]
    trials = project.trials()
    assert len(trials) == 10
    answers = [one["transcript"]["turns"][-1]["output"] for one in trials if one["case"] == "number"]
    assert len(set(answers)) > 1, "the same five times, at a temperature of 0.8"
    assert number["output_consistency"] < 1
    passed = sum(one.get("status", "passed") == "passed" for one in trials if one["case"] == "capital")
    assert capital["pass_rate"] == 20 * passed
    assert all(one["transcript"]["usage"]["cost_usd"] == 0 for one in trials)
    report = json.loads((project.folder / "quiz.tps.json").read_bytes())
    assert report["cases"][0]["summary"]["successes"] == [passed, 5, 5]


def test_it_is_refused_as_a_judge_unless_told_otherwise(project: Project) -> None:
    write(project, SUITE.replace('The response contains "Paris".', "The answer is a city.").replace("runs: 5\n", ""))
    project.write("agents/weak.md", "---\nconnector: local\nmax_tokens: 160\n---\n\nYou judge.\n")
    project.write("atp.toml", '[connectors.tiny]\ntype = "local"\nsettings = { max_tokens = 32, temperature = 0 }\n')
    for judge in ("local", "tiny", "agents/weak.md"):
        refused = project.atp("test", "quiz.test.md", "--run", "Capital", "--assessor", judge)
        assert refused.code == 2
        assert "error[no-judge]: case `capital`: its expectation " in refused.err
        assert f"{judge} must not judge: SmolLM2-135M is made to test against" in refused.err
        assert "no better than a coin" in refused.err
        assert "allow this one with --weak-judge" in refused.err
    check = {"type": "agent", "use": "agents:weak", "options": {"metadata": {"criteria": "a city"}}}
    validated = project.cases({"id": "city", "input": "Paris?", "assert": check})
    refused = project.atp("test", validated, "-n", "quiz")
    assert refused.code == 2
    assert "weak must not judge" in refused.err
    assert project.runs() == []
    ran = project.test("quiz.test.md", "--run", "Capital", "--assessor", "tiny", "--weak-judge", "--timeout", "10m")
    result = ran.results["capital"]
    # Whatever it decides, or fails to: it was asked, and an answer that is none passes nobody.
    assert (result["status"], result.get("blame")) in [("passed", None), ("failed", None), ("error", "judge")]
    assert any("the judge runs on the agent's own model" in one for one in result["warnings"])


def test_a_chat_with_it_becomes_a_case(project: Project) -> None:
    write(project)
    chat = project.atp("chat", "quiz", "--save", "case.jsonl", "--name", "Capitals", input="Hello\nWhat is Paris?\n")
    assert chat.code == 0, chat.err
    assert len(chat.out.strip().splitlines()) >= 2
    (case,) = [json.loads(line) for line in (project.folder / "case.jsonl").read_text("utf-8").splitlines()]
    assert [one["role"] for one in case["messages"]] == ["user", "assistant", "user"]
    assert project.test("case.jsonl", "-n", "quiz").statuses == {"capitals": "passed"}


def test_without_it_everything_is_said_before_anything_runs(project: Project, tmp_path: Path) -> None:
    write(project)
    nowhere = {"ATP_DATA_DIR": str(tmp_path / "nowhere")}
    ran = project.atp("test", "quiz.test.md", env=nowhere)
    assert ran.code == 2
    assert "the local model smollm2 is not installed" in ran.err
    assert "atp models install smollm2" in ran.err
    listed: dict[str, Any] = json.loads(project.atp("models", "--json", env=nowhere).out)
    assert [(one["id"], one["problem"]) for one in listed["connectors"]][-1] == (
        "local",
        "the local model smollm2 is not installed",
    )
