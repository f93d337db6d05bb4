"""A worker's process: lines of JSON go to it and come from it, and what it prints is kept.

What it tells while it is at work comes on a pipe of its own, which is looked into now and then. It waits there safely,
even if the process is gone. The end of a request comes on another pipe, and is heard at once.
"""

import asyncio
import itertools
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

from atp.agents.adapter import AgentError
from atp.agents.child import Child, Command
from atp.agents.stdio import LARGEST_OUTPUT
from atp.agents.wire import ProtocolError, broken, read_json, write_json

LAST_SECONDS = 1.0
"""How long a worker that isn't needed any more may take to end."""
_MOMENT = 0.5
"""Seconds in which it is known why a pipe was closed."""
_PIECE = 256 * 1024
_LULL = 0.02
"""Seconds in which nobody listens after something was heard: to wake up for each word costs more than to read it."""
_BREATH = 0.001
"""The same after a flood: one that tells much would wait for room in the pipe."""
_FLOOD = 16 * 1024
"""Bytes at once that are a flood."""
_EARLY = 64 * 1024
"""So much of what is printed while no turn is under way is kept."""

Take = Callable[[dict[str, Any]], bool]
"""Is given what the worker says; true when that was the last of it."""
Hear = Callable[[bytes], None]


class WorkerDied(Exception):
    """The process has ended while something was asked of it."""


class WorkerProcess:
    """A process that answers one request at a time."""

    def __init__(self, command: Command) -> None:
        """Start it. Raises `OSError`."""
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] | None = None
        self._error: BaseException | None = None
        self._take: Take | None = None
        self._hear: Hear | None = None
        self._early = bytearray()
        self._rest = memoryview(b"")
        self._lull = _LULL
        self._listening: asyncio.TimerHandle | None = None
        """The timer after which what is told is listened to; none while it is."""
        (theirs, self._requests), (self._told, told), (self._replies, replies), (self._log, log) = _pipes(4)
        self._lines = {self._told: _WholeLines(self._said), self._replies: _WholeLines(self._said)}
        self._open = {self._requests, self._told, self._replies, self._log}
        hand_on = (theirs, told, replies)
        try:
            started = Command((*command.argv, *map(str, hand_on)), command.folder, command.environment)
            self._child = Child(started, subprocess.DEVNULL, log, log, hand_on)
        except BaseException:
            for pipe in self._open:
                os.close(pipe)
            raise
        finally:
            for pipe in (*hand_on, log):
                os.close(pipe)
        for pipe in self._open:
            os.set_blocking(pipe, False)
        self._loop.add_reader(self._replies, self._read_replies)
        self._loop.add_reader(self._log, self._read_log)
        self._child.exited.add_done_callback(self._exited)

    @property
    def over(self) -> bool:
        """Nothing can be asked of it any more."""
        return self._child.exited.done() or self._error is not None or self._replies not in self._open

    @property
    def how(self) -> str:
        """How it ended."""
        if self._error is not None:
            return str(self._error).removeprefix("agent error: ")
        if not self._child.exited.done():
            return "it closed its pipe"
        code = self._child.code
        if code >= 0:
            return f"exit code {code}"
        return f"ended by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"

    def printed(self) -> bytes:
        """What it printed while nothing was asked of it, since this was called last."""
        early, self._early = bytes(self._early), bytearray()
        return early

    async def ask(self, request: dict[str, Any], take: Take, hear: Hear | None = None) -> None:
        """Send a request, and hand over what comes. Raises `WorkerDied`, and whatever `take` or `hear` raises."""
        data = write_json(request) + b"\n"
        self._over = self._loop.create_future()
        self._take, self._hear = take, hear
        if self.over:
            self._end_request()
        self._send(data)
        self._listen_later()
        try:
            await self._over
            self._read_log()  # what was printed before the last word is there
            answered = self._take is None
        except asyncio.CancelledError:
            self._read_told()  # what it did before it was stopped
            raise
        finally:
            self._over = self._take = self._hear = None
            self._stop_listening()
        if self._error is not None:
            raise self._error
        if answered:
            return
        if self._child.exited.done():
            self._child.kill()  # what it left of its group, before its number is free again
            raise WorkerDied(self.how)
        raise _closed()

    async def settle(self) -> None:
        """Wait until it is known how it ended, once it is over."""
        if not self._child.exited.done():
            await asyncio.wait({self._child.exited}, timeout=_MOMENT)

    async def close(self) -> None:
        """Let it end by itself, if it does so soon."""
        self._drop(self._requests)
        await asyncio.wait({self._child.exited}, timeout=LAST_SECONDS)
        await self.end()

    def kill(self) -> None:
        """End it now. `end` is still to be called."""
        self._child.kill()

    async def end(self) -> None:
        """End it, and all that it started."""
        try:
            await self._child.end(sweep=True, grace=0.0)
        finally:
            for pipe in list(self._open):
                self._drop(pipe)

    def _exited(self, _: object) -> None:
        self._read_replies()
        self._read_log()
        self._end_request()

    def _end_request(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._end_request()

    def _send(self, data: bytes) -> None:
        self._rest = memoryview(data)
        self._write()

    def _write(self) -> None:
        try:
            while self._rest and self._requests in self._open:
                self._rest = self._rest[os.write(self._requests, self._rest[:_PIECE]) :]
        except BlockingIOError:
            self._loop.add_writer(self._requests, self._write)
            return
        except OSError:  # it is gone, and that will be heard
            self._rest = memoryview(b"")
        self._loop.remove_writer(self._requests)

    def _listen_later(self) -> None:
        self._listening = self._loop.call_later(self._lull, self._listen)

    def _listen(self) -> None:
        self._listening = None
        if self._told in self._open:
            self._loop.add_reader(self._told, self._hear_told)

    def _hear_told(self) -> None:
        if self._take_in(self._told) >= _FLOOD:
            self._lull = _BREATH
            return
        self._stop_listening()
        self._listen_later()
        self._lull = min(2 * self._lull, _LULL)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        elif self._told in self._open:
            self._loop.remove_reader(self._told)

    def _read_told(self) -> None:
        """Take in what there is: how much a pipe holds depends on the machine, but it is never as much as this."""
        for _ in range(64):  # one that is being stopped may still tell without end
            if self._take_in(self._told) < _PIECE:
                return

    def _read_replies(self) -> None:
        self._read_told()  # which was said before
        self._take_in(self._replies)
        if self._replies not in self._open and not self._child.exited.done():
            self._loop.call_later(_MOMENT, self._closed)  # it is about to exit, or the agent has meddled

    def _take_in(self, pipe: int) -> int:
        """Take in a piece: how large it is."""
        piece = self._read(pipe)
        if not piece:
            return 0
        try:
            self._lines[pipe].feed(piece)
        except AgentError as error:
            self._fail(error)
            self._drop(pipe)
        return len(piece)

    def _closed(self) -> None:
        if not self._child.exited.done():
            self._fail(_closed())

    def _said(self, line: bytes) -> None:
        if self._error is not None:
            return
        try:
            message = read_json(line, "a message of the worker")
            if self._take is None or not isinstance(message, dict):
                raise ProtocolError("the worker said something that nobody asked for")
            if self._take(message):
                self._take = None
                self._end_request()
        except ProtocolError as breach:
            self._fail(broken(breach, line))
        except BaseException as error:  # a limit that is passed is not an Exception
            self._fail(error)

    def _read_log(self) -> None:
        for _ in range(8):  # one that prints without end must not keep us here
            piece = self._read(self._log)
            if not piece:
                return
            if self._hear is not None:
                self._hear(piece)
            else:
                self._early += piece
                if len(self._early) > 2 * _EARLY:
                    self._early[:-_EARLY] = b"(the beginning is left out)\n"

    def _read(self, pipe: int) -> bytes | None:
        """A piece; nothing if there is none now, and an empty one at the end."""
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


class _WholeLines:
    """Puts the pieces of one pipe together."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take a piece in, and hand over the lines that it ends. Raises `AgentError` when one is too long."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            whole, self._begun, self._size = b"".join((*self._begun, line)), [], 0
            self._take(whole)
        self._begun.append(rest)
        self._size += len(rest)
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: answered with more than {LARGEST_OUTPUT // 1024 // 1024} MB")


def _closed() -> AgentError:
    return AgentError("agent error: broke the protocol: the worker's pipe was closed")


def _pipes(count: int) -> list[tuple[int, int]]:
    """All of them or none. Raises `OSError`."""
    made: list[tuple[int, int]] = []
    try:
        while len(made) < count:
            made.append(os.pipe())
    except OSError:
        for pipe in itertools.chain(*made):
            os.close(pipe)
        raise
    return made
