"""HTTP agents in a container that is started once and shared over all trials."""

import asyncio
import contextlib
from collections import deque

import aiohttp

from atp.agents.adapter import AdapterContext, AgentError, Reply, TurnRequest
from atp.agents.docker.adapter import DockerAdapter
from atp.agents.docker.container import Container
from atp.agents.http_exchange import HttpExchange
from atp.suite.agent import Agent

READY_SECONDS = 60.0
"""How long an agent may take until it is ready, unless it says otherwise."""
LINGER = 1.0
"""Seconds that the end of a server may take to be known."""
_TAIL = 4000


class SharedContainer(DockerAdapter):
    """Keeps a server in a container and posts each turn to it."""

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        super().__init__(agent, context)
        assert self._config.port is not None
        self._port = self._config.port
        self._http = self._exchange("127.0.0.1", self._port)  # until the published port is known
        self.capabilities = self._http.capabilities
        self._server: Container | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._said: deque[bytes] = deque()

    def _exchange(self, host: str, port: int) -> HttpExchange:
        config = self._config
        assert config.protocol != "text", "the configuration refuses `protocol: text` with `port`"
        url = f"http://{host}:{port}{config.path or '/'}"
        return HttpExchange("path", url, config, config.protocol, self._context)

    async def _settle_in(self) -> None:
        """Start the server and wait until it is ready."""
        host, port = self._engine.place.host, self._port
        if self._config.network == "host":
            await _must_be_free(host, port)
        self._server = server = self._container(self._settings.of_server(self._engine, self._image.id))
        await server.create()
        listening: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hearing = asyncio.ensure_future(self._hear(server, listening))
        with self._engine.asked("the container can't be listened to"):
            await listening
        await server.start()
        if self._config.network != "host":
            port = await self._published(server)
        self._http = self._exchange(host, port)
        await self._wait_until_ready(
            server, f"http://{host}:{port}{self._config.health_path or self._config.path or '/'}"
        )

    async def _published(self, server: Container) -> int:
        """A server that has ended has no port any more; then that is what went wrong."""
        try:
            return await server.published(self._port)
        except AgentError as error:
            raise await self._ended(server) or error from error

    async def _wait_until_ready(self, server: Container, url: str) -> None:
        loop = asyncio.get_running_loop()
        seconds = self._config.ready_within or READY_SECONDS
        deadline, wait = loop.time() + seconds, 0.02
        headers = {"Authorization": f"Bearer {self._config.api_key}"} if self._config.api_key else {}
        headers |= self._config.headers
        async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=seconds)) as session:
            while True:
                problem = await self._ill(server, session, url)
                if problem is None:
                    return
                if (error := await self._ended(server)) is not None:
                    raise error
                if loop.time() + wait >= deadline:
                    tail = f": {said}" if (said := self._tail()) else ""
                    raise AgentError(f"the agent isn't ready after {seconds:g}s: {problem}{tail}", "environment")
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, 1.0)

    async def _ill(self, server: Container, session: aiohttp.ClientSession, url: str) -> str | None:
        """What keeps it from being ready: its own health check if it has one, or its answers."""
        health = ((await server.state()).get("Health") or {}).get("Status")
        if health and health not in ("none", "healthy"):
            return f"its health check says `{health}`"
        try:
            async with session.get(url, allow_redirects=False) as response:
                if self._config.health_path is not None and response.status >= 300:
                    return f"{url}: HTTP {response.status}"
                return None
        except (aiohttp.ClientError, OSError) as error:  # a TimeoutError is an OSError
            return f"{url}: {str(error) or type(error).__name__}"

    async def turn(self, request: TurnRequest) -> Reply:
        """Post the turn. Where that fails because the server is gone, that is the reason."""
        for note in self._notes:
            request.log(note)
        try:
            return await self._http.turn(request)
        except AgentError as error:
            if isinstance(error.__cause__, aiohttp.ClientError | ConnectionError):
                await self._last_words()
                if self._server is not None and (ended := await self._ended(self._server)) is not None:
                    raise ended from error
            raise

    async def _last_words(self) -> None:
        """A server that dies breaks its connections a moment before the engine knows of its end."""
        if self._hearing is not None:
            await asyncio.wait({self._hearing}, timeout=LINGER)

    async def _ended(self, server: Container) -> AgentError | None:
        """The error of a server that has ended: it should run as long as we do."""
        ended = await server.exited()
        if ended is None:
            return None
        await self._last_words()
        tail = self._tail()
        why = self._bad_end(ended, tail)
        if isinstance(why, AgentError):
            return why
        return AgentError(f"agent error: the container has ended: {why}{f': {tail}' if tail else ''}")

    async def _hear(self, server: Container, listening: "asyncio.Future[None]") -> None:
        """Keep the end of what the server writes, from its first word."""
        size = 0
        try:
            async with server.listen() as heard:
                if not listening.done():
                    listening.set_result(None)
                while (message := await heard.read_out()) is not None:
                    self._said.append(message.data)
                    size += len(message.data)
                    while size > _TAIL and len(self._said) > 1:
                        size -= len(self._said.popleft())
        except Exception as error:  # to whoever waits; later, the next request shows what is wrong
            if not listening.done():
                listening.set_exception(error)

    def _tail(self) -> str:
        """The last lines that the server wrote."""
        text = b"".join(self._said)[-_TAIL:].decode(errors="replace").strip()
        return "\n".join(text.splitlines()[-10:])[-1000:]

    async def _move_out(self) -> None:
        """Stop the server and remove it."""
        await self._http.close()
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
            await self._remove(server)
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.wait({self._hearing})


async def _must_be_free(host: str, port: int) -> None:
    """On the host's network somebody else may have the port, and would be taken for the agent."""
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        raise AgentError(f"the port {port} is taken by somebody else on {host}", "environment")
