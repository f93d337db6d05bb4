"""Processes of agents: fed, heard out, and ended with all that they started.

Written on plain pipes instead of asyncio's subprocesses: those collect a process as soon as it exits, and from then on
its number may be another's. Here a process that has exited is collected only after its group was ended.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atp.agents.adapter import AgentError
from atp.agents.leftovers import OF_PROCESS, end_leftovers
from atp.agents.threads import in_thread

LARGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes that may be written to stdout."""
GRACE = 0.5
"""Seconds between the request to end and the order."""
LINGER = 0.5
"""Seconds that pipes may stay open after the exit: somebody else holds them then."""
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """What to start."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finished:
    """How it went."""

    code: int
    """The exit code; the negative number of the signal that ended it."""
    output: bytes
    """What it wrote to stdout."""
    left_behind: bool
    """It started something that held its pipes open, and that was ended."""


async def run_process(command: Command, stdin: bytes, on_stderr: Callable[[bytes], None]) -> Finished:
    """Run a command to its end. Whatever happens, nothing of it is alive afterwards.

    `on_stderr` gets what is written to stderr as it comes; what it raises ends the process and is raised from here.
    Raises `OSError` when the command can't be started.
    """
    process = _Process(command, stdin, on_stderr)
    well = False
    try:
        await process.finish()
        well = process.code == 0 and process.drained.done()
    finally:
        ending = asyncio.ensure_future(process.end(sweep=not well))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            process.kill()  # told twice: no more waiting for it to go by itself
            raise
    return Finished(process.code, process.output, process.left_behind)


class _Process:
    """A process and its three pipes."""

    def __init__(self, command: Command, stdin: bytes, on_stderr: Callable[[bytes], None]) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._failed: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self.left_behind = False
        self._error: BaseException | None = None
        self._on_stderr = on_stderr
        self._output: list[bytes] = []
        self._size = 0
        self._rest = memoryview(stdin)
        self._marker = secrets.token_hex(8)
        self._popen = subprocess.Popen(  # noqa: S603  (running the user's command is what we are for)
            command.argv,
            cwd=command.folder,
            env={**command.environment, OF_PROCESS: self._marker},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._connect()
        self._watch_exit()

    @property
    def code(self) -> int:
        """The exit code, once it is over."""
        code: int | None = self._popen.returncode
        return -signal.SIGKILL if code is None else code

    @property
    def output(self) -> bytes:
        """What it wrote to stdout."""
        return b"".join(self._output)

    async def finish(self) -> None:
        """Until it has exited and its pipes are empty, or something went wrong."""
        await asyncio.wait({self._exited, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if self._error is None:
            await asyncio.wait({self.drained, self._failed}, timeout=LINGER, return_when=asyncio.FIRST_COMPLETED)
        if self._error is not None:
            raise self._error
        self.left_behind = not self.drained.done()
        self.kill()  # only what it left of its group, before its number is free again

    async def end(self, sweep: bool) -> None:
        """End it and its group, those who left the group too if it is not sure that there are none."""
        self._on_stderr = _nobody
        try:
            if not self._exited.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait({self._exited}, timeout=GRACE)
            self._signal(signal.SIGKILL)
            await asyncio.wait({self._exited}, timeout=2.0)
            if sweep:
                await in_thread(end_leftovers, self._marker, OF_PROCESS)
        finally:
            self.kill()
            for pipe in list(self._open):
                self._drop(pipe)

    def kill(self) -> None:
        """End the group now."""
        self._signal(signal.SIGKILL)
        self._popen.poll()

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.returncode is None:  # not collected yet, so the number is still its own
            with contextlib.suppress(OSError):
                os.killpg(self._popen.pid, number)

    def _watch_exit(self) -> None:
        try:
            handle = os.pidfd_open(self._popen.pid)
        except (AttributeError, OSError):  # not Linux, or an old one
            waiting = asyncio.ensure_future(in_thread(self._popen.wait))
            waiting.add_done_callback(lambda _: _set(self._exited))
            return
        self._open[handle] = lambda: os.close(handle)

        def exited() -> None:
            self._drop(handle)
            _set(self._exited)

        self._loop.add_reader(handle, exited)

    def _connect(self) -> None:
        popen = self._popen
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
        except OSError:  # it doesn't want to hear (more)
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
            except BaseException as error:  # a limit that is passed is not an Exception
                self._error = self._error or error
                self._on_stderr = _nobody
                _set(self._failed)
            return
        self._drop(pipe)
        self._outputs.remove(pipe)
        if not self._outputs:
            _set(self.drained)

    def _take_output(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= LARGEST_OUTPUT:
            self._output.append(piece)
        elif self._error is None:
            raise AgentError(f"agent error: wrote more than {LARGEST_OUTPUT // 1024 // 1024} MB to stdout")

    def _take_stderr(self, piece: bytes) -> None:
        self._on_stderr(piece)  # looked up each time: who hears it changes


def _nobody(_piece: bytes) -> None:
    """Hears what is written after the end."""


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
