"""Talking to agents through the public interface, and writing down what they tell."""

import asyncio
import os
import secrets
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter
from tests.waiting import WAIT_LIMIT

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Reply, TurnRequest
from atp.agents.leftovers import marked
from atp.agents.registry import make_adapter
from atp.agents.running import RunningAgent
from atp.suite.agent import Agent, AnyAgent
from atp.suite.result import Event

HERE = Path(__file__).parent
FUNCTIONS = HERE / "functions.py"
COMMAND = HERE / "command.py"
Result = TypeVar("Result")


class LimitPassed(BaseException):
    """What the engine raises; not an `Exception`."""


class Talk:
    """A trial's side of the conversation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.events: list[Event] = []
        self.logs: list[str] = []
        self.most_events: int | None = None
        self.beside: list[RunningAgent] = []
        """Agents that the agent uses as tools; closed after it, as a run does."""
        self.marker = f"test-{secrets.token_hex(6)}"
        self.around = AdapterContext(base=folder, environment=dict(os.environ), marker=self.marker)

    def request(self, prompt: str = "Hello", **more: Any) -> TurnRequest:
        given: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            "prompt": prompt,
            "task": {"description": prompt},
            "task_id": "trial-1",
            "context": {"session_id": "s-1", "case_id": "case-1", "run": 1, "iteration": 0},
            "workspace": self._workspace,
            "emit": self._emit,
            "log": self.logs.append,
        }
        return TurnRequest(**(given | more))

    def _workspace(self) -> Path:
        self.workspace.mkdir(exist_ok=True)
        return self.workspace

    def _emit(self, event: Event) -> None:
        self.events.append(event)
        if self.most_events is not None and len(self.events) > self.most_events:
            raise LimitPassed(f"{len(self.events)} of {self.most_events}")

    def adapter(self, agent: Agent) -> Adapter:
        return make_adapter(agent, self.around)

    async def ask(self, agent: Agent, prompt: str = "Hello", **more: Any) -> Reply:
        """One turn with an agent, from start to close."""
        adapter = self.adapter(agent)
        try:
            await adapter.start()
            return await adapter.turn(self.request(prompt, **more))
        finally:
            await adapter.close()
            for other in self.beside:
                await other.close()

    async def fail(self, agent: Agent, prompt: str = "Hello", **more: Any) -> AgentError:
        """The same, with an agent that fails."""
        try:
            reply = await self.ask(agent, prompt, **more)
        except AgentError as error:
            return error
        raise AssertionError(f"it answered {reply}")

    def alive(self) -> list[int]:
        """The processes that bear this trial's marker."""
        return list(marked(self.marker))


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine; a task or a file that it leaves open is an error."""
    files = set(os.listdir("/proc/self/fd"))

    async def watched() -> Result:
        try:
            return await asyncio.wait_for(coroutine, WAIT_LIMIT)
        finally:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if left:  # the test server's own handlers end with their connections
                await asyncio.wait(left, timeout=WAIT_LIMIT)
            assert all(task.done() for task in left), left

    result = asyncio.run(watched())
    assert len(os.listdir("/proc/self/fd")) <= len(files) + 1  # the listing itself
    return result


_AGENT: TypeAdapter[Agent] = TypeAdapter(AnyAgent)


def make_agent(raw: dict[str, Any]) -> Agent:
    """An agent as a suite describes it."""
    return _AGENT.validate_python(raw)


def custom(function: str, **config: Any) -> Agent:
    """A function of `functions.py`, or any other entry."""
    entry = function if ":" in function else f"{FUNCTIONS}:{function}"
    return make_agent({"name": "a", "type": "custom", "config": {"entry": entry, **config}})


def http(endpoint: str, **config: Any) -> Agent:
    return make_agent({"name": "a", "type": "http", "config": {"endpoint": endpoint, **config}})


def cli(*command: str, **config: Any) -> Agent:
    """A mode of `command.py`, or any other command."""
    if not config.pop("own", False):
        command = (sys.executable, "-S", str(COMMAND), *command)
    return make_agent({"name": "a", "type": "cli", "config": {"command": list(command), **config}})
