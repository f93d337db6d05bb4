"""The same case file gives the same verdicts over every kind of agent, and nothing of any is left afterwards."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import PYTHON
from tests.run.support.project import Project, until

from atp.agents import conformance
from atp.agents.leftovers import marked
from atp.suite.result import CaseResult, TrialResult

GRAPH = Path(__file__).parent / "support" / "conformance_graph.py"
NOT_OF_GRAPHS = ("artifacts", "cost", "workspace")
"""What a graph has no way to tell of, or to know."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    yield made
    made.end()


def run(project: Project, *agents: dict[str, Any], without: tuple[str, ...] = ()) -> list[CaseResult]:
    """The results of the suite with these agents, run as users do."""
    suite = conformance.write_suite(project.folder, *agents, without=without)
    ran = project.test(str(suite), "--parallel", "4")
    assert ran.code == 1, ran.err  # some cases are about failures
    lines = (project.runs()[-1] / "journal.jsonl").read_bytes().split(b"\n")
    told = [msgspec.json.decode(line) for line in lines if line]
    trials = [msgspec.convert(one["result"], TrialResult) for one in told if one["type"] == "trial"]
    return [CaseResult(agent=one.agent, case=one.case, status=one.status, trials=[one]) for one in trials]


def conforms(project: Project, *agents: dict[str, Any], without: tuple[str, ...] = ()) -> None:
    results = run(project, *agents, without=without)
    assert conformance.differences(results, without) == []
    assert len(results) == len(agents) * len(conformance.cases(without))
    assert project.workspaces() == []


def agent(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "config": config}


def test_a_function_here_and_in_an_environment_of_its_own(project: Project) -> None:
    entry = f"{conformance.BEHAVIOUR}:agent"
    here = agent("here", "custom", entry=entry)
    worker = agent("worker", "custom", entry=entry, python=sys.executable)
    conforms(project, here, worker)


def test_a_command(project: Project) -> None:
    command = [sys.executable, "-S", str(conformance.BEHAVIOUR), "cli"]
    conforms(project, agent("cli", "cli", command=command))


def test_a_server(project: Project) -> None:
    port = project.folder / "port"
    server = subprocess.Popen([sys.executable, "-S", str(conformance.BEHAVIOUR), "http", str(port)])
    try:
        until(port.exists)
        address = f"http://127.0.0.1:{port.read_text()}/"
        conforms(project, agent("http", "http", endpoint=address, health_endpoint=address))
    finally:
        server.kill()
        server.wait()


def test_a_graph_here_and_in_an_environment_of_its_own(project: Project) -> None:
    here = agent("here", "langgraph", graph_path=str(GRAPH))
    worker = agent("worker", "langgraph", graph_path=str(GRAPH), python=sys.executable)
    conforms(project, here, worker, without=NOT_OF_GRAPHS)


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
    conforms(project, agent("docker", "docker", **config))
    assert engine.containers() == []


def test_cancelled(project: Project) -> None:
    """Ctrl-C in the middle of a turn of every kind: the run ends at once, and nothing is left of any of them."""
    entry, graph = f"{conformance.BEHAVIOUR}:agent", str(GRAPH)
    agents = [
        agent("here", "custom", entry=entry),
        agent("worker", "custom", entry=entry, python=sys.executable),
        agent("cli", "cli", command=[sys.executable, "-S", str(conformance.BEHAVIOUR), "cli"]),
        agent("graph", "langgraph", graph_path=graph),
        agent("graph-worker", "langgraph", graph_path=graph, python=sys.executable),
    ]
    suite = project.suite(agents, [{"id": "long", "input": "sleep"}])
    process = project.start("test", suite, "--parallel", "5")
    (lock,) = until(lambda: sorted(project.folder.glob(".atp/runs/*/lock")))
    marker = until(lock.read_text)
    until(lambda: len(list(marked(marker))) == 3)
    process.send_signal(signal.SIGINT)
    ran = project.finish(process)
    assert ran.code == 130, ran.err
    assert {one["status"] for one in project.trials()} == {"cancelled"}
    assert list(marked(marker)) == []
    assert project.workspaces() == []


OTHERWISE = """
from atp.agents.reference import behaviour


def agent(messages, task, workspace):
    word = messages[-1]["content"].split()[0]
    if word == "fail":
        yield "all is well"
    elif word == "tools":
        yield "2 found"
    elif word == "echo":
        yield messages[-1]["content"].partition(" ")[2].encode("ascii", "replace").decode()
    else:
        yield from behaviour.agent(messages, task, workspace)
"""


def test_what_differs_is_told(project: Project) -> None:
    """An agent that hides its failures and its tools, and mangles what it hears, does not conform."""
    project.write("other.py", OTHERWISE)
    results = run(project, agent("other", "custom", entry="other.py:agent"))
    told = conformance.differences(sorted(results, key=lambda one: one.trials[0].index))
    assert [one.partition(":")[2].partition(":")[0].strip() for one in told] == [
        "unicode-in",
        "tools",
        "failed-tool",
        "forbidden-tool",
        "fails",
    ]
    assert told[-1] == "other: fails: passed instead of error (agent): "
    missing = conformance.differences([one for one in results if one.case != "echo"])
    assert missing[0] == "other: echo: it did not run"
    assert conformance.differences([]) == ["there are no results"]


def test_features_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="no such feature: telepathy; there are artifacts, cost"):
        conformance.cases(["telepathy"])
    needed = {feature for one in conformance.CASES for feature in one.needs}
    assert needed == set(conformance.FEATURES)
