"""Runs a process to its end with input on stdin, and ends all that it started."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from atp.agents.child import Child, Command
from atp.agents.stdio import Stdout

LINGER = 0.5
"""Seconds that pipes may stay open after the exit, because a child process holds them."""
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a process."""

    code: int
    """The exit code, or the negative number of the signal that ended the process."""
    output: bytes
    """The content of stdout."""
    left_behind: bool
    """True if child processes held the pipes open, and were ended."""


async def run_process(command: Command, stdin: bytes, on_stderr: Callable[[bytes], None]) -> Finished:
    """Run a command to its end. Whatever happens, no process of it is left afterwards.

    `on_stderr` is called with the pieces of stderr as they arrive; an error that it raises ends the process and is
    raised here. Raises `OSError` when the command can't be started.
    """
    process = _Process(command, stdin, on_stderr)
    well = False
    try:
        await process.finish()
        well = process.child.code == 0 and process.drained.done()
    finally:
        ending = asyncio.ensure_future(process.end(sweep=not well))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            process.child.kill()  # cancelled again: don't wait for an orderly end
            raise
    return Finished(process.child.code, process.output, process.left_behind)


class _Process:
    """A process and its three pipes."""

    def __init__(self, command: Command, stdin: bytes, on_stderr: Callable[[bytes], None]) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.left_behind = False
        self._error: BaseException | None = None
        self._on_stderr = on_stderr
        self._stdout = Stdout()
        self._rest = memoryview(stdin)
        self.child = Child(command, subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
        self._connect()

    @property
    def output(self) -> bytes:
        """The content of stdout so far."""
        return self._stdout.content

    async def finish(self) -> None:
        """Wait until the process has exited and its pipes are empty, or an error occurred."""
        await asyncio.wait({self.child.exited, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if self._error is None:
            await asyncio.wait({self.drained, self._failed}, timeout=LINGER, return_when=asyncio.FIRST_COMPLETED)
        if self._error is not None:
            raise self._error
        self.left_behind = not self.drained.done()
        self.child.kill()  # ends what is left of its group, before its number can be reused

    async def end(self, sweep: bool) -> None:
        """End the process and its group; with `sweep`, processes that left the group, too."""
        self._on_stderr = _ignore
        try:
            await self.child.end(sweep)
        finally:
            for pipe in list(self._open):
                self._drop(pipe)

    def _connect(self) -> None:
        popen = self.child.popen
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._open = {stream.fileno(): stream.close for stream in (popen.stdin, popen.stdout, popen.stderr)}
        for pipe in self._open:
            os.set_blocking(pipe, False)
        stdin, *self._outputs = self._open
        stdout, stderr = self._outputs
        self._loop.add_writer(stdin, self._write, stdin)
        self._loop.add_reader(stdout, self._read, stdout, self._take_output)
        self._loop.add_reader(stderr, self._read, stderr, self._take_stderr)

    def _drop(self, pipe: int) -> None:
        close = self._open.pop(pipe, None)
        if close is not None:
            self._loop.remove_reader(pipe)
            self._loop.remove_writer(pipe)
            close()

    def _write(self, pipe: int) -> None:
        try:
            written = os.write(pipe, self._rest[:_PIECE]) if self._rest else 0
        except BlockingIOError:
            return
        except OSError:  # the process reads no more
            self._drop(pipe)
            return
        self._rest = self._rest[written:]
        if not self._rest:
            self._drop(pipe)

    def _read(self, pipe: int, take: Callable[[bytes], None]) -> None:
        try:
            piece = os.read(pipe, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if piece:
            try:
                take(piece)
            except BaseException as error:  # the error of a passed limit is not an Exception
                self._error = self._error or error
                self._on_stderr = _ignore
                _set(self._failed)
            return
        self._drop(pipe)
        self._outputs.remove(pipe)
        if not self._outputs:
            _set(self.drained)

    def _take_output(self, piece: bytes) -> None:
        if self._error is None:
            self._stdout.feed(piece)

    def _take_stderr(self, piece: bytes) -> None:
        self._on_stderr(piece)  # looked up each time: `end` replaces it


def _ignore(_piece: bytes) -> None:
    """Ignore what is written after the end."""


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
