"""Runs `atp test` as a child, breaks something at a chosen point, goes on with the run, and says what went wrong.

A run has `CASES` cases against an agent that notes each prompt in the file `asked` when it is asked, and makes a file
in its workspace. In the case that the file `hold` names, the agent waits until there is a file `go`: that is the point
at which the harness breaks something. `Broken.check` says what must hold afterwards, whatever was broken.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.support.project import Project, Ran, left_of
from tests.waiting import WAIT_LIMIT, until

CASES = [f"c{number}" for number in range(8)]
AGENT = """
import os, pathlib, time
HERE = pathlib.Path(__file__).parent

def run(prompt, workspace):
    with open(HERE / "asked", "a") as file:
        print(prompt, file=file)
    (pathlib.Path(workspace) / "made.txt").write_text(prompt)
    while (HERE / "hold").read_text() == prompt and not (HERE / "go").exists():
        time.sleep(0.002)
    return prompt

if __name__ == "__main__":
    import sys
    print(run(sys.stdin.read().strip(), os.getcwd()))
"""
AGENTS: dict[str, dict[str, Any]] = {
    "function": {"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}},
    "worker": {"name": "a", "type": "custom", "config": {"entry": "agent.py:run", "python": sys.executable}},
    "command": {
        "name": "a",
        "type": "cli",
        "config": {"command": [sys.executable, "agent.py"], "protocol": "text"},
    },
}
"""The same agent in ATP's own process, in a process of its own for all trials, and in one for each trial."""


@dataclass
class Broken:
    """A run in which something was broken, and what came of it."""

    project: Project
    kind: str = "function"
    """Which of `AGENTS` is tested."""
    hold: str = CASES[3]
    """The case in which the harness breaks something."""
    flags: tuple[str, ...] = ()
    mark: str = field(default_factory=lambda: f"faults-{random.getrandbits(64):x}")
    """Is in the environment of every process that comes of the run."""

    def __post_init__(self) -> None:
        self.project.write("atp.toml", "")
        self.project.write("agent.py", AGENT)
        self.project.write("hold", self.hold)
        self.file = self.project.suite([AGENTS[self.kind]], [{"id": name, "input": name} for name in CASES])
        self.temporary.mkdir()
        self.done: list[str] = []
        """The cases that had a result when something was broken."""

    @property
    def temporary(self) -> Path:
        """The folder of temporary files."""
        return self.project.folder / "temporary"

    @property
    def journal(self) -> Path:
        """The journal of the only run."""
        (run,) = self.project.runs()
        return run / "journal.jsonl"

    def start(self, **more: Any) -> "subprocess.Popen[str]":
        """Start the run, and wait until the agent has been asked for the case that holds."""
        process = self.project.start("test", self.file, *self.flags, env_more=self._environment, **more)
        until(lambda: self.hold in self.project.lines("asked") or process.poll() is not None)
        if self.project.runs():
            self.done = passed(self.project)
        return process

    def release(self) -> None:
        """Let the agent go on."""
        (self.project.folder / "go").touch()

    def finish(self, process: "subprocess.Popen[str]") -> Ran:
        """Let the agent go on, and wait for the end."""
        self.release()
        return self.project.finish(process)

    @property
    def _environment(self) -> dict[str, str]:
        return {"TEST_MARK": self.mark, "TMPDIR": str(self.temporary)}

    def resume(self) -> Ran:
        """Go on with the run."""
        return self.project.test(self.file, *self.flags, "--resume", env=self._environment)

    def check(self, ended: Ran, codes: set[int], *, lost: bool = False) -> None:
        """Go on with the run, and assert that nothing was lost, run twice or left behind.

        `ended` is the end of the broken run, `codes` the exit codes that are right for it. `lost` says that the journal
        itself was broken: then what is no longer in it runs again.
        """
        assert ended.code in codes, (ended.code, ended.err)
        assert "Traceback" not in ended.err, ended.err
        assert "Traceback" not in ended.out, ended.out
        kept = passed(self.project) if self.project.runs() else []
        if not lost:
            assert set(self.done) <= set(kept), "a finished trial is lost"
        asked = Counter(self.project.lines("asked"))
        complete = is_complete(self.project)
        assert complete or ended.code != 0, "exit code 0 for a run that is not complete"
        self.release()
        again = self.resume()
        if not complete:
            if lost and "nothing-to-resume" in again.err:
                again = self.project.test(self.file, *self.flags, env=self._environment)
            assert again.code == 0, (again.code, again.err)
            assert again.statuses == dict.fromkeys(CASES, "passed")
            assert is_complete(self.project)
        else:
            assert "nothing-to-resume" in again.err
            assert sorted(kept) == CASES
        after = Counter(self.project.lines("asked"))
        assert set(after) == set(CASES)
        assert [name for name in kept if after[name] != asked[name]] == [], "a finished trial ran again"
        self.check_nothing_left()

    def check_nothing_left(self) -> None:
        """Assert that no process, workspace, lock or temporary file is left."""
        until(lambda: not left_of(self.mark))
        assert self.project.workspaces() == []
        assert list(self.project.folder.glob(".atp/runs/*/lock")) == []
        assert list(self.temporary.iterdir()) == []


def is_complete(project: Project) -> bool:
    """Whether the newest run's journal says that nothing is left to do, and has a result of every case."""
    try:
        lines = (project.runs()[-1] / "journal.jsonl").read_bytes().splitlines()
    except (OSError, IndexError):  # no journal, or no run at all
        return False
    last = json.loads(lines[-1]) if lines and lines[-1].startswith(b'{"type":"summary"') else {}
    return bool(last.get("complete")) and passed(project) == CASES


def passed(project: Project) -> list[str]:
    """The cases that passed, by the whole lines of the newest run's journal."""
    try:
        text = (project.runs()[-1] / "journal.jsonl").read_text("utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines(keepends=True):
        try:
            one = json.loads(line) if line.endswith("\n") else {}
        except ValueError:
            continue
        if one.get("type") == "trial" and one["result"].get("status", "passed") == "passed":
            found.append(one["result"]["case"])
    return sorted(set(found))


Fault = Callable[[Broken, random.Random], None]
"""Breaks something in a run and checks what came of it. The random numbers decide how and when, where that varies."""


def by_signal(*numbers: int, codes: set[int]) -> Fault:
    """Send signals to the process."""

    def act(run: Broken, chance: random.Random) -> None:
        process = run.start()
        for number in numbers:
            process.send_signal(number)
        run.check(run.project.finish(process), codes)

    return act


def stopped(run: Broken, _: random.Random) -> None:
    """Halt the process and let it go on, as a laptop that sleeps does."""
    process = run.start()
    process.send_signal(signal.SIGSTOP)
    run.release()
    process.send_signal(signal.SIGCONT)
    run.check(run.finish(process), {0})


def journal_deleted(run: Broken, _: random.Random) -> None:
    process = run.start()
    run.journal.unlink()
    ended = run.finish(process)
    assert "was deleted or replaced while the run was writing to it" in ended.out + ended.err
    run.check(ended, {3}, lost=True)


def journal_cut(run: Broken, chance: random.Random) -> None:
    process = run.start()
    os.truncate(run.journal, chance.randrange(run.journal.stat().st_size))
    ended = run.finish(process)
    assert "was cut while the run was writing to it" in ended.out + ended.err
    run.check(ended, {3}, lost=True)


def journal_cut_while_resumed(run: Broken, chance: random.Random) -> None:
    """Cut the journal of a run that was resumed, when it has taken over what was done."""
    process = run.start()
    process.kill()
    run.project.finish(process)
    before = run.project.lines("asked").count(run.hold)
    process = run.project.start("test", run.file, "--resume", env_more=run._environment)
    until(lambda: run.project.lines("asked").count(run.hold) > before)
    os.truncate(run.journal, chance.randrange(run.journal.stat().st_size))
    run.check(run.finish(process), {3}, lost=True)


def runs_moved(run: Broken, _: random.Random) -> None:
    """Rename the folder of all runs while one is under way."""
    process = run.start()
    runs = run.project.folder / ".atp" / "runs"
    runs.rename(runs.with_name("moved"))
    run.check(run.finish(process), {3}, lost=True)
    assert list(runs.with_name("moved").glob("*/journal.jsonl"))


def files_limited(run: Broken, chance: random.Random) -> None:
    """A disk on which no file can grow beyond a size, which is found out while the journal is written."""
    import resource

    most = chance.randrange(4_000, 9_000)
    run.release()
    ended = run.project.atp(
        *("test", run.file),
        env=run._environment,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    run.check(ended, {0, 3})  # 0 if that was enough


def stdout_closed(run: Broken, chance: random.Random) -> None:
    """The reader of the output goes away (`| head`)."""
    read, write = os.pipe()
    process = run.start(stdout=write)
    os.close(write)
    os.close(read)
    run.release()
    process.wait(WAIT_LIMIT)
    err = process.stderr.read() if process.stderr is not None else ""
    run.check(Ran(process.returncode, "", err), {0, 3, 141})


def stdout_full(run: Broken, _: random.Random) -> None:
    """The output goes to a disk without space."""
    with open("/dev/full", "w") as full:
        process = run.start(stdout=full)
        run.release()
        process.wait(WAIT_LIMIT)
    err = process.stderr.read() if process.stderr is not None else ""
    run.check(Ran(process.returncode, "", err), {3})


def agent_killed(run: Broken, _: random.Random) -> None:
    """Kill the processes of the agent; nothing else. In ATP's own process there is none."""
    process = run.start()
    found = [pid for pid in left_of(run.mark) if pid != process.pid]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    run.release()
    ended = run.project.finish(process)
    if not found:
        run.check(ended, {0})
        return
    assert ended.code in {0, 1, 3}, ended.err  # an agent that dies is its own fault; a worker is started again
    assert sorted({one["case"] for one in run.project.trials()}) == CASES
    run.check_nothing_left()


FAULTS: dict[str, Fault] = {
    "SIGKILL": by_signal(signal.SIGKILL, codes={-9}),
    "SIGINT": by_signal(signal.SIGINT, codes={130}),
    "SIGTERM": by_signal(signal.SIGTERM, codes={130}),
    "SIGHUP": by_signal(signal.SIGHUP, codes={-1, 130}),
    "SIGINT twice": by_signal(signal.SIGINT, signal.SIGINT, codes={130}),
    "SIGSTOP and SIGCONT": stopped,
    "journal deleted": journal_deleted,
    "journal cut": journal_cut,
    "journal cut while resumed": journal_cut_while_resumed,
    "runs folder moved": runs_moved,
    "files can't grow": files_limited,
    "reader of stdout gone": stdout_closed,
    "stdout full": stdout_full,
    "agent killed": agent_killed,
}
"""What is broken, by name."""
