"""Record and replay: the example suites give the same verdicts again, byte for byte, with nobody there to call."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.test_ocean import world
from tests.engine.support.project import Project, Ran
from tests.models.mock_server import KEY, MockModels

NO_NETWORK = """
    import socket

    def refuse(self, address):
        raise AssertionError(f"a replay called {address}")

    socket.socket.connect = socket.socket.connect_ex = refuse
"""
DECIDED = ("id", "status", "error", "blame", "assertions", "response", "checkpoints", "turns", "pass_rate", "output")


def decided(ran: Ran) -> bytes:
    """All that a run decided, without when and how fast."""
    found = [{name: one.get(name) for name in DECIDED} for one in ran.results.values()]
    for one in found:
        one["turns"] = [{key: turn.get(key) for key in ("turn", "input", "output")} for turn in one["turns"] or []]
    return json.dumps(found, sort_keys=True).encode()


def trials(project: Project) -> list[Any]:
    """The newest run's trials: what was said and called in each, and what came of it."""
    return [
        [
            one["case"],
            one.get("variation", 0),
            one.get("run", 1),
            one.get("status", "passed"),
            [_without_model(verdict) for verdict in one.get("verdicts", [])],
            one["transcript"]["messages"],
            [(call["name"], call.get("arguments")) for call in one["transcript"].get("tool_calls", [])],
            one["transcript"].get("usage", {}).get("total_tokens"),
        ]
        for one in project.trials()
    ]


def _without_model(verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict without the name of the judge's model: a replay needs no connectors, which have that name."""
    judge = verdict.get("judge")
    return verdict if judge is None else {**verdict, "judge": {**judge, "model": None}}


def alone(project: Project, tmp_path: Path) -> dict[str, str]:
    """An environment with no key, no local model and no network."""
    project.write("../alone/sitecustomize.py", NO_NETWORK)
    return {"ATP_DATA_DIR": str(tmp_path / "no-models"), "PYTHONPATH": str(tmp_path / "alone")}


@pytest.mark.usefixtures("smollm2")
@pytest.mark.parametrize(
    ("flags", "boundaries"),
    [
        (["files.yaml"], []),
        (["trip.jsonl", "-n", "expenses.py:answer"], ["simulator.jsonl"]),
        (["quiz.test.md"], ["model.jsonl"]),
    ],
    ids=["yaml", "jsonl", "markdown"],
)
def test_the_example_suites(examples: Project, tmp_path: Path, flags: list[str], boundaries: list[str]) -> None:
    first = examples.test(*flags, "--runs", "2", "--record", "tape")
    recorded = trials(examples)
    tape = examples.folder / "tape"
    assert sorted(one.name for one in tape.glob("*")) == boundaries
    content = [one.read_bytes() for one in sorted(tape.glob("*"))]
    again = examples.test(*flags, "--runs", "2", "--replay", "tape", env=alone(examples, tmp_path))
    assert again.results, again.err
    assert (again.code, decided(again), trials(examples)) == (first.code, decided(first), recorded)
    assert [one.read_bytes() for one in sorted(tape.glob("*"))] == content


def record_ocean(examples: Project, *flags: str) -> Ran:
    text = (examples.folder / "ocean.test.md").read_text("utf-8").replace("iterations: 50", "iterations: 6")
    examples.write("ocean.test.md", text)
    with MockModels(world) as server:
        ran = examples.test("ocean.test.md", "-c", "openai.ocean", *flags, "--record", "tape", env=server.env)
    assert ran.code == 0, ran.err
    return ran


def replay_ocean(examples: Project, tmp_path: Path) -> Ran:
    env = alone(examples, tmp_path)
    return examples.test("ocean.test.md", "-c", "openai.ocean", "--replay", "tape", "--no-judge-cache", env=env)


def test_a_prompt_agent_with_tools_and_a_judge(examples: Project, tmp_path: Path) -> None:
    first = record_ocean(examples)
    tape = {one.name: one.read_text("utf-8") for one in (examples.folder / "tape").iterdir()}
    assert sorted(tape) == ["judge.jsonl", "model.jsonl"]  # the tool writes a file, so it is called again
    assert KEY not in "".join(tape.values())
    recorded = trials(examples)
    again = replay_ocean(examples, tmp_path)
    assert (again.code, decided(again), trials(examples)) == (0, decided(first), recorded), again.err
    beside = examples.atp("validate", ".")  # recordings and variations that stand among the tests are none
    assert (beside.code, beside.out.split(",")[0]) == (0, "5 files"), beside.out


def test_it_is_found_again_wherever_the_project_stands(examples: Project, tmp_path: Path) -> None:
    first = record_ocean(examples)
    moved = Project(examples.folder.rename(tmp_path / "elsewhere"))
    again = replay_ocean(moved, tmp_path)
    assert (again.code, decided(again)) == (0, decided(first)), again.err


@pytest.mark.parametrize(
    ("file", "old", "new", "blame", "said"),
    [
        ("agents/ocean.md", "one short sentence", "a long poem", "environment", "`messages[0].content` differs"),
        ("agents/ocean.md", "temperature: 0.3", "temperature: 0.4", "environment", "`settings.temperature`: 0.3"),
        ("agents/ocean.py", "degrees centigrade", "degrees", "environment", "`tools[0].description` differs"),
        ("agents/test-assessor.md", "in doubt", "in any doubt", "judge", "`player.agent` differs"),
        ("ocean.test.md", "no longer cold", "really warm", "judge", "`asked[1]` differs"),
    ],
)
def test_a_change_is_a_miss_that_says_what_differed(
    examples: Project, tmp_path: Path, file: str, old: str, new: str, blame: str, said: str
) -> None:
    record_ocean(examples)
    text = (examples.folder / file).read_text("utf-8")
    assert old in text
    examples.write(file, text.replace(old, new))
    ran = replay_ocean(examples, tmp_path)
    result = ran.results["warming-the-ocean"]
    assert (ran.code, result["status"], result["blame"]) == (3, "error", blame)
    assert said in result["error"]
    assert "If the change is intended, record again (--record tape)" in result["error"]


def test_recording_again_replaces_what_it_asked_anew(examples: Project, tmp_path: Path) -> None:
    record_ocean(examples)
    before = (examples.folder / "tape/model.jsonl").read_bytes()
    record_ocean(examples, "--no-judge-cache")
    assert (examples.folder / "tape/model.jsonl").read_bytes() == before
    assert replay_ocean(examples, tmp_path).code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--replay", "nothing-here"], "error[cassette]: nothing is recorded in nothing-here"),
        (["--record", "ocean.test.md"], "error[cassette]: the cassette ocean.test.md can't be used"),
        (["--record", "a", "--replay", "b"], "error[contradiction]: --record and --replay are both given"),
    ],
)
def test_a_folder_that_can_not_serve(examples: Project, flags: list[str], said: str) -> None:
    ran = examples.atp("test", "ocean.test.md", "-c", "openai.ocean", *flags, env={"OPENAI_API_KEY": "not-asked"})
    assert ran.code == 2
    assert said in ran.err
    assert examples.runs() == []
