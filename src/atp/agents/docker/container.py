"""One container, from its creation to its removal."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp
from aiodocker.containers import DockerContainer
from aiodocker.exceptions import DockerError
from aiodocker.stream import Stream

from atp.agents.adapter import AgentError
from atp.agents.docker.engine import Engine

REMOVAL_SECONDS = 20.0
"""How long the removal of a container may take."""
_TRIES = 5
_KILLED = 128 + signal.SIGKILL
_LATE_NEWS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds to wait before one that was killed is looked at again."""
_GOING = ("removing", "dead")
"""What an engine calls a container that it is taking away, and one that it could not take away in full."""
Takes = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended."""

    code: int
    """The exit code; 128 and more for a signal."""
    out_of_memory: bool
    """A process in it was killed for using more memory than it may."""

    @property
    def killed(self) -> bool:
        """The agent itself was ended by force, not only a process that it started."""
        return self.code == _KILLED

    def __str__(self) -> str:
        """In words."""
        with contextlib.suppress(ValueError):
            if self.code > 128:
                return f"exit code {self.code} ({signal.Signals(self.code - 128).name})"
        return f"exit code {self.code}"


class Container:
    """A container of ours. Whoever makes one has to see that it is removed."""

    def __init__(self, engine: Engine, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self._engine = engine
        self._settings = settings
        self._handle: DockerContainer = engine.docker.containers.container(name)
        self._step: asyncio.Future[Any] | None = None

    async def create(self) -> None:
        """Make it. It doesn't run yet."""
        with self._engine.asked("the container can't be made"):
            await self._take(self._engine.docker.containers.create(self._settings, name=self.name))

    async def start(self) -> None:
        """Let it run."""
        with self._engine.asked("the container can't be started"):
            await self._take(self._handle.start())

    async def _take(self, step: Coroutine[Any, Any, Any]) -> None:
        """Take a step that goes on when we are cancelled: the removal waits for it, or it would come too early."""
        self._step = asyncio.ensure_future(step)
        await asyncio.shield(self._step)

    def listen(self) -> Stream:
        """Its stdout and stderr, from now on."""
        return self._handle.attach(stdout=True, stderr=True)

    async def converse(self, stdin: bytes, on_stdout: Takes, on_stderr: Takes) -> Ended:
        """Let it run to its end, with something on its stdin. What the two raise ends the conversation.

        Stdin has a connection of its own: to end it is to close that, which every transport can, half of one not.
        """
        with self._engine.asked("the container can't be spoken to"):
            async with self.listen() as heard, self._handle.attach(stdin=True) as told:
                await self.start()
                drop = _dropping(told)
                telling = asyncio.ensure_future(_tell(told, stdin))
                try:
                    while (message := await heard.read_out()) is not None:
                        (on_stdout if message.stream == 1 else on_stderr)(message.data)
                    return await self.ended()
                finally:
                    telling.cancel()
                    drop()
                    await asyncio.wait({telling})

    async def ended(self) -> Ended:
        """Wait for its end."""
        with self._engine.asked("how the container ended can't be told"):
            if (ended := await self.exited()) is not None:
                return ended
            await self._handle.wait()
            return await self._how(await self.state())

    async def exited(self) -> Ended | None:
        """How it ended, if it has."""
        state = await self.state()
        return None if state.get("Running") else await self._how(state)

    async def _how(self, state: dict[str, Any]) -> Ended:
        """The engine hears of a lack of memory by another way than of the end that it brought, and maybe later."""
        ended = _ended(state)
        for wait in _LATE_NEWS:
            if not ended.killed or ended.out_of_memory:
                break
            await asyncio.sleep(wait)
            ended = _ended(await self.state())
        return ended

    async def state(self) -> dict[str, Any]:
        """What the engine knows of how it is."""
        with self._engine.asked("the container's state can't be told"):
            try:
                state: dict[str, Any] = (await self._handle.show())["State"]
            except DockerError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    raise _removed() from error
                raise
        if state.get("Status") in _GOING:
            raise _removed()
        return state

    async def published(self, port: int) -> int:
        """The port of the engine's machine that leads to one of its own."""
        with self._engine.asked("the container's ports can't be told"):
            await self._handle.show()
            found = await self._handle.port(port)
        if not found:
            raise AgentError(f"the container engine has not published the port {port}", "environment")
        return int(found[0]["HostPort"])

    async def stop(self) -> None:
        """Ask it to end, and end it if it doesn't. Whatever comes of that, it is removed afterwards."""
        with contextlib.suppress(DockerError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(REMOVAL_SECONDS):
                await self._handle.stop()

    async def remove(self) -> None:
        """Take it away, running or not. Raises `AgentError` when it may still be there."""
        try:
            async with asyncio.timeout(REMOVAL_SECONDS):
                if self._step is not None:
                    await asyncio.wait({self._step})
                    self._step.exception()  # was told to whoever took the step, unless they were cancelled
                await self._delete()
        except (DockerError, aiohttp.ClientError, OSError) as error:
            raise AgentError(
                f"the container {self.name} could not be removed: {str(error) or type(error).__name__}", "environment"
            ) from error

    async def _delete(self) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                await self._handle.delete(force=True, v=True)
            except DockerError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return
                # 409: it is being removed already; 500: a mount that is busy for a moment
                if attempt == _TRIES or error.status not in (409, 500):
                    raise
                await asyncio.sleep(0.1 * 2**attempt)
            else:
                return


def _removed() -> AgentError:
    """We ask nothing of containers that we removed, so this was somebody else."""
    return AgentError("the container was removed by somebody else while it was in use", "environment")


def _ended(state: dict[str, Any]) -> Ended:
    return Ended(int(state.get("ExitCode") or 0), bool(state.get("OOMKilled")))


def _dropping(stream: Stream) -> Callable[[], None]:
    """How to cut a connection: to close it is to wait for somebody who may never read what is still on its way."""
    response = stream._resp
    transport = response.connection.transport if response is not None and response.connection is not None else None
    return transport.abort if isinstance(transport, asyncio.WriteTransport) else _nothing


def _nothing() -> None:
    """There is no connection any more."""


async def _tell(told: Stream, stdin: bytes) -> None:
    """Write to a container's stdin and end it. One that has ended, or doesn't listen, misses nothing."""
    with contextlib.suppress(Exception):
        await told.write_in(stdin)
        await told.close()
