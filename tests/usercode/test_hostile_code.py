"""One list of hostile acts, tried at every entrance of the user's code, by every way in (findings A4, A26).

A run has all cases, one process a way. Whatever an act does: the process ends with what the tests say, no hostile case
passes, the right one is blamed, the cases after it run, and the journal has all of them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, clean_environment
from tests.models.mock_server import Heard, MockModels, calls
from tests.waiting import WAIT_LIMIT

ACTS = """
    import os, re, sys, threading, time

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

    ACTS = {
        "exit at once": lambda: os._exit(0),
        "exit": lambda: sys.exit(0),
        "interrupt": interrupt,
        "close streams": close_streams,
        "change folder": lambda: os.chdir("/"),
        "print for ever": print_for_ever,
        "never end": hang,
    }
    ENDLESS = ("print for ever", "never end")

    def act(text):
        \"\"\"Do what a text names: `<exit at once>`, or `<exit at once in a thread>`.\"\"\"
        found = re.search("<(.+?)( in a thread)?>", text)
        if not found:
            return
        do = ACTS[found[1]]
        if not found[2]:
            do()
            return
        thread = threading.Thread(target=do, daemon=True)
        thread.start()
        if found[1] not in ENDLESS:
            thread.join()
"""
HOSTILE = f"""{ACTS}
    def agent(prompt):
        act(prompt)
        return "right" if prompt == "well" else "wrong"

    async def agent_async(prompt):
        act(prompt)
        return "wrong"

    def agent_steps(prompt):
        yield {{"type": "progress", "payload": {{"current_step": 1}}}}
        act(prompt)
        yield "wrong"

    def echo(prompt):
        return prompt

    def tool(what: str):
        act(what)
        return "done"

    def hook(about):
        act(about["case_id"])

    def check(output, input, expected):
        act(expected)
        return expected == "well"

    def judge(asked):
        text = asked["record"][-1]["text"]
        act(text)
        verdict = {{"number": 1, "met": text == "well", "score": 0, "reason": "so", "evidence": [text]}}
        return {{"verdicts": [verdict], "score": 0, "reason": "so", "evidence": [text]}}

    def speak(asked):
        act(str(asked))
        return {{"input": "", "goal_achieved": True}}

    def make(count, what):
        act(what)
        return []
"""
FINITE = ("exit at once", "exit", "interrupt", "close streams", "change folder")
ENDLESS = ("print for ever", "never end")
STUCK = tuple(f"<{one}>" for one in ENDLESS)
DIRECT = [*FINITE, *ENDLESS]
IN_THREAD = [f"{one} in a thread" for one in DIRECT]

HARMLESS = {"change folder", *IN_THREAD} - {"exit at once in a thread", "close streams in a thread"}
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
    if what in HARMLESS or (entrance == "tool" and what in ("exit", "interrupt")):
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
    soon = {"constraints": {"timeout_seconds": 1}}
    tests = [{"name": one["id"], **one, **(soon if one["id"].endswith(STUCK) else {})} for one in cases()]
    suite = {"test_suite": "hostile", "agents": agents, "tests": tests}
    project.write("suite.yaml", suite)
    program = """
        import sys, atp
        options = atp.Options(assessor="scripts:hostile.judge", output=["r.html"])
        report = atp.run_sync(atp.load("suite.yaml"), options)
        sys.exit(report.exit_code)
    """
    project.write("program.py", program)
    project.write("atp.toml", 'assessor = "scripts:hostile.judge"\n')
    return project


# Not by pytest: threads that print without end. pytest takes its streams back between two tests, and before 3.13 Python
# crashes when several threads write to one.
WAYS = {
    "atp": ["-m", "atp", "test", "suite.yaml", "-o", "r.html"],
    "pytest": ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--atp", "suite.yaml", "-k", "not print"],
    "python": ["program.py"],
}


@pytest.mark.parametrize("way", WAYS)
def test_hostile_code_at_every_entrance(project: Project, way: str) -> None:
    with MockModels(answer) as server:
        ran = subprocess.run(
            [sys.executable, *WAYS[way]],
            cwd=project.folder,
            env={**clean_environment(), **server.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=10 * WAIT_LIMIT,
        )
    lines = [json.loads(line) for line in newest_journal(project).read_text("utf-8").splitlines()]
    found = {line["result"]["case"]: line["result"] for line in lines if line["type"] == "trial"}
    seen = {name: (result.get("status", "passed"), result.get("blame")) for name, result in found.items()}
    wanted = {one["id"]: expected(one["id"]) for one in cases() if way != "pytest" or "print" not in one["id"]}
    assert {name: seen.get(name) for name in wanted if seen.get(name) != wanted[name]} == {}, ran.stderr
    assert lines[-1]["type"] == "summary"
    assert ran.returncode == 1, ran.stderr
    if way == "atp":
        assert "Failed" in ran.stdout
        assert (project.folder / "r.html").exists()


def script_tests() -> Iterator[tuple[str, str]]:
    """The name of each test, and the act that it does."""
    for what in [*FINITE, *(f"{one} in a thread" for one in (*FINITE, "never end"))]:
        yield f"test_{what.replace(' ', '_')}", what


@pytest.fixture
def script_project(tmp_path: Path) -> Project:
    """Tests in Python that do the acts and would then pass, but for those that change nothing: those then fail."""
    project = Project(tmp_path)
    text = ACTS
    for name, what in script_tests():
        end = "t.assert_.true(False)" if what in HARMLESS else "t.assert_.true(True)"
        text += f"\n    def {name}(t):\n        act('<{what}>')\n        {end}\n"
    project.write("scripts/hostile_test.py", f"{text}\n    def test_well(t):\n        t.assert_.true(True)\n")
    project.write("agent.py", "def run(prompt): return prompt\n")
    return project


def test_hostile_script_tests(script_project: Project) -> None:
    ran = script_project.test("-i", "scripts:hostile_test", "-n", "agent.py:run")
    seen = {name: (one["status"], one.get("blame")) for name, one in ran.results.items()}
    harmless = {name for name, what in script_tests() if what in HARMLESS}
    wanted = {name: ("failed" if name in harmless else "error") for name, _ in script_tests()}
    assert {name: status for name, (status, _) in seen.items()} == {**wanted, "test_well": "passed"}
    assert {blame for status, blame in seen.values() if status == "error"} == {"environment"}
    assert ran.code == 1


def newest_journal(project: Project) -> Path:
    return max((project.folder / ".atp" / "runs").glob("*/journal.jsonl"), key=os.path.getmtime)
