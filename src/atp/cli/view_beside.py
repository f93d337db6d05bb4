"""Starts `atp view` beside a run, in a process that no agent can block or end by ending the run's."""

import os
import select
import subprocess
import sys

import click

from atp.agents.leftovers import OF_RUN
from atp.base.errors import Error
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo

IDLE = 600
"""Seconds that the view stays after the last page was closed."""
_LONGEST_START = 60.0


class ViewBeside(Listener):
    """Starts the view when the run starts, and says at the end that it stays."""

    def __init__(self, *, opens: bool) -> None:
        """`opens`: open the page in the browser."""
        self._opens = opens
        self._address = ""
        self._pid = 0

    def start(self, info: RunInfo) -> None:
        """Start the view and print its address. Raises `Error` if it does not start."""
        command = [sys.executable, "-m", "atp", "view", info.folder, "--idle", str(IDLE)]
        # Without the run's mark, or it would be ended as a process that an agent has left.
        env = {name: value for name, value in os.environ.items() if name != OF_RUN}
        view = subprocess.Popen(  # noqa: S603
            [*command, *(["--open"] if self._opens else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,  # Ctrl-C is for the run
        )
        assert view.stdout is not None
        with view.stdout as out:
            ready, _, _ = select.select([out], [], [], _LONGEST_START)
            self._address = out.readline().decode(errors="replace").strip() if ready else ""
        if not self._address:
            view.kill()
            view.wait()
            raise Error("atp view did not start; try it by itself")
        self._pid = view.pid
        view.returncode = 0  # it is meant to outlive this process: nobody waits for it
        click.echo(f"View: {self._address}", err=True)

    def end(self, end: RunEnd) -> None:
        """Say how long the view stays."""
        if self._pid:
            minutes = IDLE // 60
            stays = f"it ends {minutes} minutes after its last page was closed, or with: kill {self._pid}"
            click.echo(f"View: {self._address}\n      {stays}", err=True)
