"""SIGINT and SIGTERM: the run ends in good order, at once, and can be gone on with."""

import signal
import sys
from pathlib import Path

import pytest
from tests.engine.support.project import Project, Ran, alive
from tests.waiting import until

WAITS = """
    import asyncio, os, time

    def _begin(prompt):
        with open("asked", "a") as file:
            print(prompt, file=file)

    def sync(prompt):
        _begin(prompt)
        if prompt.startswith("wait") and not os.path.exists("go"):
            time.sleep(600)
        return prompt

    async def deaf(prompt):
        _begin(prompt)
        while prompt.startswith("wait") and not os.path.exists("go"):
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                pass
        return prompt

    async def blocks(prompt):
        _begin(prompt)
        if prompt.startswith("wait"):
            time.sleep(600)
        return prompt
"""
COMMAND = """
    import os, pathlib, signal, subprocess, sys, time
    here = pathlib.Path(__file__).parent
    prompt = sys.stdin.read().strip()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open(here / "pids", "a") as file:
        print(os.getpid(), child.pid, file=file)
    with open(here / "asked", "a") as file:
        print(prompt, file=file)
    time.sleep(600)
"""


def interrupt(project: Project, flags: list[str], asked: int, number: int = signal.SIGINT) -> Ran:
    """Start, wait until so many were asked, send a signal, and wait for the end, which no agent here brings about."""
    running = project.start("test", *flags)
    until(lambda: len(project.lines("asked")) >= asked)
    running.send_signal(number)
    return project.finish(running)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_good_order(project: Project, number: int) -> None:
    project.write("agent.py", WAITS)
    file = project.cases("a", "b", "wait", "d")
    flags = [file, "-n", "agent.py:sync", "-o", "out.json"]
    ran = interrupt(project, flags, 3, number)
    assert ran.code == 130
    assert "Stopped:   interrupted" in ran.out
    assert "Passed:    2" in ran.out
    assert "Not run:   1" in ran.out
    assert f"Go on with: atp test {file} -n agent.py:sync -o out.json --resume" in ran.out
    assert str(project.runs()[0] / "journal.jsonl") in ran.out
    last = project.journal()[-1]
    assert (last["type"], last["complete"], last["reason"]) == ("summary", False, "interrupted")
    assert last["counts"]["passed"] == 2
    assert last["counts"]["cancelled"] == 1
    assert "stopped" in project.atp("runs").out
    (project.folder / "go").touch()
    again = project.test(file, "-n", "agent.py:sync", "--resume")
    assert again.code == 0
    assert list(again.results) == ["a", "b", "wait", "d"]
    assert project.lines("asked") == ["a", "b", "wait", "wait", "d"]


def test_parallel_runs_of_commands_leave_no_process(project: Project) -> None:
    project.write("agent.py", COMMAND)
    config = {"command": [sys.executable, "agent.py"], "protocol": "text"}
    tests = [{"id": f"t{number}"} for number in range(6)]
    file = project.suite([{"name": "cli", "type": "cli", "config": config}], tests)
    ran = interrupt(project, [file, "--parallel", "4"], 4)
    assert ran.code == 130
    assert [one["status"] for one in project.trials()] == ["cancelled"] * 4
    pids = [int(pid) for pid in project.lines("pids")]
    assert len(pids) == 8
    assert not [pid for pid in pids if alive(pid)]
    assert project.workspaces() == []


@pytest.mark.parametrize("agent", ["deaf", "blocks"])
def test_agents_that_will_not_stop_do_not_hold_it_up(project: Project, agent: str) -> None:
    """One swallows its cancellation; one blocks the event loop, so that not even a summary can be written."""
    project.write("agent.py", WAITS)
    ran = interrupt(project, [project.cases("a", "wait"), "-n", f"agent.py:{agent}"], 2)
    assert ran.code == 130
    assert [one["case"] for one in project.trials()][:1] == ["a"]
    (project.folder / "go").touch()
    project.write("agent.py", WAITS.replace("time.sleep(600)", "pass"))
    assert project.test("cases.jsonl", "-n", f"agent.py:{agent}", "--resume").code == 0


def test_the_second_signal_leaves_at_once(project: Project) -> None:
    project.write("agent.py", COMMAND)
    project.write("hooks.py", "import time\ndef slow():\n    open('tearing-down', 'w').close()\n    time.sleep(600)\n")
    config = {"command": [sys.executable, "agent.py"], "protocol": "text"}
    file = project.suite([{"name": "cli", "type": "cli", "config": config}], [{"id": "a"}, {"id": "b"}])
    running = project.start("test", file, "--after-all", "hooks.py:slow")
    until(lambda: project.lines("asked"))
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    assert project.finish(running).code == 130
    assert not [pid for pid in project.lines("pids") if alive(int(pid))]
    assert project.journal()[-1]["type"] != "summary"


def test_a_signal_during_a_hook_of_the_whole_run(project: Project) -> None:
    project.write("agent.py", WAITS)
    project.write(
        "hooks.py",
        """
        import time
        def before():
            print("beginning", file=open("asked", "a"))
            time.sleep(600)
        def after():
            print("after", file=open("asked", "a"))
        """,
    )
    flags = [project.cases("a"), "-n", "agent.py:sync", "--before-all", "hooks.py:before"]
    ran = interrupt(project, [*flags, "--after-all", "hooks.py:after"], 1)
    assert ran.code == 130
    assert project.lines("asked") == ["beginning"]
    assert project.journal()[-1]["type"] == "summary"


def test_the_run_can_be_gone_on_with_from_anywhere(project: Project, tmp_path: Path) -> None:
    project.write("agent.py", WAITS)
    project.write("atp.toml", "")
    file = project.cases("a", "wait")
    interrupt(project, [file, "-n", "agent.py:sync"], 2)
    (project.folder / "go").touch()
    below = tmp_path / "below"
    below.mkdir()
    (below / "go").touch()
    ran = project.test("../cases.jsonl", "-n", "../agent.py:sync", "--resume", cwd=below)
    assert ran.code == 0
    assert ran.events[0]["run_id"] == project.runs()[0].name


def test_ctrl_c_is_exit_130(project: Project) -> None:
    project.write("agent.py", "import time\ndef run(): open('at-it', 'w'); time.sleep(600)")
    running = project.start("test", project.cases("a"), "-n", "agent.py:run")
    until((project.folder / "at-it").exists)
    running.send_signal(2)
    assert project.finish(running).code == 130


STARTS_ON_IMPORT = """
    import pathlib, subprocess, time

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen(["sleep", "600"], start_new_session=True, **quiet)
    pathlib.Path("pids").write_text(str(child.pid))
    while not pathlib.Path("go").exists():
        time.sleep(0.01)

    def run(prompt):
        return prompt
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_an_agent_is_imported_ends_what_the_import_has_started(project: Project, number: int) -> None:
    project.write("agent.py", STARTS_ON_IMPORT)
    running = project.start("test", project.cases("a"), "-n", "agent.py:run")
    until(lambda: project.lines("pids"))
    running.send_signal(number)
    assert project.finish(running).code == 130
    assert not alive(int(project.lines("pids")[0]))


POOL = """
    import multiprocessing

    def double(number):
        return 2 * number

    def run(prompt):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            doubled = pool.map(double, [1, 2])
        open("pool-ended", "w").close()
        return doubled
"""
WAITS_FOR_POOL = """
    import pathlib, sys, time
    sys.stdin.read()
    here = pathlib.Path(__file__).parent
    while not (here / "pool-ended").exists():
        time.sleep(0.01)
    print("here")
"""


def test_signals_to_processes_of_an_agents_pool_are_not_for_the_run(project: Project) -> None:
    """`multiprocessing` ends its workers by SIGTERM; forks of ours have inherited our handler."""
    project.write("agent.py", POOL)
    project.write("waits.py", WAITS_FOR_POOL)
    agents = [
        {"name": "pool", "type": "custom", "config": {"entry": "agent.py:run"}},
        {"name": "cli", "type": "cli", "config": {"command": [sys.executable, "waits.py"], "protocol": "text"}},
    ]
    tests = [
        {"id": "waits", "agents": ["cli"], "input": "x", "assertions": [{"type": "equals", "value": "here"}]},
        {"id": "pool", "agents": ["pool"], "input": "x", "assertions": [{"type": "equals", "value": [2, 4]}]},
    ]
    ran = project.test(project.suite(agents, tests), "--parallel", "2", "--retries", "0")
    assert ran.statuses == {"waits": "passed", "pool": "passed"}
    assert ran.code == 0
