"""Document 3's example from end to end, as printed: a prompt agent with a tool, an assessor agent, 50 iterations."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.support.judge import judge
from tests.engine.support.project import Project
from tests.models.mock_server import Heard, MockModels, calls

PRINTED = Path(__file__).parents[1] / "documents" / "markdown" / "warming-the-ocean.test.md"
EXPECTED = [
    "the warm_ocean function was called",
    "responses were short and to the point",
    "the ocean is no longer cold",
]
MODELS = ("-c", "openai.ocean")
_decide = judge(lambda asked, record: "warmer" in record or "short" in asked)


def world(heard: Heard) -> Any:
    """The models around the test: the ocean agent and the assessor, told apart by what they are told to be."""
    if "You decide whether an agent did what was expected" in heard.system:
        return _decide(heard)
    if heard.tool_results:
        return "I warmed the ocean."
    if heard.prompt.lower().startswith(("good morning", "good day", "hello", "hi")) and len(heard.messages) == 1:
        return "Good morning."
    return calls(("warm_ocean", {"degrees": 2}))


@pytest.fixture
def ocean(examples: Project) -> Project:
    """The document's file, with the agents of our example; the assessor runs on a model of its own."""
    examples.write("ocean.test.md", PRINTED.read_text("utf-8"))
    (examples.folder / "agents/ocean.md").rename(examples.folder / "agents/some-agent.md")
    text = (examples.folder / "agents/test-assessor.md").read_text("utf-8")
    examples.write("agents/test-assessor.md", text.replace("temperature: 0", "connector: anthropic.judge"))
    return examples


def about_agent(server: MockModels) -> list[Heard]:
    return [one for one in server.requests if "You look after the ocean" in one.system]


def test_fifty_iterations_by_rules(ocean: Project) -> None:
    with MockModels(world) as server:
        ran = ocean.test("ocean.test.md", *MODELS, "--parallel", "4", env=server.env)
    assert ran.code == 0, ran.err
    result = ran.results["warming-the-ocean"]
    assert (result["status"], result["pass_rate"]) == ("passed", 100)
    trials = sorted(ocean.trials(), key=lambda one: int(one.get("variation", 0)))
    assert [one.get("variation", 0) for one in trials] == list(range(50))
    assert [one["origin"] for one in trials] == ["listed"] * 4 + ["generated"] * 46
    # Every iteration called the tool, and each was judged in one call of the assessor.
    assert all(one["transcript"]["tool_calls"][0]["name"] == "warm_ocean" for one in trials)
    assert len(server.requests) - len(about_agent(server)) == 50

    lines = [json.loads(line) for line in (ocean.folder / "ocean.variations.jsonl").read_text("utf-8").splitlines()]
    assert [line["number"] for line in lines] == list(range(4, 50))
    assert {line["by"] for line in lines} == {"rules"}
    assert len({json.dumps(line["chain"]) for line in lines}) == 46
    assert {len(line["chain"]) for line in lines} == {1, 3}

    report = json.loads((ocean.folder / "ocean.tps.json").read_bytes())
    summary, (case,) = report["summary"], report["cases"]
    about = {name: summary[name] for name in ("iterations", "completed", "path", "target", "assessor")}
    assert about == {
        "iterations": 50,
        "completed": 50,
        "path": "ocean.test.md",
        "target": "agents/some-agent.md",
        "assessor": "agents/test-assessor.md",
    }
    assert case["summary"]["expectations"] == EXPECTED
    assert case["summary"]["successes"] == [50, 50, 50]
    assert [len(one["outcomes"]) for one in case["iterations"]] == [3] * 50
    assert [one["prompts"] for one in case["iterations"][4:]] == [line["chain"] for line in lines]


def _wording(number: int) -> str:
    """One of many prompts, none like another."""
    letters = Random(number)
    words = ["".join(letters.choices("abcdefghijklmnoprstuvw", k=9)) for _ in range(4)]
    return f"{' '.join(words)}: warm the ocean"


def test_a_model_makes_the_variations_once(ocean: Project) -> None:
    def with_generator(heard: Heard) -> Any:
        if "You write variations of test prompts" not in heard.system:
            return world(heard)
        asked = json.loads(heard.prompt)
        made = [_wording(number) for number in range(len(asked["taken"]), len(asked["taken"]) + asked["count"])]
        return {"chains": [{"of": 1, "prompts": [one]} for one in made]}

    with MockModels(with_generator) as server:
        flags = ("ocean.test.md", *MODELS, "--generator", "openai.writer", "--parallel", "4")
        first = ocean.test(*flags, env=server.env)
        writers = [one for one in server.requests if "variations" in one.system]
        again = ocean.test(*flags, env=server.env)
        assert [one for one in server.requests if "variations" in one.system] == writers
    assert (first.code, again.code) == (0, 0), first.err
    assert len(writers) == 3  # 20 at a time
    assert all("no longer cold" not in json.dumps(one.body) for one in writers)  # it never sees the expectations
    lines = [json.loads(line) for line in (ocean.folder / "ocean.variations.jsonl").read_text("utf-8").splitlines()]
    by = [line["by"] for line in lines]
    assert set(by) == {"openai.writer"}
    assert len(by) == 46


def test_an_agent_that_does_not_warm_the_ocean_fails_and_is_counted(ocean: Project) -> None:
    def lazy(heard: Heard) -> Any:
        found = world(heard)
        return "Later." if heard.prompt == "do the thing" and not isinstance(found, dict) else found

    text = (ocean.folder / "ocean.test.md").read_text("utf-8").replace("iterations: 50", "iterations: 4")
    ocean.write("ocean.test.md", text)
    with MockModels(lazy) as server:
        ran = ocean.test("ocean.test.md", *MODELS, env=server.env)
    assert ran.code == 1, ran.err
    report = json.loads((ocean.folder / "ocean.tps.json").read_bytes())
    assert report["cases"][0]["summary"]["successes"] == [3, 4, 3]
    missed = report["cases"][0]["iterations"][2]["outcomes"]
    assert missed[0] == {
        "outcome": False,
        "reasoning": ["expected `warm_ocean` to be called, found no tool calls"],
    }
    assert [one["outcome"] for one in missed] == [False, True, False]
