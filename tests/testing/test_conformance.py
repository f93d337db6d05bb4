"""The same case file gives the same verdicts over every kind of agent, and nothing of any is left afterwards."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agents.support.crewai_environment import CREWAI, needs_crewai
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import PYTHON
from tests.engine.support.project import Project
from tests.waiting import WAIT_LIMIT, until

from atp.agents.leftovers import marked
from atp.suite.result import CaseResult, TrialResult, Verdict
from atp.testing import conformance
from atp.testing.reference.behaviour import REASON

SUPPORT = Path(__file__).parents[1] / "agents/support"
GRAPH = SUPPORT / "conformance_graph.py"
FLOW = SUPPORT / "conformance_flow.py"
NOT_OF_CREWS = ("artifacts", "cost")
"""A kickoff gives back an answer, and CrewAI counts tokens. A crew or a flow has no place to hand over an artifact that
is no file in its workspace, or to say what something cost."""


@pytest.fixture
def server(project: Project) -> Iterator[str]:
    """The address of the behaviour as a server."""
    port = project.folder / "port"
    process = subprocess.Popen([sys.executable, "-S", str(conformance.BEHAVIOUR), "http", str(port)])
    try:
        until(port.exists)
        yield f"http://127.0.0.1:{port.read_text()}/"
    finally:
        process.kill()
        process.wait()


def run(project: Project, *agents: dict[str, Any], without: tuple[str, ...] = ()) -> list[CaseResult]:
    """The results of the suite with these agents, run as users do."""
    suite = conformance.write_suite(project.folder, *agents, without=without)
    process = project.start("test", str(suite), "--parallel", "4", "--quiet")
    _, err = process.communicate(timeout=3 * WAIT_LIMIT)  # CrewAI is imported after each stopped trial
    assert process.returncode == 1, err  # some cases are about failures
    assert "Traceback" not in err, err
    lines = (project.runs()[-1] / "journal.jsonl").read_bytes().split(b"\n")
    told = [msgspec.json.decode(line) for line in lines if line]
    trials = [msgspec.convert(one["result"], TrialResult) for one in told if one["type"] == "trial"]
    return [CaseResult(agent=one.agent, case=one.case, status=one.status, trials=[one]) for one in trials]


def faults(project: Project, *agents: dict[str, Any], without: tuple[str, ...] = ()) -> list[str]:
    """What these agents do otherwise than they must, and what is left of them."""
    results = run(project, *agents, without=without)
    found = conformance.differences(results, without)
    expected = sorted((one["name"], str(case.case["id"])) for one in agents for case in conformance.cases(without))
    if sorted((one.agent, one.case) for one in results) != expected:
        found.append("not every agent had every case once")
    return found + [f"{folder} is left" for folder in project.workspaces()]


def agent(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "config": config}


def test_a_function_here_and_in_an_environment_of_its_own(project: Project) -> None:
    entry = f"{conformance.BEHAVIOUR}:agent"
    here = agent("here", "custom", entry=entry)
    worker = agent("worker", "custom", entry=entry, python=sys.executable)
    assert faults(project, here, worker) == []


def test_a_command(project: Project) -> None:
    command = [sys.executable, "-S", str(conformance.BEHAVIOUR), "cli"]
    assert faults(project, agent("cli", "cli", command=command)) == []


def test_a_server(project: Project, server: str) -> None:
    assert faults(project, agent("http", "http", endpoint=server, health_endpoint=server)) == []


def test_a_graph_here_and_in_an_environment_of_its_own(project: Project) -> None:
    here = agent("here", "langgraph", graph_path=str(GRAPH))
    worker = agent("worker", "langgraph", graph_path=str(GRAPH), python=sys.executable)
    assert faults(project, here, worker) == []


@pytest.mark.slow  # CrewAI is imported once more after each stopped trial; agents/python/test_crewai.py shows turns
def test_a_flow_in_an_environment_of_its_own(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_crewai()
    monkeypatch.setenv("HOME", str(project.folder / "home"))  # CrewAI keeps files there
    shutil.copy(FLOW, project.folder)
    shutil.copy(conformance.BEHAVIOUR, project.folder)
    # Two workers: each takes seconds of processor time to start.
    flow = agent("flow", "crewai", crew_path=f"{FLOW.name}:Reference", python=str(CREWAI), parallel=2)
    assert faults(project, flow, without=NOT_OF_CREWS) == []


def test_a_container(project: Project, engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    python = str(Path(sys.executable).resolve())
    config = {
        "image": PYTHON,
        "entrypoint": [python, "-S", "/behaviour.py"],
        "command": ["cli"],
        "volumes": [f"{conformance.BEHAVIOUR}:/behaviour.py:ro"],
        "parallel": 4,
    }
    assert faults(project, agent("docker", "docker", **config)) == []
    assert engine.containers() == []


def test_cancelled(project: Project, server: str) -> None:
    """Ctrl-C in the middle of a turn of every kind: the run ends at once, and nothing is left of any of them."""
    entry, graph = f"{conformance.BEHAVIOUR}:agent", str(GRAPH)
    agents = [
        agent("here", "custom", entry=entry),
        agent("worker", "custom", entry=entry, python=sys.executable),
        agent("cli", "cli", command=[sys.executable, "-S", str(conformance.BEHAVIOUR), "cli"]),
        agent("http", "http", endpoint=server),
        agent("graph", "langgraph", graph_path=graph),
        agent("graph-worker", "langgraph", graph_path=graph, python=sys.executable),
    ]
    suite = project.suite(agents, [{"id": "long", "input": "sleep"}])
    process = project.start("test", suite, "--parallel", str(len(agents)))
    (lock,) = until(lambda: sorted(project.folder.glob(".atp/runs/*/lock")))
    marker = until(lock.read_text).split()[0]
    until(lambda: len(list(marked(marker))) == 3)
    process.send_signal(signal.SIGINT)
    ran = project.finish(process)
    assert ran.code == 130, ran.err
    assert {one["status"] for one in project.trials()} == {"cancelled"}
    assert list(marked(marker)) == []
    assert project.workspaces() == []


BROKEN = """
from itertools import islice
from pathlib import Path

from atp.testing.reference import behaviour


def quiet(messages):
    '''Hears only the last message, loses letters, writes elsewhere, and tells nothing of what it does or suffers.'''
    word = messages[-1]["content"].split()[0]
    for step in islice(behaviour.steps(messages[-1:], None, str(Path(__file__).parent)), 10):
        if step["do"] == "answer" and word in ("echo", "odd", "json", "big"):
            return step["output"].encode("ascii", "replace").decode()[:-1]
        if step["do"] == "answer":
            return step["output"]
    return "all is well"


def loud(messages, task, workspace):
    '''Says what is wanted, and tells of everything that it uses twice.'''
    for told in behaviour.agent(messages, task, workspace):
        if told.get("type") == "llm_request":
            yield told
        yield {"output": "right"} if told.get("output") in ("", "left") else told
"""
BREACHES = {
    "quiet": {
        "echo": "failed instead of passed: expected",
        "unicode": "failed instead of passed: expected",
        "unicode-in": "failed instead of passed: expected",
        "json": "failed instead of passed: expected",
        "large": "failed instead of passed: expected",
        "history": "failed instead of passed: expected",
        "turns": "failed instead of passed: missing checkpoints: second, third",
        "data": "failed instead of passed: expected",
        "tools": "failed instead of passed: expected `search` to be called once",
        "failed-tool": "passed instead of failed",
        "forbidden-tool": "passed instead of failed",
        "steps": "passed instead of failed",
        "too-many-tokens": "passed instead of failed",
        "too-dear": "passed instead of failed",
        "workspace": "failed instead of passed: expected the artifact",
        "artifacts": "failed instead of passed: expected the artifact",
        "fails": "passed instead of error (agent)",
        "dies": "passed instead of error (agent)",
        "times-out": "passed instead of timeout",
    },
    "loud": {
        "wrong": "passed instead of failed",
        "nothing": "failed instead of passed",
        "tokens": "failed instead of passed: max_tokens exceeded",
        "cost": "failed instead of passed: budget_usd exceeded",
    },
}
"""Which cases find what is wrong with them, and what they say."""


def test_every_case_finds_an_agent_that_breaks_it(project: Project) -> None:
    project.write("broken.py", BROKEN)
    results = run(project, *(agent(name, "custom", entry=f"broken.py:{name}") for name in BREACHES))
    told = [one.split(": ", 2) for one in conformance.differences(results)]
    assert {name: sorted(case for who, case, _ in told if who == name) for name in BREACHES} == {
        name: sorted(breaches) for name, breaches in BREACHES.items()
    }
    for who, case, why in told:
        assert why.startswith(BREACHES[who][case]), (case, why)
    broken = [case for breaches in BREACHES.values() for case in breaches]
    assert sorted(broken) == sorted(str(one.case["id"]) for one in conformance.CASES), "one for every case"


def result(case: str, **trial: Any) -> CaseResult:
    return CaseResult(agent="a", case=case, trials=[TrialResult(key="k", agent="a", case=case, **trial)])


def test_results_that_are_missing() -> None:
    assert conformance.differences([]) == ["there are no results"]
    expected = {str(one.case["id"]): one.expected for one in conformance.CASES}
    ran = [result(name, status=one.status, blame=one.blame, error=one.says) for name, one in expected.items()]
    assert conformance.differences(ran) == []
    assert conformance.differences(ran[1:]) == ["a: echo: it did not run"]
    assert conformance.differences([*ran[1:], CaseResult(agent="a", case="echo")]) == ["a: echo: it did not run"]


def test_reasons_that_are_missing() -> None:
    """An error of the agent's that doesn't say which, and a verdict that nobody came to, are not enough."""
    unjudged = Verdict(type="equals", outcome="unjudged", message="nobody was there")
    ran = result("fails", status="error", blame="agent", error="agent error", verdicts=[unjudged])
    told = [one for one in conformance.differences([ran]) if "did not run" not in one]
    assert told == [
        f"a: fails: its reason doesn't say {REASON!r}: agent error",
        "a: fails: unjudged: nobody was there",
    ]


def test_features_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="no such feature: telepathy; there are artifacts, cost"):
        conformance.cases(["telepathy"])
    needed = {feature for one in conformance.CASES for feature in one.needs}
    assert needed == set(conformance.FEATURES)
