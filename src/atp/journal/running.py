"""Keeps a file in a run's folder that names the trials that are running: the journal has only those that ended."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import msgspec

from atp.base.errors import Error
from atp.base.files import in_place_of, open_untrusted
from atp.base.json.text import UNREADABLE
from atp.base.secrets import current_secrets
from atp.base.text import cut
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.suite.result import TrialRef, TrialResult

FILE = "running.json"
EVERY = 0.5
"""Seconds between two writings, at least: a run of very short trials is not slowed."""
MOST = 100
"""The most trials that the file names."""
_LARGEST = 200_000
_LONGEST = 200


class RunningTrial(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A trial that has begun and not ended."""

    case: str
    """The case's id."""
    agent: str
    """The agent's name."""
    variation: int = 0
    """The variation of the prompt, from 0."""
    run: int = 1
    """The repeat, from 1."""
    since: float = 0.0
    """Seconds since 1970."""


class RunningTrials(Listener):
    """Writes the file while the run runs, and removes it at the end."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._running: dict[str, tuple[TrialRef, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def start(self, info: RunInfo) -> None:
        """Note the run's folder."""
        self._path = Path(info.folder) / FILE

    def began(self, trial: TrialRef) -> None:
        """Add a trial, and have the file written soon."""
        self._running[trial.key] = trial, time.time()
        self._write_soon()

    def ended(self, trial: TrialRef, result: TrialResult) -> None:
        """Remove a trial."""
        self._running.pop(trial.key, None)
        self._write_soon()

    def end(self, end: RunEnd) -> None:
        """Remove the file."""
        if self._timer is not None:
            self._timer.cancel()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._path = None

    def _write_soon(self) -> None:
        if self._timer is None and self._path is not None:
            self._timer = asyncio.get_running_loop().call_later(EVERY, self._write)

    def _write(self) -> None:
        self._timer = None
        if self._path is None:
            return
        hide = current_secrets().mask_text
        shown = [
            RunningTrial(
                case=cut(hide(trial.case.id), _LONGEST),
                agent=cut(hide(trial.agent), _LONGEST),
                variation=trial.variation,
                run=trial.run,
                since=since,
            )
            for trial, since in list(self._running.values())[:MOST]
        ]
        # What is running is nice to know. A run must not end because the disk is full for it.
        with contextlib.suppress(OSError, Error), in_place_of(self._path) as file:
            file.write(msgspec.json.encode(shown))


def running_trials(run: Path) -> list[RunningTrial]:
    """The trials that run, as of a moment ago; none if that can't be known."""
    with contextlib.suppress(OSError, *UNREADABLE):
        path = run / FILE
        if os.stat(path).st_size <= _LARGEST:
            with open_untrusted(path) as file:
                return msgspec.json.decode(file.read(_LARGEST), type=list[RunningTrial])
    return []
