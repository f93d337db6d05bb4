"""What an agent in an environment of its own costs: CPU a trial, ours and the worker's, beyond the graph itself.

A LangGraph agent with a tool runs in a worker; the same graph in nothing but a loop is taken off. Each process measures
itself from when it is ready, so that a start-up, which is a hundred times a trial, is no part of any figure.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MOST_MS = 3.0
TRIALS = 200
ROUNDS = 8

GRAPH = """
import atexit, os, time

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class Model(BaseChatModel):
    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **more):
        last = messages[-1]
        call = {"name": "weather", "args": {"city": "Paris"}, "id": "1"}
        said = AIMessage(last.content) if isinstance(last, ToolMessage) else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def weather(city: str) -> str:
    "The weather of a city."
    return f"clear in {city}"


async def chat(state):
    return {"messages": [await Model().ainvoke(state["messages"])]}


draft = StateGraph(MessagesState)
draft.add_node("chat", chat)
draft.add_node("tools", ToolNode([weather]))
draft.add_edge(START, "chat")
draft.add_conditional_edges("chat", tools_condition)
draft.add_edge("tools", "chat")
graph = draft.compile()

_ready = time.process_time()


@atexit.register
def tell():
    with open(os.environ["BENCH_CPU"], "w") as file:
        file.write(str(time.process_time() - _ready))
"""

BARE = """
import asyncio, sys
from agent import graph

async def main():
    for number in range(int(sys.argv[1])):
        await graph.ainvoke({"messages": [{"role": "user", "content": "weather"}]})

asyncio.run(main())
"""

OURS = """
import sys, time
import atp

def run(count):
    before = time.process_time()
    report = atp.run_sync(atp.load("suite.yaml"), atp.Options(runs=count, parallel=1))
    assert report.exit_code == 0
    return time.process_time() - before

run(1)
print(run(int(sys.argv[1])))
"""


def write_suite(path: Path) -> None:
    config = {"graph_path": "agent.py", "python": sys.executable}
    test = {
        "id": "T",
        "name": "weather",
        "input": "weather",
        "assertions": [{"type": "tool_called", "name": "weather"}],
    }
    agent = {"name": "graph", "type": "langgraph", "config": config}
    path.write_text(json.dumps({"test_suite": "bench", "agents": [agent], "tests": [test]}))


def measure(folder: Path, script: str) -> tuple[float, float]:
    """Milliseconds of CPU a trial: what a script says that it used, and what the process with the graph used."""
    told = folder / "cpu.txt"
    done = subprocess.run(
        [sys.executable, script, str(TRIALS)],
        cwd=folder,
        env={**os.environ, "BENCH_CPU": str(told)},
        capture_output=True,
        check=True,
    )
    return float(done.stdout or 0) / TRIALS * 1000, float(told.read_text()) / TRIALS * 1000


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(GRAPH)
        (folder / "bare.py").write_text(BARE)
        (folder / "ours.py").write_text(OURS)
        write_suite(folder / "suite.yaml")
        # A busy machine only ever adds to a figure, so each is the least of several, taken in turn.
        rounds = [(*measure(folder, "ours.py"), measure(folder, "bare.py")[1]) for _ in range(ROUNDS)]
    ours, worker, graph = (min(one) for one in zip(*rounds, strict=True))
    beyond = ours + worker - graph
    print(f"a trial           {ours:6.2f} ms of CPU in ATP, {worker:.2f} in the worker; the graph itself {graph:.2f}")
    print(f"beyond the graph  {beyond:6.2f} ms of CPU  (limit {MOST_MS})")
    return int(beyond > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
