"""Nothing is left behind: no process, no folder, no open connection, however a trial or ATP itself ends."""

import os
import signal
import socket
import sys
from typing import Any

from tests.engine.support.project import Project, alive, kill, left_of
from tests.engine.support.server import Server
from tests.waiting import until

FORKS = """
    import os, pathlib, signal, subprocess, sys, time
    here, prompt = pathlib.Path(__file__).parent, sys.stdin.read().strip()

    def note(what, pid):
        with open(here / "pids", "a") as file:
            print(f"{what}:{pid}", file=file)

    def sleeper(**how):
        return subprocess.Popen(["sleep", "600"], **how).pid

    note("self", os.getpid())
    if "child" in prompt:
        note("child", sleeper())
    if "session" in prompt:
        note("session", sleeper(start_new_session=True))
    if "daemon" in prompt:  # forks twice, so that its parent is gone and init takes it over
        if (first := os.fork()) == 0:
            os.setsid()
            if (second := os.fork()) == 0:
                for number in range(3):
                    os.close(number)
                time.sleep(600)
            note("daemon", second)  # not by itself, which may be after the rest is ready
            os._exit(0)
        os.waitpid(first, 0)
    if "deaf" in prompt:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (pathlib.Path.cwd() / "made.txt").write_text("made")
    note("ready", 0)
    if "crash" in prompt:
        os.kill(os.getpid(), signal.SIGSEGV)
    if "hang" in prompt:
        time.sleep(600)
    print(prompt)
"""


def command(**more: Any) -> list[dict[str, Any]]:
    return [
        {"name": "cli", "type": "cli", "config": {"command": [sys.executable, "forks.py"], "protocol": "text", **more}}
    ]


def pids(project: Project) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in project.lines("pids"):
        what, _, pid = line.partition(":")
        found.setdefault(what, []).append(int(pid))
    found.pop("ready", None)
    return found


def left(project: Project) -> dict[str, list[int]]:
    return {what: living for what, all_ in pids(project).items() if (living := [pid for pid in all_ if alive(pid)])}


def test_timeouts_crashes_and_clean_exits(project: Project) -> None:
    project.write("forks.py", FORKS)
    how = ["hang child", "hang child session deaf", "hang daemon", "crash child session daemon", "child session daemon"]
    tests = [{"id": prompt.replace(" ", "-"), "input": prompt} for prompt in how]
    ran = project.test(
        project.suite(command(environment={"TEST_MARK": "one"}), tests), "--parallel", "5", "--timeout", "4s"
    )
    got = [(ran.results[test["id"]]["status"], ran.results[test["id"]]["blame"]) for test in tests]
    assert got == [*[("timeout", None)] * 3, ("error", "agent"), ("passed", None)]
    started = {what: len(found) for what, found in pids(project).items()}
    assert started == {"self": 5, "child": 4, "session": 3, "daemon": 3}
    assert left(project) == {}
    assert left_of("one") == []
    assert project.workspaces() == []
    assert not (project.runs()[0] / "lock").exists()


def test_fail_fast_cancels_without_leaving_anything(project: Project) -> None:
    project.write("forks.py", FORKS)
    project.write(
        "fails.py",
        """
        import os, time
        def run():
            while open("pids").read().count("ready") < 3 if os.path.exists("pids") else True:
                time.sleep(0.01)
            raise RuntimeError
        """,
    )
    agents = [*command(), {"name": "fails", "type": "custom", "config": {"entry": "fails.py:run"}}]
    tests = [{"id": f"t{n}", "input": "hang child session daemon", "agents": ["cli"]} for n in range(3)]
    file = project.suite(agents, [*tests, {"id": "fails", "agents": ["fails"]}])
    ran = project.test(file, "--parallel", "4", "--fail-fast")
    assert ran.code == 1
    assert ran.statuses == {"t0": "cancelled", "t1": "cancelled", "t2": "cancelled", "fails": "error"}
    assert len(pids(project)["daemon"]) == 3
    assert left(project) == {}
    assert project.workspaces() == []


def test_after_a_kill_of_atp_the_next_start_ends_what_was_left(project: Project) -> None:
    project.write("forks.py", FORKS)
    file = project.suite(command(), [{"id": "a", "input": "hang child session daemon deaf"}])
    other = project.suite(command(), [{"id": "b", "input": "fine"}], file="other.yaml")
    running = project.start("test", file)
    until(lambda: "ready:0" in project.lines("pids"))
    kill(running)
    assert set(left(project)) == {"self", "child", "session", "daemon"}
    (folder,) = project.folder.glob(".atp/runs/*/work/*")
    assert (folder / "made.txt").exists()
    assert project.test(other, "--dry-run").code == 0  # runs nothing, so it touches nothing
    assert set(left(project)) == {"self", "child", "session", "daemon"}
    assert project.test(other).code == 0
    assert left(project) == {}
    assert project.workspaces() == []
    assert list(project.folder.glob(".atp/runs/*/lock")) == []


def test_a_start_leaves_other_runs_that_live_alone(project: Project) -> None:
    project.write("forks.py", FORKS)
    file = project.suite(command(), [{"id": "a", "input": "hang child"}])
    other = project.suite(command(), [{"id": "b", "input": "fine"}], file="other.yaml")
    running = project.start("test", file)
    until(lambda: "ready:0" in project.lines("pids"))
    assert project.test(other).code == 0
    assert set(left(project)) == {"self", "child"}
    assert running.poll() is None
    assert list(project.folder.glob(".atp/runs/*/work/*/made.txt"))
    running.terminate()
    assert project.finish(running).code == 130
    assert left(project) == {}


def test_processes_that_python_agents_start(project: Project) -> None:
    """In our own process there is no group to end, and a thread can't be stopped; the mark finds them at the end."""
    project.write(
        "agent.py",
        """
        import os, subprocess, sys
        def run(prompt):
            child = subprocess.Popen(["sleep", "600"], start_new_session=True)
            with open("pids", "a") as file:
                print(f"child:{child.pid}", file=file)
            if prompt == "hang":
                child.wait()
            return prompt
        """,
    )
    ran = project.test(project.cases("fine", "hang"), "-n", "agent.py:run", "--timeout", "1s", "--parallel", "2")
    assert ran.statuses == {"fine": "passed", "hang": "timeout"}
    assert len(pids(project)["child"]) == 2
    assert left(project) == {}


def test_a_forked_copy_of_us_does_not_hold_the_run(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os, signal, time
        def run():
            if os.path.exists("pids"):
                return "fine"
            if (child := os.fork()) == 0:
                os.closerange(0, 64)
                time.sleep(600)
            with open("pids", "a") as file:
                print(f"copy:{child}", file=file)
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    file = project.cases("a")
    assert project.atp("test", file, "-n", "agent.py:run").code == -9
    (copy,) = pids(project)["copy"]
    try:
        assert alive(copy)
        assert project.test(file, "-n", "agent.py:run", "--resume").code == 0
    finally:
        os.kill(copy, signal.SIGKILL)


def test_no_connection_stays_open(project: Project, server: Server) -> None:
    agents = [{"name": name, "type": "http", "config": {"endpoint": server.url(name)}} for name in ("slow", "echo")]
    ran = project.test(project.suite(agents, [{"id": "a"}, {"id": "b"}]), "--timeout", "1s", "--parallel", "4")
    assert ran.summary["passed"] == 2
    assert ran.summary["failed"] == 2
    until(lambda: server.open == 0)


def test_a_python_agent_that_comes_back_later_leaves_no_folder(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import os, time
        def run(prompt, workspace):
            if prompt == "late":
                while not os.path.exists("over"):
                    time.sleep(0.01)
                os.makedirs(workspace, exist_ok=True)
                (workspace / "late.txt").write_text("late")
                open("written", "w").close()
            else:
                open("over", "w").close()
                while not os.path.exists("written"):
                    time.sleep(0.01)
            return prompt
        """,
    )
    file = project.cases({"id": "late", "input": "late", "timeout": "500ms"}, "waits")
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.statuses == {"late": "timeout", "waits": "passed"}
    assert project.workspaces() == []


def test_commands_that_behave_oddly_end_in_a_clear_status(project: Project) -> None:
    odd = {
        "never reads stdin": "print('fine')",
        "closes stdout": "import os, sys\nsys.stdin.read()\nos.close(1)",
        "forks and exits": "import os, sys, time\nsys.stdin.read()\nif os.fork() == 0: time.sleep(600)\nprint('fine')",
        "is not there": "",
    }
    agents = []
    for what, code in odd.items():
        file = project.write(f"{what.replace(' ', '-')}.py", code)
        program = "no-such-program" if what == "is not there" else sys.executable
        config = {"command": [program, file.name], "protocol": "text"}
        agents.append({"name": what, "type": "cli", "config": config})
    test = {"id": "a", "input": "x" * 3_000_000, "assertions": [{"type": "equals", "value": "fine"}]}
    ran = project.test(project.suite(agents, [test]), "--timeout", "30s", "--parallel", "4")
    assert {one["agent_id"]: one["status"] for one in ran.events[1:-1]} == {
        "never reads stdin": "passed",
        "closes stdout": "failed",
        "forks and exits": "passed",
        "is not there": "error",
    }
    assert project.workspaces() == []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def test_no_port_stays_open(project: Project) -> None:
    port = free_port()
    project.write(
        "serves.py",
        f"""
        import socket, subprocess, sys, pathlib
        code = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen(); " \\
            "open({str(project.folder / "listening")!r}, 'w').close(); time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        while not pathlib.Path({str(project.folder / "listening")!r}).exists():
            pass
        raise SystemExit(1)
        """,
    )
    config = {"command": [sys.executable, "serves.py"], "protocol": "text"}
    ran = project.test(project.suite([{"name": "serves", "type": "cli", "config": config}], [{"id": "a"}]))
    assert ran.results["a"]["status"] == "error"
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0


def test_a_timeout_ends_the_agents_process(project: Project) -> None:
    project.write(
        "sleeper.py", "import os, time\nopen('../../../../../pid', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    agent = {"name": "sleeper", "type": "cli", "config": {"command": [sys.executable, "sleeper.py"]}}
    ran = project.test(project.suite([agent], [{"id": "a", "constraints": {"timeout_seconds": 2}}]))
    assert ran.results["a"]["status"] == "timeout"
    assert ran.results["a"]["error"] == "timeout after 2s"
    assert not alive(int((project.folder / "pid").read_text()))
