"""Python agents that do what no agent should, through the command line: each costs its own trial, and nothing else."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran, alive

from atp.journal.read import read_lines
from atp.journal.records import RunInfo, Trial
from atp.journal.write import Journal, JournalError
from atp.suite.result import TrialResult, Turn

WELL = {"id": "well", "input": "well", "assert": {"type": "equals", "value": "hello"}}


def checked(name: str, **more: Any) -> dict[str, Any]:
    """A case that an agent passes by saying hello and leaving a tool alone."""
    checks = [{"type": "contains", "value": "hello"}, {"type": "not_tool_called", "name": "delete"}]
    return {"id": name, "input": name, "assert": checks, **more}


def living_in(python: str | None, kind: str = "custom", **config: str) -> dict[str, Any]:
    """An agent in a Python of its own, or in ours."""
    own = {"python": python} if python else {}
    return {"name": "agent", "type": kind, "config": {**(config or {"entry": "agent.py:run"}), **own}}


ENDS = """
    import atexit, multiprocessing, os, posix, threading

    def run(prompt):
        match prompt:
            case "_exit":
                os._exit(0)
            case "posix":
                posix._exit(0)
            case "abort":
                os.abort()
            case "exec":
                os.execvp("true", ["true"])
            case "exec with variables":
                os.execle("/bin/true", "true", {"A": "b"})
        return "hello"

    async def run_async(prompt):
        return run(prompt)

    def steps(prompt):
        yield {"type": "progress", "payload": {"current_step": 1}}
        yield run(prompt)

    def behind(prompt):
        ending = threading.Thread(target=run, args=(prompt,))
        ending.start()
        ending.join()
        return "hello"

    def at_the_end(prompt):
        atexit.register(lambda: os._exit(0))
        return "goodbye"

    def copies(prompt):
        copy = os.fork()
        if not copy:
            os._exit(7)
        code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        with multiprocessing.get_context("fork").Pool(1) as pool:
            return "hello" if pool.map(abs, [-code]) == [7] else "no"
"""


@pytest.mark.parametrize("function", ["run", "run_async", "steps", "behind"])
def test_what_would_end_the_process_costs_one_trial(project: Project, function: str) -> None:
    project.write("agent.py", ENDS)
    ends = ["_exit", "posix", "abort", "exec", "exec with variables"]
    ran = project.test(project.cases(*map(checked, ends), checked("well")), "-n", f"agent.py:{function}")
    assert ran.code == 1
    assert ran.statuses == {**dict.fromkeys(ends, "error"), "well": "passed"}
    assert {ran.results[name]["blame"] for name in ends} == {"agent"}
    assert ran.results["_exit"]["error"] == (
        "agent error: EndsProcess: os._exit(0) would have ended the tests themselves"
    )


def test_an_exit_when_the_process_ends_changes_nothing(project: Project) -> None:
    project.write("agent.py", ENDS)
    ran = project.atp("test", project.cases(checked("a")), "-n", "agent.py:at_the_end", "--json")
    assert "os._exit(0) would have ended the tests themselves" in ran.err
    assert ran.statuses == {"a": "failed"}
    assert ran.code == 1


def test_copies_of_the_process_end_as_they_want_to(project: Project) -> None:
    project.write("agent.py", ENDS)
    ran = project.test(project.cases(checked("a")), "-n", "agent.py:copies")
    assert ran.statuses == {"a": "passed"}, ran.out


def test_a_node_that_would_end_the_process(project: Project) -> None:
    project.write("graph.py", GRAPH)
    agent = {"name": "graph", "type": "langgraph", "config": {"graph_path": "graph.py:graph"}}
    well = {"id": "well", "assertions": [{"type": "equals", "value": "hello"}]}
    ran = project.test(project.suite([agent], [{"id": "exit"}, well]))
    assert ran.statuses == {"exit": "error", "well": "passed"}
    assert "os._exit(0) would have ended" in ran.results["exit"]["error"]
    assert ran.code == 1


GRAPH = """
    import os
    from typing import Annotated, TypedDict

    from langgraph.graph import END, START, StateGraph, add_messages

    class State(TypedDict):
        messages: Annotated[list, add_messages]

    def answer(state):
        said = state["messages"][-1].content
        if said == "exit":
            os._exit(0)
        if said == "prints":
            os.write(1, b"from a node\\n")
        return {"messages": [{"role": "assistant", "content": "hello"}]}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    graph = builder.compile()
"""


def test_an_exit_at_import_stops_the_run_before_it_begins(project: Project) -> None:
    project.write("agent.py", "import os\nos._exit(0)\ndef run(prompt): return 'hello'\n")
    file = project.cases(checked("a"))
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 2
    assert "agent.py can't be imported: EndsProcess: os._exit(0) would have ended the tests themselves" in ran.err
    assert f"({project.folder / 'agent.py'}, line 2)" in ran.err
    seen = project.atp("agents", "check", file, "-n", "agent.py:run")
    assert seen.code == 3
    assert "os._exit(0) would have ended" in seen.out


def test_from_python_only_agents_are_kept_from_ending_the_process(project: Project) -> None:
    project.write("agent.py", ENDS)
    agent = {"name": "a", "type": "custom", "config": {"entry": "agent.py:run"}}
    suite = project.suite([agent], [{"id": "_exit"}])
    program = f"""
        import os, atp
        report = atp.run_sync(atp.load({suite!r}))
        print(report.results[0].status, report.exit_code, flush=True)
        os._exit(17)
    """
    path = project.write("program.py", program)
    ran = subprocess.run([sys.executable, str(path)], cwd=project.folder, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (17, "error 1\n"), ran.stderr


YIELDS = """
    def run(prompt):
        hello = {"output": "hello"}
        match prompt:
            case "misspelt":
                yield {"type": "tool_cal", "payload": {"tool": "delete"}}
            case "unheard of":
                yield {"type": "deletion", "payload": {"tool": "delete"}}
            case "without a payload":
                yield {"type": "tool-call", "tool": "delete"}
            case "another word":
                yield {"kind": "tool_call", "payload": {"tool": "delete"}}
            case "two answers":
                yield {"output": "goodbye"}
            case "text after the answer":
                yield hello
                yield "goodbye"
            case "an answer as its return value":
                yield hello
                return "goodbye"
            case "a draft":
                yield "hel"
                yield "lo?"
            case "in parts":
                yield {"output": None, "usage": {"input_tokens": 1}}
                yield "hel"
                yield "lo"
                yield {"tool_calls": [{"name": "look"}]}
                yield hello
        yield hello
"""


@pytest.mark.parametrize("python", [None, sys.executable])
def test_nothing_that_a_generator_yields_is_lost_without_a_word(project: Project, python: str | None) -> None:
    project.write("agent.py", YIELDS)
    why = {
        "misspelt": "event: there is no event_type `tool_cal`, did you mean `tool_call`?",
        "unheard of": "event: there is no event_type `deletion`",
        "without a payload": "event: Object missing required field `payload`",
        "another word": 'a second answer, after {"kind":"tool_call","payload":{"tool":"delete"}}',
        "two answers": "a second answer, after goodbye",
        "text after the answer": "it goes on after its answer, hello",
        "an answer as its return value": "a second answer, after hello",
    }
    checks = [{"type": "contains", "value": "hello"}, {"type": "not_tool_called", "name": "delete"}]
    tests = [{"id": f"t{number}", "input": said, "assertions": checks} for number, said in enumerate(why)]
    well = [{"id": name, "input": said, "assertions": checks} for name, said in (("d", "a draft"), ("p", "in parts"))]
    ran = project.test(project.suite([living_in(python)], [*tests, *well]))
    for number, text in enumerate(why.values()):
        result = ran.results[f"t{number}"]
        assert (result["status"], result["error"]) == ("error", f"agent error: broke the protocol: {text}")
    assert {name: ran.statuses[name] for name in ("d", "p")} == {"d": "passed", "p": "passed"}
    logs = {trial["case"]: trial["transcript"].get("logs", []) for trial in project.trials()}
    assert "in place of its answer, it first said: hello?" in logs["d"]
    assert logs["p"] == []


NUMBERS = """
    def run(prompt):
        number = float(prompt) if prompt in ("nan", "inf") else 10 ** int(prompt.partition(" ")[0] or "0")
        match prompt.partition(" ")[2]:
            case "":
                return number
            case "tokens":
                return {"output": "hello", "usage": {"total_tokens": number}}
            case "cost":
                return {"output": "hello", "usage": {"cost_usd": number}}
            case "arguments":
                return {"output": "hello", "tool_calls": [{"name": "look", "arguments": {"n": number}}]}
            case "artifact":
                return {"output": "hello", "artifacts": [{"type": "structured", "name": "n", "data": [number]}]}
            case "time":
                return {"output": "hello", "tool_calls": [{"name": "look", "duration_ms": number}]}
"""


@pytest.mark.parametrize("python", [None, sys.executable])
def test_numbers_that_nobody_can_read(project: Project, python: str | None) -> None:
    project.write("agent.py", NUMBERS)
    why = {
        "5000": "returned a number that is too large, which is not JSON",
        "309": "returned a number that is too large, which is not JSON",
        "nan": "returned nan, which is not JSON",
        "inf": "returned inf, which is not JSON",
        "5000 tokens": "returned a number that is too large at `usage.total_tokens`, which is not JSON",
        "5000 cost": "returned a number that is too large at `usage.cost_usd`, which is not JSON",
        "5000 arguments": "returned a number that is too large at `tool_calls[0].arguments.n`, which is not JSON",
        "5000 artifact": "returned a number that is too large at `artifacts[0].data[0]`, which is not JSON",
        "5000 time": "returned a number that is too large at `tool_calls[0].duration_ms`, which is not JSON",
    }
    well = ("300", "300 tokens", "300 cost", "300 arguments", "300 artifact", "300 time")
    tests = [{"id": f"t{number}", "input": said} for number, said in enumerate([*why, *well])]
    suite = project.suite([living_in(python)], tests)
    ran = project.test(suite, "-o", "run.json", "-o", "run.html", "-o", "run.xml")
    for number, text in enumerate(why.values()):
        assert ran.results[f"t{number}"]["error"] == f"agent error: {text}"
    assert set(list(ran.statuses.values())[len(why) :]) == {"passed"}
    assert ran.code == 1


def test_a_result_that_cannot_be_written_is_an_error_and_the_run_goes_on(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    results = [TrialResult(key=str(number), agent="a", case="c") for number in range(2)]
    results[0].transcript.turns.append(Turn(turn=1, input="x", output=10**5000))
    for result in results:
        journal.write(Trial(result=result))
    with pytest.raises(JournalError, match="a line can't be written: TypeError"):
        journal.write(RunInfo(id="r", at=0.0, version="1", identity=[], options={"a": object()}))
    journal.close()
    lines = [line for _, line in read_lines(journal.path)]
    assert [line.result.status for line in lines if isinstance(line, Trial)] == ["error", "passed"]
    assert len(lines) == 2
    assert (results[0].status, results[0].blame) == ("error", "internal")
    assert str(results[0].error).startswith("the result can't be written: ValueError: ")


WRITES = """
    import os

    def run(prompt):
        os.write(1, b"by number\\n")
        os.system("echo from a child")
        return "hello"
"""


@pytest.mark.parametrize("redirected", ["2>err", "2>&-", "<&- 2>&-"])
def test_what_is_written_by_number_is_not_in_our_stream(project: Project, redirected: str) -> None:
    project.write("agent.py", WRITES)
    project.cases(checked("a"))
    command = f"{sys.executable} -m atp test cases.jsonl -n agent.py:run --json {redirected}"
    ran = subprocess.run(["/bin/sh", "-c", command], cwd=project.folder, stdout=subprocess.PIPE, text=True, check=False)
    assert Ran(ran.returncode, ran.stdout, "").statuses == {"a": "passed"}
    if redirected == "2>err":
        assert (project.folder / "err").read_text() == "by number\nfrom a child\n"


FORKS = """
    import asyncio, os, time

    def tell():
        with open("pids", "a") as file:
            file.write(f"{os.getpid()}\\n")

    def returns(prompt):
        os.fork()
        tell()
        return "hello"

    def raises(prompt):
        if not os.fork():
            tell()
            raise ValueError("in the copy")
        while not os.path.exists("pids"):  # the copy may be ended before it has begun
            time.sleep(0.01)
        return "hello"

    async def awaits(prompt):
        os.fork()
        tell()
        await asyncio.sleep(0)
        return "hello"

    def stays(prompt):
        if not os.fork():
            if not os.fork():
                os.setsid()
                tell()
            time.sleep(600)
        while not os.path.exists("pids"):
            time.sleep(0.01)
        return "hello"
"""


@pytest.mark.parametrize("function", ["returns", "raises", "awaits", "stays"])
def test_copies_of_the_process_end_with_the_run(project: Project, function: str) -> None:
    project.write("agent.py", FORKS)
    ran = project.test(project.cases(checked("a")), "-n", f"agent.py:{function}", "-o", "run.json")
    assert ran.statuses == {"a": "passed"}
    assert [event["type"] for event in ran.events] == ["start", "result", "summary"]
    assert len(project.trials()) == 1
    assert project.lines("pids")
    assert [pid for pid in project.lines("pids") if alive(int(pid))] == []


MISTAKES = {
    "missing": "def rnu(prompt): ...",
    "parameter": "def run(promt, more): ...",
    "value": "run = 17",
    "syntax": "def run(:",
    "raises": "1 / 0",
    "exits": "import sys; sys.exit(0)",
    "ends": "import os; os._exit(0)",
    "module": "import not_installed_there",
}


def test_mistakes_that_are_found_when_it_is_loaded_are_all_alike(project: Project) -> None:
    """In our own process nothing runs at all; in a worker, no trial is held against the agent."""
    agents = []
    for name, text in MISTAKES.items():
        project.write(f"{name}.py", f"{text}\n")
        agents.append({"name": name, "type": "custom", "config": {"entry": f"{name}.py:run"}})
    own = project.test(project.suite(agents, [{"id": "a"}]))
    assert own.code == 2
    assert own.err.count("error[agent-configuration]") == len(MISTAKES)
    for agent in agents:
        config = agent["config"]
        assert isinstance(config, dict)
        config["python"] = sys.executable
    tests = [{"id": name, "agents": [name]} for name in MISTAKES]
    ran = project.test(project.suite(agents, tests))
    assert {one["blame"] for one in ran.results.values()} == {"environment"}
    assert set(ran.statuses.values()) == {"error"}
    assert ran.code == 3
    assert ran.results["ends"]["error"] == (
        f"`ends.py:run` in {sys.executable}: its import ended the process: exit code 0"
    )


def test_a_module_that_does_not_come_to_its_end(project: Project) -> None:
    """It takes no notice of an `Exception` either."""
    text = """
        import time
        while True:
            try:
                time.sleep(600)
            except Exception:
                pass
    """
    path = project.write("agent.py", text)
    project.write("well.py", "def run(prompt): return 'hello'")
    agents = [{"name": name, "type": "custom", "config": {"entry": f"{name}.py:run"}} for name in ("agent", "well")]
    seen = project.atp("agents", "check", project.suite(agents, [{"id": "a"}]), "--timeout", "1")
    assert seen.code == 3
    assert f"agent.py can't be imported: TakesTooLong: it took longer than 1s ({path}, line 5)" in seen.out
    assert "✓ well" in seen.out


@pytest.mark.parametrize("python", [None, sys.executable])
def test_a_function_that_never_makes_its_graph_is_timed(project: Project, python: str | None) -> None:
    project.write("graph.py", "import time\ndef app():\n    time.sleep(600)\n")
    agent = living_in(python, "langgraph", graph_path="graph.py:app")
    tests = [{"id": name, "constraints": {"timeout_seconds": 10 if python else 2}} for name in ("one", "two")]
    ran = project.test(project.suite([agent], tests), "--parallel", "2")
    assert ran.statuses == {"one": "timeout", "two": "timeout"}


def test_a_graph_that_is_made_within_the_loop(project: Project) -> None:
    project.write("graph.py", GRAPH.replace("graph = builder.compile()", MADE_IN_LOOP))
    agent = {"name": "graph", "type": "langgraph", "config": {"graph_path": "graph.py:app"}}
    ran = project.test(project.suite([agent], [{"id": "a", "assertions": [{"type": "equals", "value": "hello"}]}]))
    assert ran.statuses == {"a": "passed"}, ran.out


MADE_IN_LOOP = """
    import asyncio

    def app():
        asyncio.get_running_loop()
        return builder.compile()
"""


def test_a_graph_in_an_environment_without_langgraph(project: Project) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(project.folder / "env")], check=True)
    project.write("graph.py", GRAPH)
    agent = {"name": "graph", "type": "langgraph", "config": {"graph_path": "graph.py:graph", "python": "env"}}
    ran = project.test(project.suite([agent], [{"id": "a"}]))
    assert ran.code == 3
    said = ran.results["a"]["error"]
    assert "LangGraph is not installed in this environment (install `langgraph`, or name the interpreter" in said
