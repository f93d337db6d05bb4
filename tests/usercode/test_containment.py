"""Code of agents that reaches for what isn't theirs: the loop, the process's output, our own tasks."""

import json

import pytest
from tests.engine.support.project import Project

AGENT = """
    import asyncio
    import sys

    async def run(prompt):
        match prompt:
            case "exits behind our back":
                async def leave():
                    sys.exit(0)
                asyncio.get_running_loop().create_task(leave())
                await asyncio.sleep(0.05)
            case "exits in a callback":
                asyncio.get_running_loop().call_soon(sys.exit, 0)
                await asyncio.sleep(0.05)
            case "stops the loop":
                asyncio.get_running_loop().stop()
                await asyncio.sleep(0.05)
            case "cancels everybody":
                for task in asyncio.all_tasks():
                    task.cancel()
                await asyncio.sleep(0.05)
        return prompt

    def blocking(prompt):
        match prompt:
            case "closes stdout":
                sys.stdout.close()
                sys.stderr.close()
            case "takes stdout away":
                sys.stdout = None
        return prompt

    class Hostile(dict):
        def items(self):
            raise KeyboardInterrupt

    def hostile(prompt):
        return Hostile(output=prompt)

    async def yields(prompt):
        yield {"type": ["not", "a", "name"]}
"""


@pytest.fixture(autouse=True)
def agent(project: Project) -> None:
    project.write("agent.py", AGENT)


@pytest.mark.parametrize(
    ("function", "prompt"),
    [
        ("run", "exits behind our back"),
        ("run", "exits in a callback"),
        ("run", "stops the loop"),
        ("blocking", "closes stdout"),
        ("blocking", "takes stdout away"),
    ],
)
def test_the_run_goes_on(project: Project, function: str, prompt: str) -> None:
    file = project.cases("before", prompt, {"id": "after", "input": "after", "expected": "something else"})
    ran = project.test(file, "-n", f"agent.py:{function}")
    assert ran.code == 1
    assert ran.statuses == {"before": "passed", prompt: "passed", "after": "failed"}


def test_tasks_that_are_not_the_agents(project: Project) -> None:
    file = project.cases("before", "cancels everybody", "after")
    ran = project.test(file, "-n", "agent.py:run")
    assert ran.code == 3
    assert "an agent's code cancelled tasks that aren't its own" in ran.err
    assert f"atp test {file} -n agent.py:run --json --resume" in ran.err
    assert project.trials()[0]["case"] == "before"
    (run,) = json.loads(project.atp("runs", "--json").out)
    assert run["state"] == "unfinished"


def test_a_value_that_raises_is_the_agents_fault(project: Project) -> None:
    ran = project.test(project.cases("a", "b"), "-n", "agent.py:hostile")
    assert ran.code == 1
    assert {one["blame"] for one in ran.results.values()} == {"agent"}
    assert ran.results["a"]["error"] == "agent error: returned a value that raises KeyboardInterrupt"


def test_a_type_that_is_no_name_is_an_answer(project: Project) -> None:
    ran = project.test(project.cases("a"), "-n", "agent.py:yields")
    assert ran.results["a"]["output"] == {"type": ["not", "a", "name"]}


def test_a_case_that_exits_costs_one_case(project: Project) -> None:
    project.write(
        "agent.py",
        """
        import sys
        def run(prompt):
            match prompt:
                case "exit": sys.exit(0)
                case "raise": raise SystemExit
                case "interrupt": raise KeyboardInterrupt
            return prompt
        async def later(prompt):
            return run(prompt)
        """,
    )
    file = project.cases("before", "exit", "raise", "interrupt", "after")
    for ran in project.tests([file, "-n", "agent.py:run"], [file, "-n", "agent.py:later"]):
        bad = dict.fromkeys(["exit", "raise", "interrupt"], "error")
        assert ran.statuses == {"before": "passed", **bad, "after": "passed"}
        assert {ran.results[name]["blame"] for name in bad} == {"agent"}
        assert ran.code == 1
