"""Document 2's examples from end to end, as printed: its frontmatter above its single prompt and its prompt chain."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.judge import judge
from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels

PRINTED = Path(__file__).parents[1] / "documents" / "markdown" / "document-2"
MODELS = ("-c", "openai.agent")
SUM = "What is 2 plus 2?"
INTENT = "Verify that the AGENT can perform basic arithmetic operations."
CHAIN = [
    "Tell me about the tallest mountain in the world.",
    "Where is it located?",
    "What is the average temperature there?",
]
EXPECTED = [
    "The AGENT should identify Mount Everest as the tallest mountain.",
    "The AGENT should state that Mount Everest is located in the Himalayas on the border of Nepal and China.",
    "The AGENT should provide information about the average temperature at Mount Everest.",
]
FACTS = {
    "tallest mountain": "It is Mount Everest.",
    "located": "In the Himalayas, on the border of Nepal and China.",
    "temperature": "About -19 °C at the summit on average.",
}
ADDED = 'The RESPONSE should be "4".'
SHOWN = dict(zip((ADDED, *EXPECTED), ("4", "Mount Everest", "border of Nepal and China", "-19 °C"), strict=True))
"""What must have been said for an expectation to be met."""
_judge = judge(lambda asked, record: SHOWN[asked] in record)


def printed(name: str) -> str:
    return (PRINTED / f"{name}.md").read_text("utf-8")


def without_iterations() -> str:
    return printed("frontmatter").replace("iterations: 50\n", "")


def write(project: Project, text: str, agent: str = "You know things.\n") -> str:
    """The agents that the document's frontmatter names, and a file of tests."""
    project.write("agents/ocean.md", agent)
    project.write("agents/test-assessor.md", "---\nconnector: anthropic.judge\n---\n\nYou assess tests.\n")
    project.write("knowledge.test.md", text)
    return "knowledge.test.md"


def knowing(facts: dict[str, str]) -> Callable[[Heard], Any]:
    """The models around a test: the assessor, and an agent that knows these facts and can add."""

    def world(heard: Heard) -> Any:
        if "You assess tests" in heard.system:
            return _judge(heard)
        asked = heard.prompt.lower()
        if "2" in asked:
            return facts.get("sum", "4")
        return next((said for words, said in facts.items() if words in asked), "I see.")

    return world


def told(server: MockModels) -> list[list[str]]:
    """What the agent was told in each of its turns: the whole conversation until then."""
    asked = [one for one in server.requests if one.format == "openai"]
    return [[str(message["content"]) for message in one.messages] for one in asked]


def judged(server: MockModels) -> list[Heard]:
    return [one for one in server.requests if one.format == "anthropic"]


@pytest.mark.parametrize(("answer", "status", "code"), [("4", "passed", 0), ("It is 5.", "failed", 1)])
def test_the_single_prompt(project: Project, answer: str, status: str, code: int) -> None:
    file = write(project, without_iterations() + printed("single-prompt"))
    with MockModels(knowing({"sum": answer})) as server:
        ran = project.test(file, *MODELS, env=server.env)
    assert ran.code == code, ran.err
    assert ran.statuses == {"knowledge": status}  # no heading: the file's name is the case's
    assert "knowledge.test.md" in ran.err
    (check,) = ran.results["knowledge"]["assertions"]
    assert (check["name"], check["passed"]) == (ADDED, status == "passed")
    assert told(server) == [[SUM]]
    (asked,) = judged(server)
    assert all(text in asked.prompt for text in (INTENT, SUM, answer))
    # The assessor's file adds to what ATP tells every judge.
    assert asked.system == "You assess tests."
    assert "You are the assessor in a test" in asked.prompt
    assert asked.schema is not None
    assert "mark" in asked.schema["required"]


def test_the_single_prompt_in_fifty_variations(project: Project) -> None:
    file = write(project, f"{printed('frontmatter')}\n# Arithmetic\n\n{printed('single-prompt')}")
    with MockModels(knowing({})) as server:
        ran = project.test(file, *MODELS, "--parallel", "4", env=server.env)
    assert ran.code == 0, ran.err
    prompts = [prompt for (prompt,) in told(server)]
    assert len(prompts) == 50
    assert SUM in prompts
    assert len(set(prompts)) > 10
    assert all(prompt.count("2") == 2 for prompt in prompts)  # numbers are what must not change
    report = json.loads((project.folder / "knowledge.tps.json").read_bytes())
    summary = {name: report["summary"][name] for name in ("target", "assessor", "iterations", "completed")}
    assert summary == {
        "target": "agents/ocean.md",
        "assessor": "agents/test-assessor.md",
        "iterations": 50,
        "completed": 50,
    }
    assert report["cases"][0]["summary"]["successes"] == [50]


def test_the_prompt_chain_is_told_turn_by_turn_and_judged_once(project: Project) -> None:
    file = write(project, f"{without_iterations()}\n# Geography\n\n{printed('prompt-chain')}")
    with MockModels(knowing(FACTS)) as server:
        ran = project.test(file, *MODELS, env=server.env)
    assert ran.code == 0, ran.err
    answers = list(FACTS.values())
    assert told(server) == [
        CHAIN[:1],
        [CHAIN[0], answers[0], CHAIN[1]],
        [CHAIN[0], answers[0], CHAIN[1], answers[1], CHAIN[2]],
    ]
    result = ran.results["geography"]
    assert [(one["name"], one["passed"]) for one in result["assertions"]] == [(one, True) for one in EXPECTED]
    (asked,) = judged(server)  # after the last response, with the intent and all that was said
    assert "maintain context in a conversation about geography" in asked.prompt
    assert all(text in asked.prompt for text in [*CHAIN, *answers, *EXPECTED])


def test_a_wrong_answer_fails_the_expectation_that_it_is_about(project: Project) -> None:
    file = write(project, f"{without_iterations()}\n# Geography\n\n{printed('prompt-chain')}")
    with MockModels(knowing({**FACTS, "located": "In the Alps."})) as server:
        ran = project.test(file, *MODELS, env=server.env)
    assert ran.code == 1, ran.err
    result = ran.results["geography"]
    assert (result["status"], result["blame"]) == ("failed", None)
    assert [one["passed"] for one in result["assertions"]] == [True, False, True]
    report = json.loads((project.folder / "knowledge.tps.json").read_bytes())
    assert report["cases"][0]["summary"]["successes"] == [1, 0, 1]


PYTHON = """
    ANSWERS = {
        "2 plus 2": "4",
        "tallest": "It is Mount Everest.",
        "located": "In the Himalayas, on the border of Nepal and China.",
        "temperature": "About -19 °C at the summit on average.",
        "question": "You asked: ",
    }

    def answer(prompt, messages):
        said = next((text for words, text in ANSWERS.items() if words in prompt), "I see.")
        return said + (messages[0]["content"] if "question" in prompt else "")
"""
AFTERWARDS = """
# Memory

- **Before:**

  - Arithmetic
  - Geography

- **Single Prompt:**

  - "What was my first question?"

- **Expectations:**

  - The output contains "2 plus 2".
"""


@pytest.mark.parametrize("wrong", [False, True])
def test_both_in_one_file_and_a_case_after_them(project: Project, wrong: bool) -> None:
    agent = "---\ntype: custom\nconfig:\n  entry: ../knows.py:answer\n---\n"
    cases = f"# Arithmetic\n\n{printed('single-prompt')}\n# Geography\n\n{printed('prompt-chain')}{AFTERWARDS}"
    file = write(project, f"{without_iterations()}\n{cases}", agent)
    project.write("knows.py", PYTHON.replace('"4"', '"5"') if wrong else PYTHON)
    with MockModels(knowing({})) as server:
        ran = project.test(file, env=server.env)
    assert ran.code == (1 if wrong else 0), ran.out
    expected = {"arithmetic": "failed", "memory": "blocked"} if wrong else {"arithmetic": "passed", "memory": "passed"}
    assert ran.statuses == {"geography": "passed", **expected}
    if not wrong:
        (memory,) = [one for one in project.trials() if one["case"] == "memory"]
        asked = [one["content"] for one in memory["transcript"]["messages"] if one["role"] == "user"]
        assert asked == [SUM, *CHAIN, "What was my first question?"]
        assert ran.results["memory"]["response"] == f"You asked: {SUM}"
