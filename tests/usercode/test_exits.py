"""What code that is not ours is refused: to end the process, and to close its streams."""

import _thread
import atexit
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.agents.support.talk import run
from tests.engine.support.project import Project, clean_environment
from tests.waiting import WAIT_LIMIT

from atp.usercode.call import Raised, call
from atp.usercode.exits import LIVE_THREADS, EndsProcess, foreign


def raised(function: Callable[[], Any]) -> Raised:
    with pytest.raises(Raised) as found:
        run(call(function))
    return found.value


@pytest.mark.parametrize(
    ("close", "said"),
    [
        (lambda: os.close(0), "os.close(0)"),
        (lambda: os.closerange(0, 1), "os.closerange(0, 1)"),
    ],
)
def test_closing_a_stream_is_refused(close: Callable[[], None], said: str) -> None:
    error = raised(close)
    assert isinstance(error.error, EndsProcess)
    assert f"{said} would have closed the standard streams" in str(error)
    os.fstat(0)


def test_a_stream_that_was_closed_all_the_same_is_open_again() -> None:
    error = raised(lambda: io.FileIO(0).close())
    assert str(error) == "ClosedStreams: it closed stdin of the process that runs the tests"
    os.fstat(0)


def test_our_own_code_and_other_descriptors_may_be_closed() -> None:
    copy = os.dup(0)
    run(call(os.close, (copy,)))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(copy)
    copies = os.dup(0), os.dup(0)
    os.dup2(0, copies[1])
    os.closerange(copies[0], copies[0] + 1)
    os.close(copies[1])


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., Any]]:
    """What is registered to be called at the end of the process."""
    found: list[Callable[..., Any]] = []
    monkeypatch.setattr("atp.usercode.exits._REAL_REGISTER", lambda function, *_args: found.append(function))
    return found


def test_what_is_registered_for_the_end_of_the_process_is_refused_the_same(
    registered: list[Callable[..., Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with foreign() as code:
        assert atexit.register(os._exit, 0) is os._exit
        thread = threading.Thread(target=lambda: atexit.register(os.abort))
        thread.start()
        thread.join()
    assert registered == [os._exit, os.abort]  # so that `atexit.unregister` finds them
    registered[0](0)
    registered[1]()
    assert capsys.readouterr().err == (
        "atp: at the end of the process: os._exit(0) would have ended the tests themselves\n"
        "atp: at the end of the process: os.abort() would have ended the tests themselves\n"
    )
    assert len(code.refused) == 2


def test_what_our_own_code_registers_is_as_it_was(registered: list[Callable[..., Any]]) -> None:
    with foreign():
        pass
    atexit.register(len, "")
    assert registered[0] is len


IMPATIENT = """
    from atp.__main__ import main
    from atp.usercode import exits

    exits.EXIT_SECONDS = 0.1
    main()
"""
STAYS = {
    "thread": "threading.Thread(target=threading.Event().wait, daemon=False).start()",
    "executor": "concurrent.futures.ThreadPoolExecutor().submit(threading.Event().wait)",
    "atexit": "atexit.register(threading.Event().wait)",
}


def python(project: Project, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        cwd=project.folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT,
        check=False,
    )


@pytest.mark.parametrize("how", STAYS)
def test_what_would_never_end_is_not_waited_for_when_atp_ends(project: Project, how: str) -> None:
    act = f"import atexit, concurrent.futures, threading\ndef run(prompt):\n    {STAYS[how]}\n    return prompt\n"
    project.write("agent.py", act)
    project.write("impatient.py", IMPATIENT)
    file = project.cases("a", {"id": "b", "input": "b", "expected": "c"})
    command = ["impatient.py", "test", file, "-n", "agent.py:run", "--quiet"]
    ran = python(project, *command)
    assert ran.returncode == 1, ran.stderr
    assert ran.stderr.startswith("atp: the code under test does not end: ")
    assert [one["case"] for one in project.trials()] == ["a", "b"]


UNMARKED = {
    "an empty context": "contextvars.Context().run(os._exit, 0)",
    "a hook of threads": "threading.excepthook = lambda _: os._exit(0); thread(lambda: 1 / 0)",
    "a raw thread": "thread(lambda: contextvars.Context().run(os._exit, 0))",
}


@pytest.mark.parametrize("how", UNMARKED)
def test_an_import_does_not_end_a_program_with_0(project: Project, how: str) -> None:
    """In code that has lost its mark, nobody ends the process with 0 while a module is imported."""
    project.write(
        "agent.py",
        f"""
        import contextvars, os, threading

        def thread(function):
            one = threading.Thread(target=function)
            one.start()
            one.join()

        {UNMARKED[how]}

        def run(prompt):
            return prompt
        """,
    )
    load = "from atp.usercode.code_path import load_function\nload_function('agent.py:run', [])\nraise SystemExit(7)\n"
    project.write("program.py", load)
    assert python(project, "program.py").returncode in (1, 7)


LATE = {
    "an object that is left": "builtins.LEFT = Exits()",
    "imports": "builtins.__import__ = lambda *_args, **_more: sys.exit(0)",
}


@pytest.mark.parametrize("how", LATE)
def test_a_program_that_runs_tests_does_not_end_with_0(project: Project, how: str) -> None:
    """When the interpreter ends, the code under test is no longer marked; and functions of Python's may raise."""
    project.write(
        "agent.py",
        f"""
        import builtins, os, sys

        class Exits:
            def __del__(self, leave=os._exit):
                leave(0)

        def run(prompt):
            {LATE[how]}
            return "wrong"
        """,
    )
    project.cases({"id": "a", "input": "a", "expected": "right"})
    project.write("program.py", "import sys, atp\nsys.exit(atp.run_sync(atp.load('suite.yaml')).exit_code)\n")
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}
    project.suite([agent], [{"id": "a", "input": "a", "assertions": [{"type": "equals", "value": "right"}]}])
    ran = python(project, "program.py")
    assert ran.returncode == 1, ran.stderr


def test_a_thread_that_could_not_be_started_is_not_taken_for_one_that_runs() -> None:
    started, ended = threading.Event(), threading.Event()

    def begin() -> None:
        started.set()
        ended.wait()

    before = set(LIVE_THREADS)
    with foreign():
        thread = threading.Thread(target=begin, daemon=True)
        thread.start()
        started.wait()
        with pytest.raises(RuntimeError, match="only be started once"):
            thread.start()
        with pytest.raises(TypeError):
            _thread.start_new_thread(begin, "no tuple")  # type: ignore[call-overload]
    assert len(LIVE_THREADS - before) == 1
    ended.set()
    thread.join()
    assert before >= LIVE_THREADS
