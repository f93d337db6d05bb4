"""Code that keeps the event loop or the interpreter for good: no timeout can end it, so the process is ended."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT, until

AGENT = """
    import asyncio, pathlib, re, time

    class Endless(Exception):
        def __str__(self):
            while True:
                pass

    def act(prompt):
        match prompt:
            case "regex":
                re.match("(a+)+$", "a" * 60 + "b")
            case "sleep":
                time.sleep(3600)
            case "text":
                raise Endless
        return prompt

    def blocking(prompt):
        return act(prompt)

    async def waiting(prompt):
        if prompt == "stop":
            pathlib.Path("began").touch()
            await asyncio.sleep(3600)
        return act(prompt)
"""
ATP = """
    from atp.cli.main import main
    from atp.usercode import watchdog

    watchdog.TICK, watchdog.GRACE, watchdog.CPU_GRACE = 0.05, 0.2, 0.01
    main()
"""
"""`atp` with less patience."""


@pytest.fixture
def started(project: Project) -> Project:
    project.write("agent.py", AGENT)
    project.write("impatient.py", ATP)
    return project


def start(project: Project, agent: str, *prompts: str, others: str = "500ms") -> "subprocess.Popen[str]":
    timeouts = {"before": others, **dict.fromkeys(prompts, "500ms"), "after": others}
    file = project.cases(*[{"id": one, "input": one, "timeout": timeouts[one]} for one in timeouts])
    command = ["impatient.py", "test", file, "-n", f"agent.py:{agent}", "--json"]
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=project.folder,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("agent", "prompt", "said"),
    [
        ("blocking", "regex", "held the Python interpreter"),
        ("waiting", "sleep", "blocked the event loop"),
        ("waiting", "text", "blocked the event loop"),
    ],
)
def test_the_process_ends_with_3_and_says_why(started: Project, agent: str, prompt: str, said: str) -> None:
    out, err = (process := start(started, agent, prompt)).communicate(timeout=WAIT_LIMIT)
    assert process.returncode == 3, err
    assert f"atp: the code under test has {said} for longer than a trial may take" in err
    assert "agent.py" in err  # the stack
    assert [json.loads(line)["id"] for line in out.splitlines() if '"result"' in line] == ["before"]
    assert [one["case"] for one in started.trials()] == ["before"]


def test_the_limit_is_that_of_the_trial_which_holds_the_interpreter(started: Project) -> None:
    """Not that of the trial before it, nor the longest of the run, though no thread of ATP's has seen it begin."""
    process = start(started, "blocking", "regex", others="1h")
    _, err = process.communicate(timeout=WAIT_LIMIT)
    assert process.returncode == 3, err
    assert "held the Python interpreter" in err


def test_code_in_a_thread_that_lets_the_interpreter_go_costs_one_trial(started: Project) -> None:
    out, err = (process := start(started, "blocking", "text")).communicate(timeout=WAIT_LIMIT)
    assert process.returncode == 1, err
    results = [json.loads(line) for line in out.splitlines()]
    assert [one["status"] for one in results if one["type"] == "result"] == ["passed", "timeout", "passed"]


def test_a_process_that_was_stopped_goes_on(started: Project) -> None:
    process = start(started, "waiting", "stop")
    until((started.folder / "began").exists)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)  # longer than deadline and grace
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=WAIT_LIMIT)
    assert process.returncode == 1, err
    results = [json.loads(line) for line in out.splitlines()]
    assert [one["status"] for one in results if one["type"] == "result"] == ["passed", "timeout", "passed"]


def test_ctrl_backslash_ends_code_that_holds_the_interpreter(started: Project) -> None:
    started.write("impatient.py", "from atp.cli.main import main\nmain()\n")
    started.write(
        "agent.py",
        """
        import pathlib, re

        def blocking(prompt):
            pathlib.Path("began").touch()
            re.match("(a+)+$", "a" * 60 + "b")
        """,
    )
    process = start(started, "blocking")
    until((started.folder / "began").exists)
    os.kill(process.pid, signal.SIGQUIT)
    _, err = process.communicate(timeout=WAIT_LIMIT)
    assert process.returncode == 3
    assert "agent.py" in err
