"""Runs agents in real containers, cuts the connection to the engine at a chosen point, and goes on with the run."""

from collections import Counter

from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import PYTHON
from tests.agents.support.engine_proxy import EngineProxy
from tests.engine.support.project import Project
from tests.waiting import until

CASES = ["a", "b", "c"]


def lose_engine(project: Project, engine: TestEngine, hold: str, pieces: int | None, *, go_on: bool = True) -> None:
    """Cut the connection while the container of the case `hold` runs, or after so many pieces of requests.

    Then go on with the run, unless `go_on` is false, and assert that nothing was lost, run twice or left behind.
    """
    shared = project.folder / "shared"
    shared.mkdir(exist_ok=True)
    shared.joinpath("hold").write_text(hold if pieces is None else "")
    config = {
        "image": PYTHON,
        "command": ["notes_and_holds"],
        "protocol": "text",
        "volumes": ["shared:/shared"],
    }
    agent = {"name": "a", "type": "docker", "config": config}
    file = project.suite([agent], [{"id": name, "input": name} for name in CASES])
    proxy = EngineProxy(engine.socket, project.folder / "engine.sock")
    proxy.pieces_left = pieces
    process = project.start("test", file, "--retries", "0", env_more={"DOCKER_HOST": proxy.url})
    if pieces is None:
        until(lambda: hold in project.lines("shared/asked") or process.poll() is not None)
        proxy.cut()
    ended = project.finish(process)
    passed = {one["case"] for one in project.trials() if one.get("status", "passed") == "passed"}
    assert ended.code == (0 if len(passed) == len(CASES) else 3), ended.err
    assert "Traceback" not in ended.err, ended.err
    assert {one.get("blame") for one in project.trials()} <= {None, "environment"}
    assert project.workspaces() == []
    (shared / "go").touch()
    proxy.cut()
    if not go_on:
        return
    asked = Counter(project.lines("shared/asked"))
    proxy.restore()
    again = project.test(file, "--retries", "0", "--resume", env={"DOCKER_HOST": proxy.url})
    proxy.cut()
    if ended.code == 0:
        assert "nothing-to-resume" in again.err
    else:
        assert (again.code, again.statuses) == (0, dict.fromkeys(CASES, "passed")), again.err
    after = Counter(project.lines("shared/asked"))
    assert [name for name in passed if after[name] != asked[name]] == [], "a finished trial ran again"
    assert engine.containers() == []
