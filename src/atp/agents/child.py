"""A child process in a process group of its own, which is ended with all that it started.

Written on plain `Popen`, not on asyncio's subprocesses: those collect a process as soon as it exits, and from then on
its number may be another's. Here a process that has exited is collected only after its group was ended.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from atp.agents.adapter import AdapterContext
from atp.agents.leftovers import OF_PROCESS, OF_RUN, end_leftovers
from atp.usercode.threads import in_thread

GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL."""
PASSED_ON = ("PATH", "HOME", "LANG", "TERM")
"""The environment variables that commands and MCP servers get of ATP's own."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its working directory and environment."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


def child_environment(
    context: AdapterContext, own: Mapping[str, str] = MappingProxyType({}), *, everything: bool = False
) -> dict[str, str]:
    """Return `PASSED_ON` of ATP's environment (or `everything`), the agent's `own` variables, and the run's marker."""
    around = context.environment
    environment = dict(around) if everything else {name: around[name] for name in PASSED_ON if name in around}
    environment.update(own)
    if context.marker:
        environment[OF_RUN] = context.marker
    return environment


def ending(code: int) -> str:
    """Return how a process ended, by its exit code or the negative number of a signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"ended by signal {-code}"


class Child:
    """A process. The owner reads and writes its pipes."""

    def __init__(self, command: Command, stdin: int, stdout: int, stderr: int, hand_on: Sequence[int] = ()) -> None:
        """Start the process. `hand_on` are further file descriptors that it inherits. Raises `OSError`."""
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        """Done once the process has exited."""
        self._marker = secrets.token_hex(8)
        self._handle: int | None = None
        self.popen = subprocess.Popen(  # noqa: S603  (running the user's command is the purpose)
            command.argv,
            cwd=command.folder,
            env={**command.environment, OF_PROCESS: self._marker},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            bufsize=0,
            pass_fds=hand_on,
            start_new_session=True,
        )
        self._watch_exit()

    @property
    def code(self) -> int:
        """The exit code after the exit, or the negative number of the signal that ended the process."""
        code: int | None = self.popen.returncode
        return -signal.SIGKILL if code is None else code

    async def end(self, sweep: bool, grace: float = GRACE) -> None:
        """End the process and its group; with `sweep`, processes that left the group, too."""
        try:
            if not self.exited.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait({self.exited}, timeout=grace)
            self._signal(signal.SIGKILL)
            await asyncio.wait({self.exited}, timeout=2.0)
            if sweep:
                await in_thread(end_leftovers, self._marker, OF_PROCESS)
        finally:
            self.kill()
            self._drop_handle()

    def kill(self) -> None:
        """Kill the group, and collect the process if it has exited."""
        self._signal(signal.SIGKILL)
        self.popen.poll()

    def _signal(self, number: signal.Signals) -> None:
        if self.popen.returncode is None:  # not collected yet, so no other process has its number
            with contextlib.suppress(OSError):
                os.killpg(self.popen.pid, number)

    def _watch_exit(self) -> None:
        try:
            self._handle = os.pidfd_open(self.popen.pid)
        except (AttributeError, OSError):  # not Linux, or an old kernel
            waiting = asyncio.ensure_future(in_thread(self.popen.wait))
            waiting.add_done_callback(lambda _: self._set_exited())
            return
        self._loop.add_reader(self._handle, self._set_exited)

    def _set_exited(self) -> None:
        self._drop_handle()
        if not self.exited.done():
            self.exited.set_result(None)

    def _drop_handle(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._loop.remove_reader(handle)
            os.close(handle)
