"""All MCP servers of an agent: one each for the run, or one each for a trial, and the tools that they have.

In a replay none is started: what tools there are and what they answer comes from the cassette.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import AdapterContext, AgentError, Finding, Services, TurnRequest
from atp.agents.command.adapter import HANDED_ON
from atp.agents.mcp.connection import LONGEST_NAME, Connection, Place, ServerDown
from atp.agents.mcp.settings import ServerSettings
from atp.agents.mcp.stdio import ServerLog
from atp.agents.mcp.tools import MOST_TOOLS, McpTool, choose
from atp.agents.prompt.canned import Canned
from atp.agents.prompt.tools import UsableTool
from atp.base.errors import ConfigurationError
from atp.base.text import cut
from atp.models.model import CassetteError, CassetteMiss

if TYPE_CHECKING:
    from mcp_types import CallToolResult

SHOWN = 20
"""Names of a server's tools that a check shows."""


class Server:
    """A server, over all its lives."""

    def __init__(self, settings: ServerSettings, place: Callable[[], Place]) -> None:
        """`place` says where it is started, and is asked when that happens."""
        self.settings = settings
        self._place = place
        self._log = ServerLog(settings.name)
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def tools(self) -> list[dict[str, Any]]:
        """Its tools, as JSON: `name`, `description` and `parameters`. Raises `AgentError`."""
        connection = await self._connected()
        try:
            listed = await connection.list_tools()
        except ServerDown as down:
            raise self._error("can't be used", down) from down
        return [
            {"name": one.name, "description": one.description or one.title or "", "parameters": one.input_schema}
            for one in listed
        ]

    async def call(self, tool: str, arguments: dict[str, Any], log: Callable[[str], None]) -> "CallToolResult":
        """What a tool answers. Raises `AgentError`, `TimeoutError` and `CallRefused`."""
        with self._log.to(log):
            try:
                return await (await self._connected()).call(tool, arguments)
            except ServerDown as down:
                log(f"the MCP server `{self.settings.name}` is gone ({down}); it is started again, and called again")
            try:
                return await (await self._connected()).call(tool, arguments)
            except ServerDown as down:
                raise self._error("is gone, and was started again once", down) from down

    async def close(self) -> None:
        """Stop it."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> Connection:
        """The server, started if it isn't there. Raises `AgentError`."""
        async with self._connecting:
            if self._closed:
                raise AgentError(f"the MCP server `{self.settings.name}` was stopped", "environment")
            if self._connection is None or self._connection.over:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Connection:
        connection = self._connection = Connection(self.settings, self._place(), self._log)
        try:
            await connection.ready()
        except ServerDown as down:
            raise self._error("can't be started" if self.settings.argv else "can't be reached", down) from down
        except BaseException:  # cancelled
            await asyncio.shield(connection.close())
            raise
        return connection

    def _error(self, what: str, down: ServerDown) -> AgentError:
        message = f"the MCP server `{self.settings.name}` {what}: {down}"
        return AgentError(message, "environment", retryable=down.may_pass)


class McpServers:
    """The servers of one agent."""

    def __init__(
        self,
        servers: Iterable[ServerSettings],
        own: Mapping[str, UsableTool],
        agent: str,
        context: AdapterContext,
        services: Services,
    ) -> None:
        """`own` are the agent's other tools; `agent` is what a cassette knows it by. Raises `ConfigurationError`."""
        self._servers = list(servers)
        self._own = own
        self._agent = agent
        self._context = context
        self._services = services
        self._of_run: list[Server] = []
        self._of_trials: dict[str, list[Server]] = {}
        self._endings: set[asyncio.Future[None]] = set()
        self._shared: dict[str, McpTool] | None = None
        self._starting = asyncio.Lock()
        if self._servers and not self._is_replay:
            _check_installed()

    @property
    def _is_replay(self) -> bool:
        cassette = self._services.cassette
        return cassette is not None and cassette.mode == "replay"

    async def start(self) -> None:
        """Start those that serve the whole run, and see which tools they have. Raises `AgentError`."""
        async with self._starting:
            if self._shared is None:
                if not self._of_run:
                    self._of_run = [self._server(one, None) for one in self._servers if not one.per_trial]
                self._shared = await self._list(self._of_run)

    async def tools(self, request: TurnRequest) -> dict[str, UsableTool]:
        """All tools of the agent in this turn. Raises `AgentError`."""
        if not self._servers:
            return dict(self._own)
        await self.start()
        assert self._shared is not None
        found = dict(self._shared)
        if any(one.per_trial for one in self._servers):
            servers = self._of_trials.get(request.task_id)
            if servers is None:
                servers = [self._server(one, request) for one in self._servers if one.per_trial]
                self._of_trials[request.task_id] = servers
            found |= await self._list(servers)
        return self._together(found)

    def end_trial(self, task_id: str) -> None:
        """Stop the servers of a trial, without waiting for it."""
        if servers := self._of_trials.pop(task_id, None):
            ending = asyncio.ensure_future(_close(servers))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """Stop all of them."""
        servers = [*self._of_run, *(one for servers in self._of_trials.values() for one in servers)]
        self._of_trials.clear()
        await _close(servers)
        if self._endings:
            await asyncio.wait(self._endings)

    async def check(self) -> list[Finding]:
        """Start each server, count its tools, and stop it; and see whether a model takes all of them together."""
        findings: list[Finding] = []
        tools: list[McpTool] = []
        for one in self._servers:
            finding, found = await self._check(self._server(one, None))
            findings.append(finding)
            tools += found
        try:
            self._together(_by_name(tools))
        except AgentError as error:
            findings.append(Finding(what="tools", ok=False, detail=str(error)))
        return findings

    async def _check(self, server: Server) -> tuple[Finding, list[McpTool]]:
        what = f"mcp server {server.settings.name}"
        try:
            chosen = choose(await server.tools(), server.settings)
            tools = [McpTool(server, one) for one in chosen]
        except AgentError as error:
            return Finding(what=what, ok=False, detail=str(error)), []
        finally:
            await server.close()
        names = [cut(one["name"], LONGEST_NAME) for one in chosen]
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        return Finding(what=what, ok=True, detail=f"{len(chosen)} tool{'s' * (len(chosen) != 1)}: {shown}"), tools

    def _server(self, settings: ServerSettings, request: TurnRequest | None) -> Server:
        around = self._context.environment
        environment = {name: around[name] for name in HANDED_ON if name in around}

        def place() -> Place:
            in_workspace = settings.in_workspace and request is not None
            folder = request.workspace() if in_workspace and request is not None else settings.folder
            return Place(folder=folder, environment=environment, marker=self._context.marker)

        return Server(settings, place)

    async def _list(self, servers: list[Server]) -> dict[str, McpTool]:
        """The tools of these servers by name."""
        listing = [asyncio.ensure_future(self._tools_of(server)) for server in servers]
        try:
            tools = [tool for found in await asyncio.gather(*listing) for tool in found]
        finally:
            for one in listing:
                one.cancel()
            await asyncio.gather(*listing, return_exceptions=True)
        return _by_name(tools)

    async def _tools_of(self, server: Server) -> list[McpTool]:
        cassette = self._services.cassette
        if cassette is None:
            listed = await server.tools()
        else:
            parts = {"mcp": server.settings.name, "agent": self._agent}
            try:
                listed = await cassette.through("tool", parts, server.tools)
            except (CassetteMiss, CassetteError) as error:
                raise AgentError(str(error), "environment") from error
        return [McpTool(server, one) for one in choose(listed, server.settings)]

    def _together(self, found: Mapping[str, McpTool]) -> dict[str, UsableTool]:
        tools = dict(self._own)
        for name, tool in found.items():
            own = tools.get(name)
            if isinstance(own, Canned):
                tools[name] = own.standing_for(tool)
            elif own is not None:
                raise AgentError(f"two tools of the agent are called `{name}`", "environment")
            else:
                tools[name] = tool
        if len(tools) > MOST_TOOLS:
            raise AgentError(
                f"the agent has {len(tools)} tools, and models take at most {MOST_TOOLS}: "
                "choose with `tools` or `exclude` of its MCP servers",
                "environment",
            )
        return tools


def _by_name(tools: Iterable[McpTool]) -> dict[str, McpTool]:
    found: dict[str, McpTool] = {}
    for tool in tools:
        if tool.tool.name in found:
            raise AgentError(f"two tools of MCP servers are called `{tool.tool.name}`", "environment")
        found[tool.tool.name] = tool
    return found


async def _close(servers: list[Server]) -> None:
    """Stop servers side by side, all of them whatever happens."""
    await asyncio.gather(*(one.close() for one in servers), return_exceptions=True)


def _check_installed() -> None:
    how = "pip install 'agent-test-platform[mcp]'"
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError as error:
        raise ConfigurationError("MCP servers as tools need the package `mcp`", how) from error
    if int(version.partition(".")[0]) < 2:
        raise ConfigurationError(f"MCP servers as tools need `mcp` 2 or newer, and {version} is installed", how)
