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
"""Seconds that the removal of a container may take."""
_TRIES = 5
_KILLED = 128 + signal.SIGKILL
_OOM_DELAYS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between looks at a killed container, until the engine reports that memory was the reason."""
_REMOVED_STATES = ("removing", "dead")
"""The states of a container that is being removed, or was removed in part."""
OnData = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended."""

    code: int
    """The exit code; 128 and more for a signal."""
    out_of_memory: bool
    """True if a process in the container exceeded the memory limit and was killed."""

    @property
    def killed(self) -> bool:
        """True if the main process was killed, not only a child process."""
        return self.code == _KILLED

    def __str__(self) -> str:
        """Return the exit code, with the name of the signal."""
        with contextlib.suppress(ValueError):
            if self.code > 128:
                return f"exit code {self.code} ({signal.Signals(self.code - 128).name})"
        return f"exit code {self.code}"


class Container:
    """A container. Whoever creates one must remove it."""

    def __init__(self, engine: Engine, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self._engine = engine
        self._settings = settings
        self._handle: DockerContainer = engine.docker.containers.container(name)
        self._step: asyncio.Future[Any] | None = None

    async def create(self) -> None:
        """Create the container, without starting it."""
        with self._engine.explained("the container can't be made"):
            await self._shielded(self._engine.docker.containers.create(self._settings, name=self.name))

    async def start(self) -> None:
        """Start the container."""
        with self._engine.explained("the container can't be started"):
            await self._shielded(self._handle.start())

    async def _shielded(self, step: Coroutine[Any, Any, Any]) -> None:
        """Run a step that goes on if the caller is cancelled, because `remove` must come after the step."""
        self._step = asyncio.ensure_future(step)
        await asyncio.shield(self._step)

    def listen(self) -> Stream:
        """Attach to stdout and stderr."""
        return self._handle.attach(stdout=True, stderr=True)

    async def converse(self, stdin: bytes, on_stdout: OnData, on_stderr: OnData) -> Ended:
        """Run the container to its end, with `stdin`. An error raised by a callback ends the exchange.

        Stdin has a connection of its own, because it ends when the connection is closed, and not every transport can
        close one half of a connection.
        """
        with self._engine.explained("the container can't be used"):
            async with self.listen() as output, self._handle.attach(stdin=True) as input_stream:
                await self.start()
                abort = _abort(input_stream)
                writing = asyncio.ensure_future(_write_stdin(input_stream, stdin))
                try:
                    while (message := await output.read_out()) is not None:
                        (on_stdout if message.stream == 1 else on_stderr)(message.data)
                    return await self.ended()
                finally:
                    writing.cancel()
                    abort()
                    await asyncio.wait({writing})

    async def ended(self) -> Ended:
        """Wait for the end of the container."""
        with self._engine.explained("how the container ended can't be read"):
            if (ended := await self.exited()) is not None:
                return ended
            await self._handle.wait()
            return await self._end_of(await self.state())

    async def exited(self) -> Ended | None:
        """Return how the container ended, or None while it runs."""
        state = await self.state()
        return None if state.get("Running") else await self._end_of(state)

    async def _end_of(self, state: dict[str, Any]) -> Ended:
        """Read the end from a state. An engine may learn of a lack of memory after the end that the lack caused."""
        ended = _read_end(state)
        for wait in _OOM_DELAYS:
            if not ended.killed or ended.out_of_memory:
                break
            await asyncio.sleep(wait)
            ended = _read_end(await self.state())
        return ended

    async def state(self) -> dict[str, Any]:
        """Return the state as the engine reports it. Raises `AgentError` for a container that was removed."""
        with self._engine.explained("the container's state can't be read"):
            try:
                state: dict[str, Any] = (await self._handle.show())["State"]
            except DockerError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    raise _removed() from error
                raise
        if state.get("Status") in _REMOVED_STATES:
            raise _removed()
        return state

    async def published(self, port: int) -> int:
        """Return the port of the engine's host that is mapped to a port of the container."""
        with self._engine.explained("the container's ports can't be read"):
            await self._handle.show()
            found = await self._handle.port(port)
        if not found:
            raise AgentError(f"the container engine has not published the port {port}", "environment")
        return int(found[0]["HostPort"])

    async def stop(self) -> None:
        """Stop the container, by force if needed. Errors are ignored, because `remove` follows."""
        with contextlib.suppress(DockerError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(REMOVAL_SECONDS):
                await self._handle.stop()

    async def remove(self) -> None:
        """Remove the container, running or not. Raises `AgentError` if it may still exist."""
        try:
            async with asyncio.timeout(REMOVAL_SECONDS):
                if self._step is not None:
                    await asyncio.wait({self._step})
                    self._step.exception()  # already raised to the caller of the step, unless cancelled
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
                # 409: a removal is under way; 500: a mount is busy for a moment
                if attempt == _TRIES or error.status not in (409, 500):
                    raise
                await asyncio.sleep(0.1 * 2**attempt)
            else:
                return


def _removed() -> AgentError:
    """Return the error for a container that is gone while ATP still uses it."""
    return AgentError("the container was removed by another program while it was in use", "environment")


def _read_end(state: dict[str, Any]) -> Ended:
    return Ended(int(state.get("ExitCode") or 0), bool(state.get("OOMKilled")))


def _abort(stream: Stream) -> Callable[[], None]:
    """Return a function that aborts the connection. Closing it would wait for a reader that may never read."""
    response = stream._resp
    transport = response.connection.transport if response is not None and response.connection is not None else None
    return transport.abort if isinstance(transport, asyncio.WriteTransport) else _no_connection


def _no_connection() -> None:
    """Do nothing: the connection is closed already."""


async def _write_stdin(stream: Stream, stdin: bytes) -> None:
    """Write to a container's stdin and close it. Errors are ignored: a container need not read its input."""
    with contextlib.suppress(Exception):
        await stream.write_in(stdin)
        await stream.close()
