"""The API of `atp view`: what it says of runs that are over, that run, and that were killed."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from tests.engine.support.project import Project
from tests.waiting import until


@pytest.fixture
def finished(project: Project, slow_suite: str) -> str:
    """The id of a finished run."""
    project.write("wait-1", "")
    project.test(slow_suite)
    return project.runs()[-1].name


def test_the_list_of_runs(view: Callable[..., Any], finished: str) -> None:
    (run,) = view().get("/api/runs")["runs"]
    wanted = {"id": finished, "state": "finished", "finished": 3, "total": 3, "passed": 2, "failed": 1, "errors": 0}
    assert {name: run[name] for name in wanted} == wanted
    assert run["started_at"].endswith("Z")
    assert run["commit"] is None


def test_a_run_has_its_cases(project: Project, view: Callable[..., Any], finished: str) -> None:
    started = view(finished)
    found = started.get(f"/api/runs/{finished}")
    (listed,) = started.get("/api/runs")["runs"]
    assert {name: found[name] for name in listed} == listed
    assert {case["id"]: case["status"] for case in found["cases"]} == {
        "good": "passed",
        "bad": "failed",
        "slow": "passed",
    }
    assert found["run"]["verdict"]["words"] == "1 of 3 cases failed"
    assert started.get("/api/runs")["opened"] == finished


def test_details_are_those_of_the_report(project: Project, view: Callable[..., Any], finished: str) -> None:
    started = view()
    rows = started.get(f"/api/runs/{finished}")["cases"]
    bad = next(row for row in rows if row["id"] == "bad")
    number = bad["at"][0]
    case = started.get(f"/api/runs/{finished}/cases/{number}")
    assert case["input"] == "bye"
    trial = started.get(f"/api/runs/{finished}/cases/{number}/trials/0")
    assert trial["transcript"]["turns"][0]["output"] == "You said: bye"
    assert trial["verdicts"][0]["outcome"] == "failed"
    assert started.get(f"/api/runs/{finished}/cases?case=bad")["cases"] == [bad]
    assert started.get(f"/api/runs/{finished}/cases?case=bad&agent=other")["cases"] == []


@pytest.mark.parametrize(
    "path", ["runs/none", "runs/{run}/cases/99", "runs/{run}/cases/0/trials/9", "runs/{run}/cases/x"]
)
def test_what_is_not_there(view: Callable[..., Any], finished: str, path: str) -> None:
    started = view()
    answer = started.ask(f"/api/{path.format(run=finished)}", Authorization=f"Bearer {started.token}")
    assert answer.status == 404
    assert answer.json["error"]


def test_a_run_while_it_runs(project: Project, view: Callable[..., Any], slow_suite: str) -> None:
    started = view()
    listed = started.events("/api/events")
    assert next(listed) == ("runs", {"runs": []})
    running = project.start("test", slow_suite, "--parallel", "1")
    state = _last(listed, lambda kind, data: bool(data["runs"]) and data["runs"][0]["finished"] == 2)["runs"][0]
    assert (state["state"], state["total"], state["passed"], state["failed"]) == ("running", 3, 1, 1)
    run = state["id"]
    page = Page(started.events(f"/api/runs/{run}/events"))
    page.wait(lambda: page.progress.get("running"))
    assert [one["case"] for one in page.progress["running"]] == ["slow"]
    told = {name: page.progress[name] for name in ("trials", "planned_trials", "read")}
    assert told == {"trials": 2, "planned_trials": 3, "read": True}
    now = started.get(f"/api/runs/{run}")
    assert now["run"]["verdict"]["words"] == "Running: 2 of 3 cases done"
    assert "could not be completed" not in json.dumps(now)
    project.write("wait-1", "")
    page.wait(lambda: page.run["state"] == "finished" and len(page.rows) == 3)
    assert [row["id"] for row in page.rows] == ["good", "bad", "slow"]
    assert page.run["passed"] == 2
    assert project.finish(running).code == 1
    listed.close()


def test_a_run_that_was_killed(project: Project, view: Callable[..., Any], slow_suite: str) -> None:
    running = project.start("test", slow_suite, "--parallel", "1")
    until(lambda: project.runs() and len(project.trials()) == 2)
    started = view()
    run = project.runs()[0].name
    page = Page(started.events(f"/api/runs/{run}/events"))
    page.wait(lambda: len(page.rows) == 2)
    assert page.run["state"] == "running"
    running.kill()
    page.wait(lambda: page.run["state"] == "stopped")
    told = page.run["finished"], page.run["total"], page.run["reason"]
    assert told == (2, 3, "unfinished: it ended without a summary")
    assert started.get("/api/runs")["runs"][0]["state"] == "stopped"
    # The run goes on: the rows begin anew.
    project.write("wait-1", "")
    assert project.test(slow_suite, "--resume").code == 1
    page.wait(lambda: page.run["state"] == "finished" and len(page.rows) == 3)
    assert page.generation == 2
    assert page.run["total"] == 3


def test_runs_are_compared(project: Project, view: Callable[..., Any], finished: str, slow_suite: str) -> None:
    project.write("agent.py", "def answer(prompt):\n    return 'never said' if 'bye' in prompt else 'You said so'\n")
    project.test(slow_suite)
    second = project.runs()[-1].name
    started = view()
    found = started.get(f"/api/compare?run={finished}&run={second}")
    assert found["runs"] == [finished, second]
    (comparison,) = found["comparisons"]
    told = json.loads(project.atp("compare", finished, second, "--json").out)
    assert comparison["cases"] == told["cases"]
    assert comparison["overall"] == told["overall"]
    answer = started.ask(f"/api/compare?run={finished}", Authorization=f"Bearer {started.token}")
    assert (answer.status, answer.json) == (400, {"error": "name 2 to 8 runs"})


def test_the_history_of_a_case(project: Project, view: Callable[..., Any], finished: str, slow_suite: str) -> None:
    project.write("agent.py", "def answer(prompt):\n    return 'never said'\n")
    project.test(slow_suite)
    found = view().get("/api/history?case=bad")
    assert found["case"] == "bad"
    assert [one["status"] for one in found["results"]] == ["passed", "failed"]  # the newest first
    assert [one["run"] for one in found["results"]] == [one.name for one in reversed(project.runs())]
    assert {"run", "at", "commit", "agent", "status", "runs", "passed"} <= found["results"][0].keys()


@pytest.mark.parametrize("wanted", ["you said: BYE", "never", "said:   bye", "bye"])
def test_a_search_over_everything(view: Callable[..., Any], finished: str, wanted: str) -> None:
    found = view().get(f"/api/search?q={quote(wanted)}")
    assert [(one["run"], one["case"], one["status"]) for one in found["found"]] == [(finished, "bad", "failed")]
    assert found["more"] is False


def test_a_search_that_finds_nothing(view: Callable[..., Any], finished: str) -> None:
    started = view()
    assert started.get("/api/search?q=nowhere")["found"] == []
    assert started.get("/api/search?q=")["found"] == []
    assert started.get(f"/api/search?q=hello&run={finished}")["found"][0]["text"] == "You said: hello"[10:]


def test_labels(project: Project, view: Callable[..., Any], finished: str) -> None:
    started = view()
    number = started.get(f"/api/runs/{finished}/cases?case=bad")["cases"][0]["at"][0]
    path = f"/api/runs/{finished}/cases/{number}/trials/0/labels"
    right = {"Authorization": f"Bearer {started.token}"}
    assert started.get(path)["labels"] == []
    given = {"check": [0], "thumb": "up", "verdict": "passed", "comment": "it <b>is</b> right", "by": "ada"}
    answer = started.ask(path, "POST", json.dumps(given), **right)
    assert answer.status == 200
    (label,) = answer.json["labels"]
    assert {name: label[name] for name in given} == given
    started.process.terminate()
    project.finish(started.process)
    again = view()
    assert again.get(path)["labels"] == [label]
    right = {"Authorization": f"Bearer {again.token}"}
    exported = project.atp("labels", "export", finished)  # what atp calibrate reads, too
    assert json.loads(exported.out)["comment"] == "it <b>is</b> right", exported.err
    assert again.ask(path, "POST", json.dumps({"check": [0], "by": "ada"}), **right).json["labels"] == []
    for wrong in ('{"check": [7]}', '{"check": [-1]}', '{"verdict": "maybe"}', "nonsense", '{"other": 1}', "[]"):
        assert again.ask(path, "POST", wrong, **right).status == 400, wrong
    assert again.ask(f"{path}?token={again.token}", "POST", "{}").status == 403
    assert again.ask(path, "POST", "{}", **right, Origin="http://evil.example").status == 403
    assert again.ask(path.replace("/trials/0", "/trials/9"), "POST", "{}", **right).status == 404


def test_a_folder_of_runs(project: Project, view: Callable[..., Any], finished: str) -> None:
    moved = project.folder / "archive"
    (project.folder / ".atp" / "runs").rename(moved)
    assert [run["id"] for run in view(str(moved)).get("/api/runs")["runs"]] == [finished]
    assert [run["id"] for run in view(str(moved / finished)).get("/api/runs")["runs"]] == [finished]


def test_a_damaged_journal_is_in_the_list(project: Project, view: Callable[..., Any], finished: str) -> None:
    project.write(".atp/runs/20200101-000000-0000000/journal.jsonl", '{"type":"start","format":99}\n')
    runs = view().get("/api/runs")["runs"]
    assert [run["state"] for run in runs] == ["finished", "stopped"]
    assert "reads journals up to format" in runs[1]["reason"]


def test_secrets_of_the_environment_are_masked(project: Project, view: Callable[..., Any], finished: str) -> None:
    project.write(".env", "API_KEY=hello-you-secret\n")
    path = project.runs()[0] / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b"You said: bye", b"hello-you-secret"))
    started = view()
    rows = started.get(f"/api/runs/{finished}")
    number = next(row["at"][0] for row in rows["cases"] if row["id"] == "bad")
    trial = started.get(f"/api/runs/{finished}/cases/{number}/trials/0")
    assert trial["transcript"]["turns"][0]["output"] == "[…]" or "***" in trial["transcript"]["turns"][0]["output"]
    assert "hello-you-secret" not in json.dumps([rows, trial, started.get("/api/search?q=hello")])


def test_atp_test_view(project: Project, slow_suite: str) -> None:
    running = project.start("test", slow_suite, "--view", "--parallel", "1")
    assert running.stderr is not None
    address = next(line for line in running.stderr if line.startswith("View: ")).removeprefix("View: ").strip()
    assert address.startswith("http://127.0.0.1:")
    project.write("wait-1", "")
    ended = project.finish(running)
    assert ended.code == 1
    assert "it ends 10 minutes after its last page was closed" in ended.err
    pid = int(ended.err.rsplit("kill ", 1)[1].split()[0])
    try:
        base, _, token = address.partition("/?token=")
        with urlopen(f"{base}/api/runs?token={token}") as answer:
            told = json.load(answer)
        assert told["opened"] == project.runs()[0].name
        assert told["runs"][0]["state"] == "finished"
    finally:
        os.kill(pid, signal.SIGTERM)


class Page:
    """What a page has been sent of a run."""

    def __init__(self, events: Iterator[tuple[str, Any]]) -> None:
        self._events = events
        self.run: dict[str, Any] = {}
        self.progress: dict[str, Any] = {}
        self.rows: list[Any] = []
        self.generation = 0

    def wait(self, condition: Callable[[], Any]) -> None:
        """Take in events until a condition holds."""
        while not condition():
            kind, data = next(self._events)
            if data.get("generation", self.generation) != self.generation:
                self.rows, self.generation = [], data["generation"]
            if kind == "run":
                self.run = data
            elif kind == "progress":
                self.progress = data
            else:
                assert data["from"] == len(self.rows)
                self.rows += data["cases"]


def _last(events: Iterator[tuple[str, Any]], wanted: Callable[[str, Any], Any]) -> Any:
    """The data of the first event that is wanted."""
    return next(data for kind, data in events if wanted(kind, data))
