"""What somebody who tried to break it found: clocks, blame, agents' own cases, filters on resume."""

import json

from tests.engine.support.project import Project

HELLO = {"type": "contains", "value": "hello"}


def test_an_agent_that_blocks_the_loop_is_still_timed(project: Project) -> None:
    project.write("agent.py", "import time\nasync def run(prompt):\n    time.sleep(2)\n    return 'hello'\n")
    ran = project.test(
        project.cases({"id": "slow", "input": "x", "timeout": "500ms", "assert": HELLO}), "-n", "agent.py:run"
    )
    assert ran.statuses == {"slow": "timeout"}
    assert ran.code == 1


def test_time_spent_waiting_is_not_the_agents(project: Project) -> None:
    project.write(
        "server.py",
        """
        from aiohttp import web

        async def busy(request):
            return web.Response(status=429, headers={"Retry-After": "3600"})

        def before(context):
            import threading, asyncio
            app = web.Application(); app.router.add_post("/", busy)
            async def main():
                runner = web.AppRunner(app); await runner.setup()
                await web.TCPSite(runner, "127.0.0.1", 18765).start()
                await asyncio.sleep(30)
            threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
            import time; time.sleep(1)
        """,
    )
    file = project.cases({"id": "busy", "input": "x", "timeout": "1s", "assert": HELLO})
    ran = project.test(file, "-n", "http://127.0.0.1:18765/", "--before-all", "server.py:before")
    (result,) = ran.results.values()
    assert (result["status"], result["blame"]) == ("error", "environment")
    assert ran.code == 3


def test_a_check_counts_only_for_the_agents_a_test_names(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    agents = [
        {"name": "seen", "type": "custom", "config": {"entry": "agent.py:run"}},
        {"name": "text", "type": "cli", "config": {"command": "cat", "protocol": "text"}},
    ]
    tools = {"id": "tools", "agents": ["seen"], "assertions": [{"type": "not_tool_called", "name": "x"}]}
    ran = project.test(project.suite(agents, [tools]))
    assert ran.code == 0, ran.err
    refused = project.test(project.suite(agents, [{**tools, "agents": ["text"]}]))
    assert refused.code == 2
    assert "unobservable" in refused.err


def test_the_runs_time_covers_its_hooks(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'\ndef wait(context):\n    import time; time.sleep(30)\n")
    file = project.cases({"id": "a", "input": "x", "assert": HELLO})
    ran = project.test(file, "-n", "agent.py:run", "--before-all", "agent.py:wait", "--max-time", "1s")
    assert ran.code == 3


def test_going_on_with_a_part_of_a_run_is_refused(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello' if prompt == 'a' else 1/0")
    file = project.cases("a", "b")
    project.test(file, "-n", "agent.py:run", "--fail-fast")
    run = json.loads(project.atp("runs", "--json").out)[0]["run"]
    ran = project.test(file, "-n", "agent.py:run", "--resume-from", run, "--run", "^b$")
    assert ran.code == 2
    assert "other-filter" in ran.err


def test_a_section_that_expects_nothing_is_no_test_of_its_own(project: Project) -> None:
    project.write("agent.py", "def run(prompt): return 'hello'")
    project.write(
        "x.test.md",
        """\
        ---
        target: agents/x.md
        ---

        ## set up

        **Prompts:** begin

        ## test

        **Before:** set up

        **Prompts:** go on

        **Expectations:** no errors
        """,
    )
    ran = project.test("x.test.md", "-n", "agent.py:run")
    assert ran.statuses == {"test": "passed"}


def test_a_graph_whose_state_is_a_plain_typed_dict(project: Project) -> None:
    project.write(
        "graph.py",
        """
        from typing import Annotated, TypedDict

        from langgraph.graph import END, START, StateGraph, add_messages

        class State(TypedDict):
            messages: Annotated[list, add_messages]

        def answer(state):
            return {"messages": [{"role": "assistant", "content": "hello " + state["messages"][-1].content}]}

        builder = StateGraph(State)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile()
        """,
    )
    agent = {"name": "graph", "type": "langgraph", "config": {"graph_path": "graph.py:graph"}}
    ran = project.test(project.suite([agent], [{"id": "a", "assertions": [{"type": "equals", "value": "hello a"}]}]))
    assert ran.statuses == {"a": "passed"}
