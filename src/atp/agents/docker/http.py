"""HTTP servers in a container that is started once and shared by all trials."""

import asyncio
import contextlib
from collections import deque

import aiohttp

from atp.agents.adapter import AdapterContext, AgentError, Reply, TurnRequest
from atp.agents.docker.adapter import DockerAdapter
from atp.agents.docker.container import Container
from atp.agents.http_exchange import HttpExchange
from atp.agents.http_faults import Address
from atp.base.text import cut_start
from atp.suite.agent import Agent

READY_SECONDS = 60.0
"""Seconds that a server may take until it is ready, unless `ready_within` says otherwise."""
LINGER = 1.0
"""Seconds that the engine may take to report the end of a server."""
_TAIL = 4000


class SharedContainer(DockerAdapter):
    """Runs a server in a container, and posts each turn to it."""

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        super().__init__(agent, context)
        assert self._config.port is not None
        self._port = self._config.port
        self._http = self._exchange("127.0.0.1", self._port)  # until the published port is known
        self.capabilities = self._http.capabilities
        self.uses_workspace = self._http.uses_workspace
        self._server: Container | None = None
        self._log_reader: asyncio.Task[None] | None = None
        self._log: deque[bytes] = deque()

    def _exchange(self, host: str, port: int) -> HttpExchange:
        config = self._config
        assert config.protocol != "text", "the configuration refuses `protocol: text` with `port`"
        url = f"http://{host}:{port}{config.path or '/'}"
        return HttpExchange("path", url, config, config.protocol, self._context)

    async def _start_server(self) -> None:
        """Start the server and wait until it is ready."""
        host, port = self._engine.address.host, self._port
        if self._config.network == "host":
            await _must_be_free(host, port)
        self._server = server = self._container(self._settings.of_server(self._engine, self._image.id))
        await server.create()
        listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log_reader = asyncio.ensure_future(self._read_log(server, listening))
        with self._engine.explained("the container can't be listened to"):
            await listening
        await server.start()
        if self._config.network != "host":
            port = await self._published(server)
        self._http = self._exchange(host, port)
        health = self._http.address
        if self._config.health_path is not None:
            health = Address("health_path", f"http://{host}:{port}{self._config.health_path}")
        await self._wait_until_ready(server, health)

    async def _published(self, server: Container) -> int:
        """Return the published port. A server that has ended has none, so its end is the error then."""
        try:
            return await server.published(self._port)
        except AgentError as error:
            raise await self._ended(server) or error from error

    async def _wait_until_ready(self, server: Container, health: Address) -> None:
        async def look() -> str | None:
            if (error := await self._ended(server)) is not None:
                raise error
            status = ((await server.state()).get("Health") or {}).get("Status")
            is_healthy = not status or status in ("none", "healthy")
            return None if is_healthy else f"the image's health check says `{status}`"

        seconds = self._config.ready_within or READY_SECONDS
        any_status = self._config.health_path is None
        why = await self._http.wait_until_ready(health, seconds, any_status=any_status, also=look)
        if why is not None:
            problem = f"{why.problem}; {why.remedy}" if why.remedy else why.problem
            tail = f": {said}" if (said := self._tail()) else ""
            error = AgentError(f"the agent isn't ready after {seconds:g}s: {problem}{tail}", "environment")
            raise await self._ended(server) or error

    async def turn(self, request: TurnRequest) -> Reply:
        """Post the turn. If the server has ended, its end is the error."""
        for note in self._notes:
            request.log(note)
        try:
            return await self._http.turn(request)
        except AgentError as error:
            if isinstance(error.__cause__, aiohttp.ClientError | ConnectionError):
                await self._wait_for_end()
                if self._server is not None and (ended := await self._ended(self._server)) is not None:
                    raise ended from error
            raise

    async def _wait_for_end(self) -> None:
        """Wait for the end of the log: a dying server breaks its connections before the engine knows of its end."""
        if self._log_reader is not None:
            await asyncio.wait({self._log_reader}, timeout=LINGER)

    async def _ended(self, server: Container) -> AgentError | None:
        """Return the error of a server that has ended, which should run until `close`."""
        ended = await server.exited()
        if ended is None:
            return None
        await self._wait_for_end()
        tail = self._tail()
        why = self._bad_end(ended, tail)
        if isinstance(why, AgentError):
            return why
        return AgentError(f"agent error: the container has ended: {why}{f': {tail}' if tail else ''}")

    async def _read_log(self, server: Container, listening: "asyncio.Future[None]") -> None:
        """Collect the server's log, and keep its end. `listening` is done once the engine sends the log."""
        size = 0
        try:
            async with server.listen() as stream:
                if not listening.done():
                    listening.set_result(None)
                while (message := await stream.read_out()) is not None:
                    self._log.append(message.data)
                    size += len(message.data)
                    while size > _TAIL and len(self._log) > 1:
                        size -= len(self._log.popleft())
        except Exception as error:  # raised by `listening`; later on, the next request shows what is wrong
            if not listening.done():
                listening.set_exception(error)

    def _tail(self) -> str:
        """Return the last lines of the server's log."""
        text = cut_start(b"".join(self._log), _TAIL // 2).strip()  # where the log begins may be amid a secret
        return cut_start("\n".join(text.splitlines()[-10:]), 1000)

    async def _stop_server(self) -> None:
        """Stop the server and remove it."""
        await self._http.close()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
            await self._remove(server)
        if self._log_reader is not None:
            self._log_reader.cancel()
            await asyncio.wait({self._log_reader})


async def _must_be_free(host: str, port: int) -> None:
    """Raise `AgentError` if another process listens on a port of the host's network."""
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        raise AgentError(f"the port {port} is taken by another process on {host}", "environment")
