"""One list of hostile acts, tried at every entrance of the user's code, by every way in (findings A4, A26).

A run has all cases, one process a way. Whatever an act does: the process ends with what the tests say, no hostile case
passes, the right one is blamed, the cases after it run, and the journal has all of them. `atp test` is the only way to
generators of cases, `atp test` and pytest those to tests in Python.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.engine.support.project import Project, alive, clean_environment
from tests.models.mock_server import Heard, MockModels, calls
from tests.waiting import WAIT_LIMIT, until

ACTS = """
    import atexit, os, re, sys, tempfile, threading, time

    class Copies:
        def __init__(self, stream):
            self.stream = stream

        def write(self, text):
            self.stream.write(text)

    def replace_streams():
        sys.stdout, sys.stderr = Copies(sys.stdout), Copies(sys.stderr)

    def delete_folder():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)

    def close_streams():
        for number in range(3):
            os.close(number)

    def print_for_ever():
        while True:
            print("tick", end="")

    def hang():
        while True:
            time.sleep(60)

    def interrupt():
        raise KeyboardInterrupt

    class Hostile:
        \"\"\"What asks it for its class, its truth or its text ends.\"\"\"

        @property
        def __class__(self):
            raise SystemExit(0)

        def __bool__(self):
            raise SystemExit(0)

        def __eq__(self, other):
            raise SystemExit(0)

        __str__ = __repr__ = __hash__ = __bool__

    class HostileError(Hostile, Exception):
        pass

    def raise_hostile():
        raise HostileError

    ACTS = {
        "exit at once": lambda: os._exit(0),
        "exit": lambda: sys.exit(0),
        "exit at the end": lambda: atexit.register(os._exit, 0),
        "interrupt": interrupt,
        "close streams": close_streams,
        "change folder": lambda: os.chdir("/"),
        "delete folder": delete_folder,
        "replace streams": replace_streams,
        "print for ever": print_for_ever,
        "never end": hang,
        "raise what is hostile": raise_hostile,
    }
    ENDLESS = ("print for ever", "never end")

    def act(text):
        \"\"\"Do what a text names: `<exit at once>`, or `<exit at once in a thread>`.\"\"\"
        found = re.search("<(.+?)( in a thread)?>", text)
        if not found:
            return None
        if found[1] == "return what is hostile":
            return Hostile()
        do = ACTS[found[1]]
        if not found[2]:
            do()
            return None
        thread = threading.Thread(target=do, daemon=True)
        thread.start()
        if found[1] not in ENDLESS:
            thread.join()
"""
HOSTILE = f"""{ACTS}
    def value_of(found, value):
        return value if found is None else found

    def agent(prompt):
        return value_of(act(prompt), "right" if prompt == "well" else "wrong")

    async def agent_async(prompt):
        return value_of(act(prompt), "wrong")

    def agent_steps(prompt):
        yield {{"type": "progress", "payload": {{"current_step": 1}}}}
        yield value_of(act(prompt), "wrong")

    def echo(prompt):
        return prompt

    def tool(what: str):
        return value_of(act(what), "done")

    def hook(about):
        return act(about["case_id"])

    def check(output, input, expected):
        return value_of(act(expected), expected == "well")

    def judge(asked):
        text = asked["record"][-1]["text"]
        return value_of(act(text), {{"verdicts": [{{"number": 1, "score": 0, "reason": "so", "evidence": [text]}}]}})

    def speak(asked):
        return value_of(act(str(asked)), {{"input": "", "goal_achieved": True}})

    def make(count, what):
        cases = [{{"id": "made", "input": "wrong", "assertions": [{{"type": "equals", "value": "right"}}]}}]
        return value_of(act(what), cases)
"""
UNDONE = ("change folder", "delete folder", "replace streams")
FINITE = ("exit at once", "exit", "exit at the end", "interrupt", "close streams", *UNDONE)
ENDLESS = ("print for ever", "never end")
STUCK = tuple(f"<{one}>" for one in ENDLESS)
HOSTILE_VALUES = ("raise what is hostile", "return what is hostile")
DIRECT = [*FINITE, *ENDLESS, *HOSTILE_VALUES]
IN_THREAD = [f"{one} in a thread" for one in (*FINITE, *ENDLESS)]

HARMLESS = {*UNDONE, "exit at the end", *IN_THREAD} - {"exit at once in a thread", "close streams in a thread"}
"""Acts after which the code goes on, and gives its (wrong) answer."""
BLAME = {
    **dict.fromkeys(("agent", "agent_async", "agent_steps", "tool"), "agent"),
    **dict.fromkeys(("check", "judge"), "judge"),
    "hook": "environment",
    "speak": "simulator",
}
"""Who is to blame for what the code at an entrance does."""


def cases() -> Iterator[dict[str, Any]]:
    """The tests of the suite: an id, and whatever has the entrance's code called with the act."""
    wrong = [{"type": "equals", "value": "right"}]
    for what in DIRECT + IN_THREAD:
        named = f"<{what}>"
        for entrance in ("agent", "agent_async", "agent_steps"):
            if entrance != "agent_async" or what not in ENDLESS:  # which would block the loop: finding A25
                yield {"id": f"{entrance} {named}", "agents": [entrance], "input": named, "assertions": wrong}
        yield {"id": f"tool {named}", "agents": ["prompt"], "input": named, "assertions": wrong}
        hook = {"before_hook": "scripts:hostile.hook", "input": "wrong", "assertions": wrong}
        yield {"id": f"hook {named}", "agents": ["echo"], **hook}
        check = [{"type": "script", "script": "scripts:hostile.check", "value": named}]
        yield {"id": f"check {named}", "agents": ["echo"], "input": "hello", "assertions": check}
        judged = [{"type": "llm_eval", "criteria": "it is right"}]
        yield {"id": f"judge {named}", "agents": ["echo"], "input": named, "assertions": judged}
        simulator = {"use": "scripts.hostile.speak", "options": {"metadata": {"goal": named, "max_turns": 1}}}
        point = {"id": "never", "assertion": {"type": "equals", "value": "right"}}
        yield {"id": f"speak {named}", "agents": ["echo"], "simulator": simulator, "checkpoints": [point]}
    yield {"id": "well", "agents": ["agent"], "input": "well", "assertions": [{"type": "equals", "value": "right"}]}


def expected(name: str) -> tuple[str, str | None]:
    """The status and the blame of a case."""
    entrance, _, what = name.partition(" ")
    what = what.strip("<>")
    if entrance == "well":
        return "passed", None
    if what in ENDLESS:
        if entrance in ("judge", "check"):
            return "error", "judge"  # a deadline that expires while the judge works
        if entrance in ("hook", "speak"):
            return "error", BLAME[entrance]
        return "timeout", None
    if what in HARMLESS or (entrance == "tool" and what in ("exit", "interrupt", *HOSTILE_VALUES)):
        return "failed", None
    if (entrance, what) == ("hook", "return what is hostile"):  # what a hook returns is not looked at
        return "failed", None
    return "error", BLAME[entrance]


def answer(heard: Heard) -> Any:
    """The model of the prompt agent: it calls the tool once, and answers."""
    if any(message["role"] == "tool" for message in heard.messages):
        return "wrong"
    return calls(("tool", {"what": heard.prompt}))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("hostile"))
    project.write("scripts/hostile.py", HOSTILE)
    project.write("agents/prompt.md", "---\nmodel: openai.x\ncommands: ['../scripts/hostile.py:tool']\n---\nBe kind.\n")
    entries = ("agent", "agent_async", "agent_steps", "echo")
    agents: list[dict[str, Any]] = [
        {"name": name, "type": "custom", "config": {"entry": f"scripts/hostile.py:{name}"}} for name in entries
    ]
    agents.append({"name": "prompt", "type": "prompt", "config": {"path": "agents/prompt.md"}})
    # pytest runs one after the other, so that nothing else delays a case.
    for file, seconds in (("suite.yaml", 1), ("serial.yaml", 0.5)):
        soon = {"constraints": {"timeout_seconds": seconds}}
        tests = [{"name": one["id"], **one, **(soon if one["id"].endswith(STUCK) else {})} for one in cases()]
        project.write(file, {"test_suite": "hostile", "agents": agents, "tests": tests})
    program = """
        import sys, atp
        options = atp.Options(assessor="scripts:hostile.judge", output=["r.html"], parallel=4)
        report = atp.run_sync(atp.load("suite.yaml"), options)
        sys.exit(10 + report.exit_code)  # a traceback would end with 1, too
    """
    project.write("program.py", program)
    project.write("atp.toml", 'assessor = "scripts:hostile.judge"\n')
    return project


PYTEST = ["-m", "pytest", "-p", "atp.pytest_plugin.plugin", "-p", "no:cacheprovider"]
"""pytest without the plugins that happen to be installed: loading them takes as long as the tests."""
WAYS = {
    "atp": ["-m", "atp", "test", "suite.yaml", "-o", "r.html", "--parallel", "4"],
    "pytest": [*PYTEST, "-q", "--atp", "serial.yaml"],
    "python": ["program.py"],
}


def python(
    project: Project, *arguments: str, env: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Run Python in a project."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project.folder,
        env={**clean_environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * WAIT_LIMIT,
    )


@pytest.mark.parametrize("way", WAYS)
def test_hostile_code_at_every_entrance(project: Project, way: str) -> None:
    with MockModels(answer) as server:
        ran = python(project, *WAYS[way], env=server.env)
    lines = [json.loads(line) for line in newest_journal(project).read_text("utf-8").splitlines()]
    found = {line["result"]["case"]: line["result"] for line in lines if line["type"] == "trial"}
    seen = {name: (result.get("status", "passed"), result.get("blame")) for name, result in found.items()}
    wanted = {one["id"]: expected(one["id"]) for one in cases()}
    assert {name: seen.get(name) for name in wanted if seen.get(name) != wanted[name]} == {}, ran.stderr
    assert lines[-1]["type"] == "summary"
    assert ran.returncode == (11 if way == "python" else 1), ran.stderr
    assert "ticktick" not in ran.stdout if way == "python" else "Failed" in ran.stdout or "FAILED" in ran.stdout
    if way == "atp":
        assert (project.folder / "r.html").exists()


GENERATE = """
    import json, sys
    from atp.cli.main import cli
    from atp.usercode.exits import refuse_exits

    refuse_exits(everywhere=True)  # as `atp` does
    codes = []
    for what in json.loads(sys.argv[1]):
        source = f"scripts:hostile.make?count=1&what=<{what}>"
        print(f"## {what}", file=sys.stderr)
        arguments = ["test", "-i", source, "-n", "scripts/hostile.py:echo", "--timeout", "1s"]
        codes.append(cli.main(arguments, standalone_mode=False))
    print(json.dumps(codes))
    sys.exit(7)
"""


def test_hostile_generators_of_cases(project: Project) -> None:
    """Many calls of `atp test` in one process, which no generator ends."""
    project.write("generate.py", GENERATE)
    acts = DIRECT + IN_THREAD
    ran = python(project, "generate.py", json.dumps(acts))
    assert ran.returncode == 7, ran.stderr
    codes = dict(zip(acts, json.loads(ran.stdout.splitlines()[-1]), strict=True))
    assert codes == {what: 1 if what in HARMLESS else 2 for what in acts}
    said = dict(one.split("\n", 1) for one in ran.stderr.split("## ")[1:])
    for what in set(acts) - HARMLESS:
        assert said[what].startswith("error[no-generated-cases]: scripts:hostile.make made no cases"), said[what]


def script_tests() -> Iterator[tuple[str, str]]:
    """The name of each test, and the act that it does."""
    # Last the interrupt: pytest can't tell it from Ctrl-C, and ends.
    for what in [*(one for one in FINITE if one != "interrupt"), "raise what is hostile", *IN_THREAD, "interrupt"]:
        yield f"test_{what.replace(' ', '_')}", what


@pytest.fixture
def script_project(tmp_path: Path) -> Project:
    """Tests in Python that do the acts and would then pass, but for those that change nothing: those then fail."""
    project = Project(tmp_path)
    text = f"{ACTS}\n    def test_well(t):\n        t.assert_.true(True)\n"
    for name, what in script_tests():
        end = "t.assert_.true(False)" if what in HARMLESS else "t.assert_.true(True)"
        text += f"\n    def {name}(t):\n        act('<{what}>')\n        {end}\n"
    project.write("scripts/hostile_test.py", text)
    endless = "".join(f"\n    def test_{one.replace(' ', '_')}():\n        act('<{one}>')\n" for one in ENDLESS)
    project.write("scripts/endless_test.py", ACTS + endless)
    project.write("agent.py", "def run(prompt): return prompt\n")
    project.write("atp.toml", "")
    return project


def test_hostile_script_tests(script_project: Project) -> None:
    ran = script_project.test("-i", "scripts:hostile_test", "-n", "agent.py:run")
    seen = {name: (one["status"], one.get("blame")) for name, one in ran.results.items()}
    wanted = {name: ("failed" if what in HARMLESS else "error") for name, what in script_tests()}
    assert {name: status for name, (status, _) in seen.items()} == {**wanted, "test_well": "passed"}
    assert {blame for status, blame in seen.values() if status == "error"} == {"environment"}
    assert ran.code == 1


def test_endless_script_tests(script_project: Project) -> None:
    ran = script_project.test("-i", "scripts:endless_test", "-n", "agent.py:run", "--timeout", "1s", "--parallel", "2")
    assert {(one["status"], one.get("blame")) for one in ran.results.values()} == {("error", "environment")}
    assert ran.code == 3


def test_hostile_script_tests_by_pytest(script_project: Project) -> None:
    """pytest has no deadline for tests in Python: those that never end are not tried."""
    ran = python(script_project, *PYTEST, "-rA", "scripts/hostile_test.py")
    seen = {name: word for word, name in re.findall(r"^(PASSED|FAILED) .*::(\w+)", ran.stdout, re.MULTILINE)}
    wanted = {name: "FAILED" for name, what in script_tests() if what != "interrupt"}
    assert seen == {**wanted, "test_well": "PASSED"}, ran.stdout
    assert "KeyboardInterrupt" in ran.stdout
    assert ran.returncode == pytest.ExitCode.INTERRUPTED
    assert "os._exit(0) would have ended the tests themselves" in ran.stdout
    assert "os.close(0) would have closed the standard streams of the tests themselves" in ran.stdout


BREAKS_LOOP = """
    import os

    async def run(prompt):
        for number in os.listdir("/proc/self/fd"):
            try:
                if "eventpoll" in os.readlink(f"/proc/self/fd/{number}"):
                    os.close(int(number))
            except OSError:
                pass
        return prompt
"""


def one_agent(project: Project, code: str, *prompts: str, right: str | None = None) -> None:
    """Write an agent and a suite with a test for each prompt, for every way."""
    project.write("agent.py", code)
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}
    tests = [{"id": one, "input": one, "assertions": [{"type": "equals", "value": right or one}]} for one in prompts]
    for file in ("suite.yaml", "serial.yaml"):
        project.suite([agent], tests, file=file)
    project.write("program.py", "import atp, sys\nsys.exit(atp.run_sync(atp.load('suite.yaml')).exit_code)\n")


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_closes_the_descriptors_of_the_event_loop(tmp_path: Path, way: str) -> None:
    """As code does that makes a daemon of its process. Later cases fail, and nobody waits for the loop."""
    project = Project(tmp_path)
    one_agent(project, BREAKS_LOOP, "a", "b")
    ran = python(project, *WAYS[way])
    assert ran.returncode == (3 if way == "atp" else 1), ran.stdout + ran.stderr
    assert "the code under test has broken the event loop of the tests: OSError" in ran.stdout + ran.stderr
    if way == "pytest":
        assert "2 failed" in ran.stdout or "2 errors" in ran.stdout


REPLACES = """
    import asyncio, sys, time

    def leave(*args, **kwargs):
        sys.exit(0)

    async def leave_async(*args, **kwargs):
        sys.exit(0)

    def run(prompt):
        if prompt == "time":
            time.time = leave
        if prompt == "asyncio":
            asyncio.wait = asyncio.sleep = leave_async
        return "wrong"
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("module", ["time", "asyncio"])
def test_functions_of_pythons_own_that_are_replaced_by_some_that_exit(tmp_path: Path, module: str, way: str) -> None:
    """Whoever calls them next, ATP, pytest or asyncio: the process does not end as if all had passed."""
    project = Project(tmp_path)
    one_agent(project, REPLACES, module, "b", right="right")
    ran = python(project, *WAYS[way])
    assert ran.returncode in (1, 3), ran.stdout + ran.stderr
    assert "SystemExit" in ran.stdout + ran.stderr


LEAVES_FORKS = """
    import multiprocessing, os, time

    KEPT = []

    def stay():
        open(f"pid-{os.getpid()}", "w").close()
        time.sleep(600)

    def run(prompt):
        if prompt == "fork" and not os.fork():
            stay()
        if prompt == "daemon" and not os.fork():
            os.setsid()
            os.closerange(0, 1024)
            if os.fork():
                os._exit(0)
            stay()
        if prompt == "multiprocessing":
            KEPT.append(multiprocessing.get_context("fork").Process(target=stay))
            KEPT[-1].start()
        while not any(name.startswith("pid-") for name in os.listdir()):
            time.sleep(0.01)
        return prompt
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["fork", "daemon", "multiprocessing"])
def test_forks_that_an_agent_leaves_are_ended(tmp_path: Path, kind: str, way: str) -> None:
    project = Project(tmp_path)
    one_agent(project, LEAVES_FORKS, kind)
    ran = python(project, *WAYS[way])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    pids = [one.name.partition("-")[2] for one in project.folder.glob("pid-*")]
    assert pids
    until(lambda: not any(alive(int(pid)) for pid in pids))


def newest_journal(project: Project) -> Path:
    return max((project.folder / ".atp" / "runs").glob("*/journal.jsonl"), key=os.path.getmtime)
