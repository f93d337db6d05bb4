"""A worker's process: sends requests and reads replies as lines of JSON, and captures what the process prints.

Events of a request come on a pipe of their own, which is read at intervals: waking up for each event costs more than
reading it, and what was written stays in the pipe even if the process ends. The result of a request comes on another
pipe, which is read as soon as there is data.
"""

import asyncio
import itertools
import os
import subprocess
from collections.abc import Callable
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.child import Child, Command, ending
from atp.agents.wire import LARGEST_OUTPUT, ProtocolError, broken, read_json, write_json

LAST_SECONDS = 1.0
"""Seconds that a worker gets to exit by itself once its request pipe is closed."""
_EXIT_CODE_SECONDS = 0.5
"""Seconds to wait for the exit code after a pipe was closed. A worker without one has only closed the pipe."""
_PIECE = 256 * 1024
"""Bytes that are read or written at once."""
_INTERVAL = 0.02
"""Seconds between two reads of the event pipe."""
_BUSY_INTERVAL = 0.001
"""The same after a read of `_BUSY_BYTES` or more: the agent would block on a full pipe."""
_BUSY_BYTES = 16 * 1024
_IDLE_OUTPUT = 64 * 1024
"""Bytes that are kept of what the process prints between two requests."""

OnMessage = Callable[[dict[str, Any]], bool]
"""Called with each message of a request. Returns true if the message was the last one."""
OnOutput = Callable[[bytes], None]
"""Called with what the process prints during a request."""


class WorkerDied(Exception):
    """Raised when the process ends during a request. The message says how it ended."""


class WorkerProcess:
    """A process that answers one request at a time."""

    def __init__(self, command: Command) -> None:
        """Start the process. Raises `OSError`."""
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._on_message: OnMessage | None = None
        self._on_output: OnOutput | None = None
        self._idle_output = bytearray()
        self._unsent = memoryview(b"")
        self._interval = _INTERVAL
        self._timer: asyncio.TimerHandle | None = None
        """The timer of the next read of the event pipe. None while the event loop watches the pipe."""
        (requests, self._requests), (self._events, events), (self._replies, replies), (self._log, log) = _pipes(4)
        self._lines = {self._events: _LineBuffer(self._on_line), self._replies: _LineBuffer(self._on_line)}
        self._open = {self._requests, self._events, self._replies, self._log}
        inherited = (requests, events, replies)
        try:
            started = Command((*command.argv, *map(str, inherited)), command.folder, command.environment)
            self._child = Child(started, subprocess.DEVNULL, log, log, inherited)
        except BaseException:
            for pipe in self._open:
                os.close(pipe)
            raise
        finally:
            for pipe in (*inherited, log):
                os.close(pipe)
        for pipe in self._open:
            os.set_blocking(pipe, False)
        self._loop.add_reader(self._replies, self._read_replies)
        self._loop.add_reader(self._log, self._read_log)
        self._child.exited.add_done_callback(self._on_exit)

    @property
    def over(self) -> bool:
        """True if the process can take no further request."""
        return self._child.exited.done() or self._error is not None or self._replies not in self._open

    @property
    def how(self) -> str:
        """How the process ended."""
        if self._error is not None:
            return str(self._error).removeprefix("agent error: ")
        if not self._child.exited.done():
            return "it closed its pipe"
        return ending(self._child.code)

    def printed(self) -> bytes:
        """What the process printed between two requests, since the last call of `printed`."""
        output, self._idle_output = bytes(self._idle_output), bytearray()
        return output

    async def ask(self, request: dict[str, Any], on_message: OnMessage, on_output: OnOutput | None = None) -> None:
        """Send a request, and wait for its last message.

        Raises `WorkerDied`, and whatever `on_message` or `on_output` raises.
        """
        data = write_json(request) + b"\n"
        self._done = self._loop.create_future()
        self._on_message, self._on_output = on_message, on_output
        if self.over:
            self._end_request()
        self._send(data)
        self._watch_events_later()
        try:
            await self._done
            self._read_log()  # what was printed before the last message is in the pipe by now
            answered = self._on_message is None
        except asyncio.CancelledError:
            self._read_events()  # what the agent did before its trial was cancelled
            raise
        finally:
            self._done = self._on_message = self._on_output = None
            self._stop_watching_events()
        if self._error is not None:
            raise self._error
        if answered:
            return
        if self._child.exited.done():
            self._child.kill()  # the rest of its process group, before the group's id can be used again
            raise WorkerDied(self.how)
        raise _pipe_closed()

    async def wait_exit_code(self) -> None:
        """Wait for the exit code of a process that is `over`, if the code comes soon."""
        if not self._child.exited.done():
            await asyncio.wait({self._child.exited}, timeout=_EXIT_CODE_SECONDS)

    async def close(self) -> None:
        """Close the request pipe, wait `LAST_SECONDS` for the process to exit, and end it if it has not."""
        self._drop(self._requests)
        await asyncio.wait({self._child.exited}, timeout=LAST_SECONDS)
        await self.end()

    def kill(self) -> None:
        """Kill the process. `end` still has to be called."""
        self._child.kill()

    async def end(self) -> None:
        """End the process and all processes that it started, and close the pipes."""
        try:
            await self._child.end(sweep=True, grace=0.0)
        finally:
            for pipe in list(self._open):
                self._drop(pipe)

    def _on_exit(self, _: object) -> None:
        self._read_replies()
        self._read_log()
        self._end_request()

    def _end_request(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end_request()

    def _send(self, data: bytes) -> None:
        self._unsent = memoryview(data)
        self._write()

    def _write(self) -> None:
        try:
            while self._unsent and self._requests in self._open:
                self._unsent = self._unsent[os.write(self._requests, self._unsent[:_PIECE]) :]
        except BlockingIOError:
            self._loop.add_writer(self._requests, self._write)
            return
        except OSError:  # the process has ended, which `_on_exit` reports
            self._unsent = memoryview(b"")
        self._loop.remove_writer(self._requests)

    def _watch_events_later(self) -> None:
        self._timer = self._loop.call_later(self._interval, self._watch_events)

    def _watch_events(self) -> None:
        self._timer = None
        if self._events in self._open:
            self._loop.add_reader(self._events, self._on_events)

    def _on_events(self) -> None:
        if self._read_messages(self._events) >= _BUSY_BYTES:
            self._interval = _BUSY_INTERVAL
            return
        self._stop_watching_events()
        self._watch_events_later()
        self._interval = min(2 * self._interval, _INTERVAL)

    def _stop_watching_events(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif self._events in self._open:
            self._loop.remove_reader(self._events)

    def _read_events(self) -> None:
        """Read all that is in the event pipe."""
        for _ in range(64):  # more than a pipe can contain: an agent that writes without end must not block the loop
            if self._read_messages(self._events) < _PIECE:
                return

    def _read_replies(self) -> None:
        self._read_events()  # written before the reply
        self._read_messages(self._replies)
        if self._replies not in self._open and not self._child.exited.done():
            # Either the process is about to exit, or the agent's code closed the pipe.
            self._loop.call_later(_EXIT_CODE_SECONDS, self._on_pipe_closed)

    def _read_messages(self, pipe: int) -> int:
        """Read a piece of a pipe, and handle its messages. Returns the size of the piece."""
        piece = self._read(pipe)
        if not piece:
            return 0
        try:
            self._lines[pipe].feed(piece)
        except AgentError as error:
            self._fail(error)
            self._drop(pipe)
        return len(piece)

    def _on_pipe_closed(self) -> None:
        if not self._child.exited.done():
            self._fail(_pipe_closed())

    def _on_line(self, line: bytes) -> None:
        if self._error is not None:
            return
        try:
            message = read_json(line, "a message of the worker")
            if self._on_message is None or not isinstance(message, dict):
                raise ProtocolError("an unexpected message from the worker")
            if self._on_message(message):
                self._on_message = None
                self._end_request()
        except ProtocolError as error:
            self._fail(broken(error, line))
        except BaseException as error:  # an exceeded limit is not an `Exception`
            self._fail(error)

    def _read_log(self) -> None:
        for _ in range(8):  # an agent that prints without end must not block the loop
            piece = self._read(self._log)
            if not piece:
                return
            if self._on_output is not None:
                self._on_output(piece)
            else:
                self._idle_output += piece
                if len(self._idle_output) > 2 * _IDLE_OUTPUT:
                    self._idle_output[:-_IDLE_OUTPUT] = b"(the beginning is left out)\n"

    def _read(self, pipe: int) -> bytes | None:
        """A piece of a pipe: None if there is no data now, and empty at the end of the pipe."""
        if pipe not in self._open:
            return None
        try:
            piece = os.read(pipe, _PIECE)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            self._drop(pipe)
        return piece

    def _drop(self, pipe: int) -> None:
        if pipe in self._open:
            self._open.remove(pipe)
            self._loop.remove_reader(pipe)
            self._loop.remove_writer(pipe)
            os.close(pipe)


class _LineBuffer:
    """Joins the pieces of one pipe to lines."""

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Add a piece, and pass on the lines that are complete. Raises `AgentError` if a line is too long."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole, self._begun, self._size = b"".join((*self._begun, line)), [], 0
            self._on_line(whole)
        self._begun.append(rest)
        self._size += len(rest)
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: answered with more than {LARGEST_OUTPUT // 1024 // 1024} MB")


def _pipe_closed() -> AgentError:
    return AgentError("agent error: broke the protocol: the worker's pipe was closed")


def _pipes(count: int) -> list[tuple[int, int]]:
    """Open pipes. Raises `OSError`, with none left open."""
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < count:
            pipes.append(os.pipe())
    except OSError:
        for pipe in itertools.chain(*pipes):
            os.close(pipe)
        raise
    return pipes
