"""A connection to an MCP server: opened, used, and closed with all processes that the server started.

The SDK requires that one task opens and closes a connection, so each connection has a task of its own.
"""

import asyncio
import logging
import os
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any

from atp.agents.child import Command
from atp.agents.mcp.settings import ServerSettings
from atp.agents.mcp.stdio import Pipes, ServerLog
from atp.base.text import cut
from atp.usercode.threads import in_thread

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.shared.exceptions import MCPError
    from mcp_types import CallToolResult, Tool
    from pydantic_core import ErrorDetails

END_SECONDS = 8.0
"""Seconds that an orderly end may take. The SDK waits a few seconds of its own."""
LARGEST_EVENT = 64 * 1024 * 1024
"""The largest message over HTTP, in bytes."""
MOST_PAGES = 100
"""The largest number of pages of a list of tools."""
PROBE_SECONDS = 2.0
"""Seconds to wait for the versions of MCP that a server speaks, before the greeting of old servers is sent."""
_CLOSED = ("Connection closed", "SSE stream ")
"""The beginnings of the SDK's errors for a closed HTTP connection."""
_LOST = (401, 403, 429, 502, 503, 504)
"""HTTP statuses about the way to a server, not about the request."""
LONGEST_NAME = 40
"""Characters of a tool's name in a message."""


class ServerDown(Exception):
    """A server that can't be started, or has ended."""

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        """True if trying again may help."""


class Connection:
    """A connection, with the server's process if ATP started it."""

    def __init__(self, settings: ServerSettings, command: Command, log: ServerLog) -> None:
        """`command` starts the server, unless the settings have a URL."""
        self._settings = settings
        self._command = command
        self._log = log
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._pipes: Pipes | None = None
        self._loaded = asyncio.Event()
        self._why: BaseException | None = None
        self._down_for: ServerDown | None = None
        self._task = asyncio.create_task(self._live(), name=f"mcp-{settings.name}")
        self._task.add_done_callback(self._settle)

    @property
    def over(self) -> bool:
        """True once the connection has ended."""
        return self._task.done()

    async def ready(self) -> None:
        """Wait until the server answers. Raises `ServerDown`."""
        await self._loaded.wait()
        seconds = self._settings.ready_within
        await asyncio.wait({self._ready}, timeout=seconds)
        if not self._ready.done() and self._pipes is not None and self._pipes.closing:
            await asyncio.wait({self._ready}, timeout=END_SECONDS)  # the start has failed, and is being cleaned up
        if not self._ready.done():
            how = self._pipes.ended if self._pipes is not None else None
            await self.close()
            late = f"it did not answer within {seconds:g}s (`ready_within`)"
            raise ServerDown(f"{how or late}{self._said()}")
        if (error := self._ready.exception()) is not None:
            raise await self._lost(error) from error

    async def list_tools(self) -> "list[Tool]":
        """List all tools. Raises `ServerDown`."""
        client, seconds = self._ready.result(), self._settings.ready_within
        found: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            try:
                async with asyncio.timeout(seconds):
                    page = await client.list_tools(cursor=cursor)
            except TimeoutError as error:
                raise ServerDown(f"it did not list its tools within {seconds:g}s (`ready_within`)") from error
            except Exception as error:
                raise await self._down(error) from error
            found += page.tools
            cursor = page.next_cursor
            if not cursor:
                return found
        raise ServerDown(f"its list of tools has no end: {MOST_PAGES} pages were read")

    async def call(self, tool: str, arguments: dict[str, Any]) -> "CallToolResult":
        """Call a tool. Raises `ServerDown`, `TimeoutError`, `CallRefused`."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import REQUEST_TIMEOUT

        if self.over:
            raise await self._down(self._why)
        began = time.monotonic()
        try:
            return await self._ready.result().call_tool(tool, arguments, self._settings.seconds)
        except MCPError as error:
            # A tool may answer with the code that the SDK uses for its own timeout.
            if error.code == REQUEST_TIMEOUT and time.monotonic() - began >= self._settings.seconds:
                raise TimeoutError from error
            if self._task.done() or self._is_closed(error):
                raise await self._lost(error) from error
            raise CallRefused(error.message) from error
        except Exception as error:
            if self._task.done() or self._stop.is_set():
                raise await self._down(error) from error
            raise CallRefused(f"{type(error).__name__}: {error}") from error
        finally:
            if self._pipes is not None:
                self._pipes.read_stderr()

    def _is_answer(self, error: BaseException) -> bool:
        """Return whether an error is an answer of the server, not the end of the connection."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        return not self._is_closed(error) if isinstance(error, MCPError) else isinstance(error, ValidationError)

    def _is_closed(self, error: "MCPError") -> bool:
        """Return whether an error is the SDK's report of a closed connection, not a tool's answer."""
        from mcp_types import CONNECTION_CLOSED

        if error.code != CONNECTION_CLOSED:
            return False
        return self._pipes.silent if self._pipes is not None else error.message.startswith(_CLOSED)

    async def close(self) -> None:
        """End the connection, the server and all that it started, even if the caller is cancelled meanwhile."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        if not self._task.done():
            await asyncio.wait({self._task}, timeout=END_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=END_SECONDS)

    async def _live(self) -> None:
        try:
            await in_thread(_load)  # takes seconds on a busy machine, which must not count as the server's
            self._loaded.set()
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._client(stack))
                if not self._ready.done():
                    self._ready.set_result(client)
                await self._stop.wait()
        except BaseException as error:
            self._why = error

    def _settle(self, _: object) -> None:
        """Release everyone who waits for the connection, even if it ended before it began."""
        self._loaded.set()
        if not self._ready.done():
            self._ready.set_exception(ServerDown("it was stopped") if self._why is None else _first(self._why))
        self._ready.exception()  # marks the exception as retrieved

    def _client(self, stack: AsyncExitStack) -> "Client":
        from mcp import Client

        return Client(self._over_http(stack) if self._settings.url is not None else self._over_pipes())

    def _over_pipes(self) -> "AbstractAsyncContextManager[TransportStreams]":
        self._log.begin_life()
        self._pipes = Pipes(self._command, self._log)
        return self._pipes.open()

    def _over_http(self, stack: AsyncExitStack) -> "AbstractAsyncContextManager[TransportStreams]":
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        assert self._settings.url is not None
        client = httpx2.AsyncClient(
            headers=dict(self._settings.headers),
            timeout=httpx2.Timeout(30.0, read=max(300.0, self._settings.seconds)),
            event_hooks={"response": [_look]},
        )
        stack.push_async_callback(client.aclose)
        return streamable_http_client(self._settings.url, http_client=client, max_sse_event_size=LARGEST_EVENT)

    async def _lost(self, error: BaseException) -> ServerDown:
        """Explain why the server is gone, then end what is left of it."""
        self._down_for = await self._down(error)
        await self.close()
        return self._down_for

    async def _down(self, error: BaseException | None) -> ServerDown:
        """Explain why the server is gone."""
        if self._stop.is_set():
            return self._down_for or ServerDown("it was stopped")
        how = await self._pipes.why() if self._pipes is not None else None
        cause = _first(self._why if self._why is not None else error)
        if isinstance(cause, ServerDown):
            return cause
        if isinstance(cause, OSError) and how is None and self._settings.argv:
            why = cause.strerror or str(cause)
            return ServerDown(f"`{os.path.basename(self._settings.argv[0])}` can't be started: {why}")
        said = _explain(cause, self._pipes.tools if self._pipes is not None else [])
        if self._settings.argv:
            return ServerDown(f"{said if how is None or self._is_answer(cause) else how}{self._said()}")
        return ServerDown(f"{self._settings.url}: {said}", may_pass=True)

    def _said(self) -> str:
        return f"; it wrote: {self._log.tail}" if self._log.tail else ""


class CallRefused(Exception):
    """A call that the server refused. The message says why."""


async def _look(response: "httpx2.Response") -> None:
    """Raise `ServerDown` for answers that end a connection, which the SDK reports only as an error."""
    has_lost_session = response.status_code == 404 and "mcp-session-id" in response.request.headers
    if response.status_code in _LOST or has_lost_session:
        raise ServerDown(f"{response.request.url}: HTTP {response.status_code}", may_pass=response.status_code > 403)


def _first(error: BaseException | None) -> BaseException:
    """Return the first exception of the groups that the SDK's tasks raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Exception) else ServerDown("it was stopped")


def _load() -> None:
    """Import the SDK, silence its log, and shorten its probe of old servers."""
    import mcp.client.session

    logger = logging.getLogger("mcp")
    if not logger.handlers:  # ATP reports the errors itself
        logger.addHandler(logging.NullHandler())
    # The SDK first sends a request that old servers don't know. Some don't answer at all, and would cost the SDK's
    # 10 seconds at each start. A later answer is still understood.
    mcp.client.session.DISCOVER_TIMEOUT_SECONDS = PROBE_SECONDS


def _explain(error: BaseException, tools: list[Any]) -> str:
    """Explain an error of the SDK. `tools` is the server's newest list of tools, as received."""
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    if isinstance(error, MCPError):
        return f"it answered with the error {error.code}: {error.message}"
    if isinstance(error, ValidationError):
        return _misshapen(error.errors(include_url=False)[0], tools)
    return str(error).partition("\n")[0] or type(error).__name__


def _misshapen(error: "ErrorDetails", tools: list[Any]) -> str:
    """Explain a validation error with the name of the tool, which pydantic does not know."""
    wrong = error["msg"][:1].lower() + error["msg"][1:]
    match error["loc"]:
        case ("tools", int(number), *steps):
            named = _name(tools, number) or f"number {number + 1} of its list"
            field = f", `{_path(steps)}`" if steps else ""
            return f"the tool {named} is not described as MCP has it{field}: {wrong}"
        case ():
            return f"its answer is not one of MCP's: {wrong}"
        case steps:
            return f"its answer is not one of MCP's, `{_path(steps)}`: {wrong}"


def _name(tools: list[Any], number: int) -> str:
    tool = tools[number] if number < len(tools) else None
    name = tool.get("name") if isinstance(tool, dict) else None
    return f"`{cut(name, LONGEST_NAME)}`" if isinstance(name, str) else ""


def _path(steps: Any) -> str:
    return ".".join(str(step) for step in steps)
