"""A project to run `atp` in, as its users do: files in a folder, and a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.starting import run_atp
from tests.waiting import WAIT_LIMIT

from atp.agents.leftovers import marked


@dataclass(frozen=True)
class Ran:
    """What came of a call of `atp`."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """With `--json`: every line of stdout. Fails if one isn't JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        """With `--json`: the results by id."""
        found = [event for event in self.events if event["type"] == "result"]
        by_id = {one["id"]: one for one in found}
        assert len(by_id) == len(found), "a case was reported twice"
        return by_id

    @property
    def statuses(self) -> dict[str, str]:
        """With `--json`: the statuses by id."""
        return {name: one["status"] for name, one in self.results.items()}

    @property
    def summary(self) -> dict[str, Any]:
        """With `--json`: the last event."""
        last = self.events[-1]
        assert last["type"] == "summary"
        return last


class Project:
    """A folder, and what is done in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, content: str | bytes | Mapping[str, Any] | list[Any]) -> Path:
        """A file. Text is dedented; anything else is written as JSON, which YAML takes too."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(dedent(content) if isinstance(content, str) else json.dumps(content, indent=1), "utf-8")
        return path

    def cases(self, *cases: dict[str, Any] | str, name: str = "cases.jsonl") -> str:
        """A JSONL file. A case that is only a text is its own id and input."""
        records = [one if isinstance(one, dict) else {"id": one, "input": one} for one in cases]
        self.write(name, "".join(f"{json.dumps(one)}\n" for one in records))
        return name

    def suite(self, agents: list[dict[str, Any]], tests: list[dict[str, Any]], **more: Any) -> str:
        """A YAML suite. Tests get a name and a task where they have none."""
        full = []
        for one in tests:
            said = {} if one.keys() & {"input", "messages", "task"} else {"task": {"description": one["id"]}}
            full.append({"name": one["id"], **said, **one})
        name = str(more.pop("file", "suite.yaml"))
        self.write(name, {"test_suite": "suite", "agents": agents, "tests": full, **more})
        return name

    def atp(self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, **more: Any) -> Ran:
        """Call `atp` and wait for it."""
        full = {**clean_environment(), **(env or {})}
        done = run_atp(*arguments, cwd=cwd or self.folder, env=full, **more)
        return Ran(done.returncode, done.stdout, done.stderr)

    def test(self, *arguments: str, **more: Any) -> Ran:
        """`atp test … --json`."""
        ran = self.atp("test", *arguments, "--json", **more)
        assert "Traceback" not in ran.err, ran.err
        return ran

    def tests(self, *calls: Sequence[str]) -> list[Ran]:
        """Several calls of `atp test … --json` at the same time, where none minds the others."""
        return together(*(partial(self.test, *call) for call in calls))

    def start(self, *arguments: str, env_more: Mapping[str, str] | None = None, **more: Any) -> "subprocess.Popen[str]":
        """Call `atp` and don't wait for it."""
        pipe = subprocess.PIPE
        usual: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "encoding": "utf-8"}
        process = subprocess.Popen(
            [sys.executable, "-m", "atp", *arguments],
            cwd=self.folder,
            env={**clean_environment(), **(env_more or {})},
            **{**usual, **more},
        )
        self._started.append(process)
        return process

    def finish(self, process: "subprocess.Popen[str]") -> Ran:
        """Wait for a process that was started."""
        out, err = process.communicate(timeout=WAIT_LIMIT)
        return Ran(process.returncode, out, err)

    def end(self) -> None:
        """End what is still running."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=WAIT_LIMIT)

    def lines(self, name: str) -> list[str]:
        """The lines of a file that agents write to; none if there is no file."""
        path = self.folder / name
        return path.read_text("utf-8").split() if path.exists() else []

    def runs(self) -> list[Path]:
        """The folders of all runs, oldest first."""
        return sorted(self.folder.glob(".atp/runs/*"))

    def journal(self, run: Path | None = None) -> list[dict[str, Any]]:
        """The complete lines of a run's journal, the newest run's by default; none if it is about to be made."""
        path = (run or self.runs()[-1]) / "journal.jsonl"
        text = path.read_text("utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]  # a text may have other ends of lines in it

    def trials(self, run: Path | None = None) -> list[dict[str, Any]]:
        """The trials in a run's journal."""
        return [line["result"] for line in self.journal(run) if line["type"] == "trial"]

    def workspaces(self) -> list[Path]:
        """What is left of the trials' folders."""
        return sorted(self.folder.glob(".atp/runs/*/work")) + sorted(self.folder.glob(".atp/runs/*/work/*"))


def together(*calls: Callable[[], Ran]) -> list[Ran]:
    """Several calls at the same time, so that a second core has something to do."""
    with ThreadPoolExecutor(4) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]


def clean_environment() -> dict[str, str]:
    """Ours, without what would steer `atp`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ATP_") and name != "CI"}


def alive(pid: int) -> bool:
    """Whether a process lives; one that waits to be collected doesn't."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def left_of(run_marker: str) -> list[int]:
    """The processes that carry a mark."""
    return list(marked(run_marker, "TEST_MARK"))


def kill(process: "subprocess.Popen[str]") -> None:
    """kill -9, and collect it."""
    process.send_signal(signal.SIGKILL)
    process.wait(WAIT_LIMIT)
