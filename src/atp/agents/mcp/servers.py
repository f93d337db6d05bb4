"""The MCP servers of an agent: started for the run or for each trial, restarted once if they die, and their tools.

In a replay no server is started: the lists of tools and their answers come from the cassette.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import AdapterContext, AgentError, Finding, TurnRequest
from atp.agents.agent_files import AgentFiles
from atp.agents.child import Command, child_environment
from atp.agents.mcp.connection import LONGEST_NAME, Connection, ServerDown
from atp.agents.mcp.settings import ServerSettings, read_servers
from atp.agents.mcp.stdio import ServerLog
from atp.agents.mcp.tools import MOST_TOOLS, McpTool, choose
from atp.agents.tools import CallableTool, ToolServers
from atp.base.errors import install_extra
from atp.base.numbers import counted
from atp.base.text import cut
from atp.loader.validate import Locator
from atp.models.model import CassetteError, CassetteMiss

if TYPE_CHECKING:
    from mcp_types import CallToolResult

SHOWN = 20
"""The number of tools that a finding names."""


class Server:
    """A server, over all its restarts."""

    def __init__(self, settings: ServerSettings, command: Callable[[], Command]) -> None:
        """`command` is called for each start of the server, because a trial's workspace is made when first needed."""
        self.settings = settings
        self._command = command
        self._log = ServerLog(settings.name)
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def tools(self) -> list[dict[str, Any]]:
        """List the tools as JSON: `name`, `description` and `parameters`. Raises `AgentError`."""
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
        """Call a tool; if the server has died, start it again and call once more.

        Raises `AgentError`, `TimeoutError` and `CallRefused`.
        """
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
        """Stop the server."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connected(self) -> Connection:
        """Return the connection, which is opened if there is none. Raises `AgentError`."""
        async with self._connecting:
            if self._closed:
                raise AgentError(f"the MCP server `{self.settings.name}` was stopped", "environment")
            if self._connection is None or self._connection.over:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Connection:
        connection = self._connection = Connection(self.settings, self._command(), self._log)
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


class McpServers(ToolServers):
    """The servers of one agent, and its own tools beside theirs."""

    def __init__(
        self,
        declared: Any,
        path: Path,
        locate: Locator | None,
        files: AgentFiles,
        own: Mapping[str, CallableTool],
        context: AdapterContext,
    ) -> None:
        """Read the settings of the servers. Mistakes are added to `files`."""
        assert context.services is not None
        self._services = context.services
        self._servers = read_servers(declared, path, locate, files)
        self._own = own
        self._agent = files.name(path)
        self._context = context
        self._of_run: list[Server] = []
        self._of_trials: dict[str, list[Server]] = {}
        self._endings: set[asyncio.Future[None]] = set()
        self._shared: dict[str, McpTool] | None = None
        self._starting = asyncio.Lock()
        self.files = tuple(file for server in self._servers for file in server.files)
        if self._servers and not self._is_replay and locate is not None and (lacking := _missing_package()):
            hint = install_extra("mcp")
            files.notes(path).error("tool", lacking, locate.key(("mcp",)), hint)

    @property
    def _is_replay(self) -> bool:
        cassette = self._services.cassette
        return cassette is not None and cassette.mode == "replay"

    async def start(self) -> None:
        """Start the servers that serve the whole run, and list their tools. Raises `AgentError`."""
        async with self._starting:
            if self._shared is None:
                if not self._of_run:
                    self._of_run = [self._server(one, None) for one in self._servers if not one.per_trial]
                self._shared = await self._list(self._of_run)

    async def tools(self, request: TurnRequest) -> dict[str, CallableTool]:
        """Return all tools of the agent in a turn, by name. Raises `AgentError`."""
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
        """Begin to stop the servers of a trial."""
        if servers := self._of_trials.pop(task_id, None):
            ending = asyncio.ensure_future(_close(servers))
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """Stop all servers."""
        servers = [*self._of_run, *(one for servers in self._of_trials.values() for one in servers)]
        self._of_trials.clear()
        await _close(servers)
        if self._endings:
            await asyncio.wait(self._endings)

    async def check(self) -> list[Finding]:
        """Start each server, list its tools, and stop it; and check whether a model takes all tools together."""
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
        return Finding(what=what, ok=True, detail=f"{counted(len(chosen), 'tool')}: {shown}"), tools

    def _server(self, settings: ServerSettings, request: TurnRequest | None) -> Server:
        environment = child_environment(self._context, settings.environment)

        def command() -> Command:
            folder = settings.folder if request is None or not settings.in_workspace else request.workspace()
            return Command(settings.argv, folder, environment)

        return Server(settings, command)

    async def _list(self, servers: list[Server]) -> dict[str, McpTool]:
        """List the tools of servers, by name."""
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

    def _together(self, found: Mapping[str, McpTool]) -> dict[str, CallableTool]:
        tools = dict(self._own)
        for name, tool in found.items():
            own = tools.get(name)
            chosen = tool if own is None else own.standing_in_for(tool)
            if chosen is None:
                raise AgentError(f"two tools of the agent are called `{name}`", "environment")
            tools[name] = chosen
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
    """Stop servers concurrently, all of them whatever happens."""
    await asyncio.gather(*(one.close() for one in servers), return_exceptions=True)


def _missing_package() -> str | None:
    try:
        version = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        return "MCP servers as tools need the package `mcp`"
    if int(version.partition(".")[0]) < 2:
        return f"MCP servers as tools need `mcp` 2 or newer, and {version} is installed"
    return None
