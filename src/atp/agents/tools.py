"""The interface of the tools that ATP calls for prompt agents: functions, other agents, MCP servers."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from atp.agents.adapter import AdapterContext, Finding, TurnRequest
from atp.agents.agent_files import AgentFiles
from atp.agents.wire import json_text
from atp.loader.validate import Locator
from atp.models.model import Tool
from atp.suite.result import Event, Usage
from atp.usercode.printed import Printed


class ToolError(Exception):
    """A tool call that failed. The model gets the message."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage
        """What the call used before it failed."""


@dataclass(slots=True, kw_only=True)
class ToolOutcome:
    """What a tool call returned."""

    result: Any = None
    """The value that the model gets."""
    usage: Usage | None = None
    """What the call used, for a tool that runs on models."""


@dataclass(slots=True, kw_only=True)
class ToolRun:
    """The turn that a tool call belongs to."""

    request: TurnRequest
    printed: Printed
    """Captures what tools print in this turn."""
    counts: dict[str, int] = field(default_factory=dict)
    """How often prepared answers were used since the conversation began."""
    emit: Callable[[Event], None]
    """Passes on the events of an agent that is a tool."""


class CallableTool(ABC):
    """A tool that ATP can call."""

    tool: Tool
    """The description that a model gets."""
    recorded = False
    """True if calls are recorded in a cassette, and replayed from there."""
    files: tuple[Path, ...] = ()
    """The files that decide what the tool does."""
    variables: Mapping[str, str] = MappingProxyType({})
    """The environment variables that the tool uses."""
    secrets: frozenset[str] = frozenset()
    """Values that no output may show."""

    @abstractmethod
    async def call(self, arguments: dict[str, Any], run: ToolRun) -> ToolOutcome:
        """Call the tool. Raises `ToolError`, or `AgentError` if the environment is to blame."""

    def standing_in_for(self, tool: "CallableTool") -> "CallableTool | None":
        """Return the tool that answers in place of `tool`, which has the same name; None if the names clash."""
        return None


class ToolServers(Protocol):
    """Servers that provide tools, and the agent's own tools with them."""

    files: tuple[Path, ...]
    """The files that decide what the servers do."""

    async def start(self) -> None:
        """Start the servers that serve the whole run. Raises `AgentError`."""

    async def tools(self, request: TurnRequest) -> dict[str, CallableTool]:
        """Return all tools of the agent in a turn, by name. Raises `AgentError`."""

    def end_trial(self, task_id: str) -> None:
        """Begin to stop the servers of a trial."""

    async def close(self) -> None:
        """Stop all servers."""

    async def check(self) -> list[Finding]:
        """Start each server, list its tools, and stop it."""


def mcp_servers(
    declared: Any,
    path: Path,
    locate: Locator | None,
    files: AgentFiles,
    own: Mapping[str, CallableTool],
    context: AdapterContext,
) -> ToolServers:
    """Prepare the MCP servers that an agent declares, beside its `own` tools. Mistakes are added to `files`.

    `path` is the file with the declaration, `locate` finds places in it.
    """
    from atp.agents.mcp.servers import McpServers

    return McpServers(declared, path, locate, files, own, context)


def tool_name(name: str) -> str:
    """Return the name of a function, an agent or a server's tool in the form that models take."""
    bare = name.removesuffix(".md").removesuffix("/package.yao").strip("/").removeprefix("agents/")
    return re.sub(r"[^A-Za-z0-9_-]+", "_", bare)[:64]


def result_text(value: Any) -> str:
    """Return a result as the model reads it."""
    return value if isinstance(value, str) else json_text(value)
