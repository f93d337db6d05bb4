"""Agents in containers through the command line: verdicts, blame, and what is left after a kill -9."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import PYTHON
from tests.agents.support.lost_engine import lose_engine
from tests.engine.support.project import Project, kill
from tests.waiting import until


@pytest.fixture
def project(tmp_path: Path, engine: TestEngine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose agents run on the tests' engine, on which nothing of it is left in the end."""
    monkeypatch.setenv("DOCKER_HOST", engine.url)
    (tmp_path / "shared").mkdir()
    made = Project(tmp_path)
    yield made
    made.end()


def agent(name: str, *command: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "type": "docker", "config": {"image": PYTHON, "command": list(command), **config}}


def case(name: str, agents: str, value: str | None = None, **more: Any) -> dict[str, Any]:
    checks = [] if value is None else [{"type": "contains", "config": {"value": value}}]
    return {"id": name, "agents": [agents], "assertions": checks, **more}


def test_every_way_to_end(project: Project, engine: TestEngine) -> None:
    """One suite, all at the same time; and afterwards no container is there."""
    project.write("built/Dockerfile", f'FROM {PYTHON}\nCOPY words.txt /words.txt\nCMD ["reads", "/words.txt"]')
    project.write("built/words.txt", "from the folder")
    agents = [
        agent("speaks", "events"),
        agent("writes", "text", protocol="text"),
        agent("seven", "exits_with", "7"),
        agent("hungry", "hogs", memory="48m"),
        agent("slow", "sleeps"),
        agent("large", "large"),
        agent("gone", "echo", image="nobody/has-it:3"),
        {"name": "built", "type": "docker", "config": {"build": "./built"}},
    ]
    tool = {"type": "tool_called", "name": "search"}
    tests = [
        case("speaks", "speaks", "done", assertions=[{"type": "contains", "value": "done"}, tool]),
        case("writes", "writes", "You said: 'writes"),
        case("seven", "seven", "x"),
        case("hungry", "hungry", "x"),
        case("slow", "slow", "x", timeout="3s"),
        case("large", "large", "üüüü"),
        case("gone", "gone", "x"),
        case("built", "built", "from the folder"),
    ]
    ran = project.test(project.suite(agents, tests), "--parallel", "4")
    assert ran.code == 1, ran.err
    told = {name: (one["status"], one.get("blame")) for name, one in ran.results.items()}
    assert told == {
        "speaks": ("passed", None),
        "writes": ("passed", None),
        "seven": ("error", "agent"),
        "hungry": ("error", "agent"),
        "slow": ("timeout", None),
        "large": ("passed", None),
        "gone": ("error", "environment"),
        "built": ("passed", None),
    }
    assert ran.results["seven"]["error"] == "agent error: exit code 7: this is why"
    assert "out of memory: it needs more than `memory: 48m`" in ran.results["hungry"]["error"]
    assert ran.results["slow"]["error"] == "timeout after 3s"
    assert len(ran.results["large"]["output"].encode()) == 10_000_000
    assert "write `pull: true` to fetch it" in ran.results["gone"]["error"]
    assert engine.containers() == []


def test_a_dialogue_and_a_server(project: Project, engine: TestEngine) -> None:
    """Several turns, each in a container of its own over the same workspace; several trials in one over HTTP."""
    project.write(
        "scripts/sim.py",
        """
        def user(payload):
            return {"input": f"turn {payload['turn_number']}", "goal_achieved": payload["turn_number"] > 3}
        """,
    )
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    point = {"id": "third", "assertion": {"type": "contains", "value": "3 "}}
    simulated = {"simulator": {}, "checkpoints": [point]}
    agents = [agent("counts", "counts_turns"), agent("serves", "serves", str(port), port=port, network="host")]
    tests = [{"id": "talk", "agents": ["counts"], "input": "turn 1", **simulated}]
    tests += [case(f"http-{number}", "serves", f"http-{number}") for number in range(5)]
    ran = project.test(project.suite(agents, tests), "--parallel", "3", "--simulator", "scripts:sim.user")
    assert ran.code == 0, (ran.err, ran.out)
    assert ran.results["talk"]["total_turns"] == 3
    served = [one["output"] for name, one in ran.results.items() if name != "talk"]
    assert sorted(one["answered"] for one in served) == [1, 2, 3, 4, 5]
    assert engine.containers() == []


def begin(project: Project, file: str) -> "subprocess.Popen[str]":
    """Start a run, and wait until its agent sleeps."""
    asleep = project.folder / "shared/asleep"
    asleep.unlink(missing_ok=True)
    process = project.start("test", file)
    until(lambda: asleep.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    return process


def test_orphans_are_removed_after_a_kill_9(project: Project, engine: TestEngine) -> None:
    """By the next run that uses the engine; and only those whose run is dead."""
    shared = {"volumes": ["shared:/shared"], "protocol": "text"}
    sleeping = project.suite([agent("sleeps", "says_that_it_sleeps", **shared)], [{"id": "s"}], file="sleeps.yaml")
    other = project.suite([agent("quick", "text", protocol="text")], [{"id": "q"}], file="quick.yaml")
    killed = begin(project, sleeping)
    kill(killed)
    (orphan,) = engine.containers()
    assert orphan["State"] == "running"
    assert orphan["Labels"]["atp.pid"] == str(killed.pid)

    living = begin(project, sleeping)  # its own start removes what the other left
    (found,) = engine.containers()
    assert found["Labels"]["atp.pid"] == str(living.pid)

    assert project.test(other).code == 0
    assert [one["Id"] for one in engine.containers()] == [found["Id"]]
    living.send_signal(signal.SIGINT)
    assert project.finish(living).code == 130
    assert engine.containers() == []


def test_no_engine(project: Project) -> None:
    file = project.suite([agent("a", "echo"), agent("b", "echo")], [{"id": "one"}])
    ran = project.test(file, env={"DOCKER_HOST": f"unix://{project.folder}/none.sock"})
    assert ran.code == 3
    (result, *_) = [event for event in ran.events if event["type"] == "result"]
    assert (result["status"], result["blame"]) == ("error", "environment")
    assert result["error"].startswith("there is no container engine: nothing is at unix://")


def test_the_workspace_is_the_callers(project: Project) -> None:
    ran = project.test(project.suite([agent("a", "counts_turns")], [{"id": "one", "input": "x"}]), "--keep-workspaces")
    assert ran.code == 0
    (kept,) = [path for path in project.workspaces() if (path / "turns.txt").exists()]
    assert (kept / "turns.txt").stat().st_uid == os.getuid()


@pytest.mark.parametrize("pieces", [None, 5, 14], ids=["while the container runs", "early", "later"])
def test_an_engine_that_goes_away_and_comes_back(project: Project, engine: TestEngine, pieces: int | None) -> None:
    """What is finished stays, what was cut off runs again, and no container is left after the next run."""
    lose_engine(project, engine, "b", pieces)


def test_a_run_that_ends_while_the_engine_is_away(project: Project, engine: TestEngine) -> None:
    """Its container runs on, and is removed by the next run, whatever that run tests."""
    lose_engine(project, engine, "b", None, go_on=False)
    (orphan,) = engine.containers()
    assert orphan["State"] == "running"
    quick = project.suite([agent("quick", "text", protocol="text")], [{"id": "q"}], file="quick.yaml")
    assert project.test(quick).code == 0
    assert engine.containers() == []
