"""Prompt agents with the tests' own MCP server, and what came of talking to them."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.agents.support.prompts import Scripted, Stage
from tests.agents.support.talk import Talk

from atp.agents.adapter import AgentError, Reply
from atp.agents.leftovers import marked
from atp.agents.prompt.adapter import PromptAdapter
from atp.agents.running import RunningAgent

SERVER = Path(__file__).parent / "mcp_server.py"


class McpStage(Stage):
    """A project with an agent that has MCP servers."""

    def __init__(self, talk: Talk, *script: Any) -> None:
        self.scripted = Scripted(*script)
        super().__init__(talk, self.scripted)
        self.talk = talk
        self.starts = talk.folder / "starts.txt"

    def stdio(self, *mode: str, **more: Any) -> dict[str, Any]:
        """A server of the tests, as a command."""
        env = {"MCP_STARTS": str(self.starts), **more.pop("env", {})}
        return {"command": sys.executable, "args": [str(SERVER), *mode], "env": env, **more}

    def agent_with(self, more: str = "", /, **servers: dict[str, Any]) -> PromptAdapter:
        """An agent with these servers."""
        return self.make(f"---\nmcp: {json.dumps(servers)}\n{more}\n---\nHi")

    @property
    def count(self) -> int:
        """How often a server was started."""
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0

    @property
    def results(self) -> list[Any]:
        """What the tools answered, as it is told of."""
        return [one.payload["output"] for one in self.calls]

    @property
    def calls(self) -> list[Any]:
        return [one for one in self.talk.events if one.type == "tool_call"]

    @property
    def alive(self) -> list[int]:
        """Processes of the run that live."""
        return list(marked(self.talk.marker))


@asynccontextmanager
async def started(adapter: PromptAdapter, *beside: RunningAgent) -> AsyncIterator[PromptAdapter]:
    """An adapter from start to close."""
    try:
        await adapter.start()
        yield adapter
    finally:
        await adapter.close()
        for other in beside:
            await other.close()


async def ask(stage: McpStage, adapter: PromptAdapter, **more: Any) -> Reply:
    """One turn, from start to close."""
    async with started(adapter):
        return await adapter.turn(stage.talk.request(**more))


async def fail(stage: McpStage, adapter: PromptAdapter, **more: Any) -> AgentError:
    """The same, with an agent that fails."""
    try:
        reply = await ask(stage, adapter, **more)
    except AgentError as error:
        return error
    raise AssertionError(f"it answered {reply}")
