"""Servers, models and container engines that go away: who is to blame, and that the run goes on when they are back."""

import random
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.support.project import Project
from tests.engine.support.server import Server
from tests.faults.random_servers import fail_at_random, serve_at_random
from tests.models.mock_server import Heard, MockModels, Says, fails
from tests.waiting import until

CASES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


BLAMED: dict[str, set[tuple[str, str | None]]] = {
    "resets": {("error", "agent")},
    "redirects": {("error", "agent")},
    "stalls": {("timeout", None)},
    "floods": {("timeout", None), ("error", "agent")},  # whichever comes first: its time is up, or it said too much
    "refuses": {("error", "environment")},
}
"""How an agent's server fails, and what that is called."""


@pytest.mark.parametrize("how", BLAMED)
def test_an_agents_server_that_fails(project: Project, server: Server, how: str) -> None:
    key = f"faults-{how}"
    agent = {"name": "a", "type": "http", "config": {"endpoint": server.url(f"faulty?how={how}&key={key}")}}
    file = project.suite([agent], [{"id": name} for name in CASES])
    flags = [file, "--timeout", "2s", "--retries", "1", "--parallel", "3"]
    server.broken.add(key)
    ran = project.test(*flags)
    assert {(one["status"], one["blame"]) for one in ran.results.values()} <= BLAMED[how]
    assert len(ran.results) == 3
    assert server.calls[f"whole?key={key}"] == 0  # no redirect is followed
    server.broken.discard(key)
    again = project.test(*flags, "--resume")
    if ran.code == 1:  # the agent is to blame: the run is complete
        assert "nothing-to-resume" in again.err
    else:
        assert (ran.code, again.code) == (3, 0)
        assert again.statuses == dict.fromkeys(CASES, "passed")
    until(lambda: server.open == 0)
    assert project.workspaces() == []


@pytest.mark.parametrize("round_", range(2))
def test_a_model_that_fails_at_random(project: Project, round_: int) -> None:
    fail_at_random(project, random.Random(f"model {round_}"))


@pytest.mark.parametrize("round_", range(2))
def test_an_agents_server_that_fails_at_random(project: Project, server: Server, round_: int) -> None:
    serve_at_random(project, server, random.Random(f"server {round_}"))


def test_a_storm_of_refusals_by_a_model(project: Project) -> None:
    """Requests are repeated a bounded number of times, nobody blames the agent, and the run goes on afterwards."""
    storm = threading.Event()
    storm.set()

    def answer(heard: Heard) -> str | Says:
        return fails(429, retry_after=0.0) if storm.is_set() and heard.prompt != "a" else f"heard {heard.prompt}"

    project.write("agents/polite.md", "---\nconnector: openai.any\n---\nBe polite.\n")
    file = project.cases(*CASES)
    with MockModels(answer) as models:
        ran = project.test(file, "-n", "polite", "--retries", "1", "--parallel", "3", env=models.env)
        assert ran.code == 3
        assert {name: (one["status"], one["blame"]) for name, one in ran.results.items()} == {
            "a": ("passed", None),
            "b": ("error", "environment"),
            "c": ("error", "environment"),
        }
        assert len(models.requests) < 40
        storm.clear()
        before = len(models.requests)
        again = project.test(file, "-n", "polite", "--resume", env=models.env)
        assert again.statuses == dict.fromkeys(CASES, "passed")
        assert sorted(one.prompt for one in models.requests[before:]) == ["b", "c"]


def test_a_container_engine_that_goes_away(project: Project, tmp_path: Path) -> None:
    """It accepts connections and closes them, as one that is being stopped does."""
    pytest.importorskip("aiodocker")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "engine.sock"))
    listening.listen()

    def close_connections() -> None:
        while True:
            try:
                listening.accept()[0].close()
            except OSError:
                return

    closing = threading.Thread(target=close_connections, daemon=True)
    closing.start()
    agent = {"name": "a", "type": "docker", "config": {"image": "none:1", "protocol": "text"}}
    file = project.suite([agent], [{"id": name} for name in CASES])
    env = {"DOCKER_HOST": f"unix://{tmp_path / 'engine.sock'}"}
    for flags in ([], ["--resume"]):
        ran = project.test(file, "--retries", "0", *flags, env=env)
        assert ran.code == 3
        assert {(one["status"], one["blame"]) for one in ran.results.values()} == {("error", "environment")}
        assert project.workspaces() == []
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    closing.join()
