"""An MCP server that an agent uses: started when it is needed, once more if it dies during a call, always stopped."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import AgentError
from atp.agents.mcp.connection import Connection, Place, ServerDown
from atp.agents.mcp.settings import ServerSettings
from atp.agents.mcp.stderr import ServerLog

if TYPE_CHECKING:
    from mcp_types import CallToolResult


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
