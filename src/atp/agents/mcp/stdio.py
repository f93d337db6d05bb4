"""The stdio transport of an MCP server: a process that reads and writes one message a line, and logs to stderr.

The SDK has such a transport, too. This transport ends a process with all that it started, knows how the process ended,
and reads a long line in linear time; the SDK's time grows with the square of a line's length.
"""

import asyncio
import os
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from atp.agents.child import Child, Command, ending
from atp.base.text import cut, cut_start
from atp.usercode.printed import LONGEST, KeptLines

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

LAST_SECONDS = 1.0
"""Seconds that a server may take to end by itself, once its stdin is closed."""
LONGEST_LINE = 64 * 1024 * 1024
"""The longest message, in bytes."""
_WAITING = 200
"""Lines of stderr that are kept until the next call of a tool."""
_TAIL = 10
_PIECE = 64 * 1024
_PIECES = 16
_LONGEST_PART = 4 * LONGEST


class Pipes:
    """The process of a server, and its pipes."""

    def __init__(self, command: Command, log: "ServerLog") -> None:
        self._command = command
        self._log = log
        self._child: Child | None = None
        self._stderr: StderrPipe | None = None
        self._why: str | None = None
        self._ended_by_us = False
        self.silent = False
        """True once the process has closed stdout or stopped reading: no more answers will come."""
        self.closing = False
        """True while the process is being ended."""
        self.tools: list[Any] = []
        """The server's newest list of tools, as received."""

    @property
    def ended(self) -> str | None:
        """How the process ended by itself, or why it is not read any more; None while it runs."""
        if self._why is not None or self._child is None or self._ended_by_us or not self._child.exited.done():
            return self._why
        self._child.kill()  # collects the exit code
        return ending(self._child.code)

    def read_stderr(self) -> None:
        """Read what is on stderr now."""
        if self._stderr is not None:
            self._stderr.read()

    async def why(self) -> str | None:
        """Return how the process ended. Waits a moment, because a pipe may be closed before the process exits."""
        if self._child is not None and self._why is None and not self._ended_by_us:
            await asyncio.wait({self._child.exited}, timeout=LAST_SECONDS)
        self.read_stderr()
        return self.ended

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[TransportStreams]":
        """Start the process, and end it on exit. Raises `OSError`."""
        child = self._child = Child(self._command, subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
        assert child.popen.stderr is not None
        self._stderr = StderrPipe(child.popen.stderr, self._log)
        try:
            async with self._talking(child) as streams:
                yield streams
        finally:
            await asyncio.shield(self._end(child))

    async def _end(self, child: Child) -> None:
        try:
            await child.end(sweep=True)
        finally:
            assert self._stderr is not None
            self._stderr.close()

    @asynccontextmanager
    async def _talking(self, child: Child) -> "AsyncIterator[TransportStreams]":
        import anyio

        reader, stdout = await _reader(child)
        writer = await _writer(child)
        to_session, received = anyio.create_memory_object_stream[Any](0)
        sent, from_session = anyio.create_memory_object_stream[Any](0)
        tasks = [
            asyncio.create_task(self._read(reader, to_session)),
            asyncio.create_task(self._write(writer, from_session, to_session)),
        ]
        try:
            yield received, sent
        finally:
            self.closing = True
            self._ended_by_us = not self.silent and not child.exited.done()
            writer.close()  # asks the server to end
            for stream in (received, sent, to_session, from_session):
                stream.close()
            try:
                await asyncio.wait({child.exited}, timeout=LAST_SECONDS)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                stdout.close()
                if writer.transport.get_write_buffer_size():  # a closed transport can't be aborted
                    writer.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, to_session: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the session has ended
            async with to_session:
                while line := await self._line(reader):
                    if not line.strip():
                        continue
                    try:
                        message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                    except ValueError:
                        text = line.decode(errors="replace").rstrip()
                        self._log.add(f"(on stdout, where only messages belong) {text}")
                        continue
                    self._note(message.message)
                    await to_session.send(message)
                self.silent = True

    def _note(self, message: Any) -> None:
        result = getattr(message, "result", None)
        tools = result.get("tools") if isinstance(result, dict) else None
        self.tools = tools if isinstance(tools, list) else []

    async def _line(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readline()
        except ValueError:
            self._why = f"it wrote a message of more than {LONGEST_LINE // 1024 // 1024} MB"
            return b""

    async def _write(self, writer: asyncio.StreamWriter, from_session: Any, to_session: Any) -> None:
        import anyio

        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with from_session:
                async for message in from_session:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    try:
                        writer.write(f"{text}\n".encode(errors="replace"))
                        await writer.drain()
                    except OSError:  # the server stopped reading: end the wait for answers
                        self.silent = True
                        to_session.close()
                        return


async def _reader(child: Child) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE, loop=loop)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), child.popen.stdout)
    return reader, transport


async def _writer(child: Child) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), child.popen.stdin
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


class ServerLog:
    """The lines that a server writes to stderr, over all its restarts.

    A line goes to the logs of the calls that run then, else to the log of the next call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._listeners: list[KeptLines] = []
        self._waiting: deque[str] = deque(maxlen=_WAITING)
        self._tail: deque[str] = deque(maxlen=_TAIL)

    @property
    def tail(self) -> str:
        """The last lines since the server's start, for messages."""
        return cut_start("\n".join(self._tail), 1000)

    def begin_life(self) -> None:
        """Clear the tail when the server is started again: earlier lines explain nothing."""
        self._tail.clear()

    def add(self, line: str) -> None:
        """Add a line."""
        self._tail.append(cut(line, LONGEST))
        if not self._listeners:
            self._waiting.append(line)
        for kept in self._listeners:
            kept.add(f"{self._name}: {line}")

    @contextmanager
    def to(self, log: Callable[[str], None]) -> Iterator[None]:
        """Send lines to this log for a while, beginning with those that no log has got."""
        kept = KeptLines(log)
        while self._waiting:
            kept.add(f"{self._name}: {self._waiting.popleft()}")
        self._listeners.append(kept)
        try:
            yield
        finally:
            self._listeners.remove(kept)
            kept.finish()


class StderrPipe:
    """Reads the stderr of a process as it is written."""

    def __init__(self, stream: IO[bytes], log: ServerLog) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._part = b""
        self._stream: IO[bytes] | None = stream
        os.set_blocking(stream.fileno(), False)
        self._loop.add_reader(stream.fileno(), self.read)

    def read(self) -> None:
        """Read what is there now."""
        for _ in range(_PIECES):  # endless output must not block the event loop
            if self._stream is None:
                return
            try:
                piece = os.read(self._stream.fileno(), _PIECE)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self._drop()
                return
            *lines, self._part = (self._part + piece).split(b"\n")
            if len(self._part) > _LONGEST_PART:
                lines.append(self._part)
                self._part = b""
            for line in lines:
                self._log.add(line.decode(errors="replace").rstrip("\r"))

    def close(self) -> None:
        """Read the rest, and close."""
        self.read()
        self._drop()

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        self._loop.remove_reader(stream.fileno())
        stream.close()
        if self._part:
            self._log.add(self._part.decode(errors="replace"))
            self._part = b""
