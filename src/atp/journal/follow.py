"""Follows a run while it runs: repeats what its journal has by now for a listener, and goes on as the journal grows.

Only the journal and the run's lock are read, so the run does not notice.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from atp.base.project import unreadable
from atp.journal.folder import is_running
from atp.journal.listeners import Listener, RunEnd
from atp.journal.read import decode_line
from atp.journal.recorded_run import ReadTrial, RecordedRun, Repetition
from atp.journal.records import NAME, RunInfo

State = Literal["running", "finished", "stopped"]
AT_ONCE = 1 << 18
"""Bytes of a journal that are read at once."""


class Signature(NamedTuple):
    """Tells whether a journal is another file than before, or has other content."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, run: Path) -> "Signature":
        """The signature of a run's journal by now. Raises `OSError`."""
        about = os.stat(run / NAME)
        return cls(about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)


class FollowedRun:
    """A run whose journal may grow.

    A run that goes on after a stop, or whose journal was replaced, is repeated from its beginning for a new listener.
    """

    def __init__(self, run: Path, listener: Callable[["FollowedRun"], Listener]) -> None:
        """`listener` makes one for each beginning. Raises `LoadError` if the journal has no run."""
        self.folder = run
        self._journal = run / NAME
        self.generation = 0
        """How often the run was begun to be repeated."""
        self.progress = 0
        """Trials that were read since then."""
        self._listener = listener
        self._begin()

    def _begin(self) -> None:
        try:
            self._file = self._identity()
        except OSError as error:
            raise unreadable(self._journal, error) from error
        self.recorded = RecordedRun(self.folder)
        """The run, as of its last beginning."""
        self.generation += 1
        self.progress = 0
        self.state: State = "running"
        """Whether the run runs, ended as it should, or was stopped."""
        self._has_rest = False
        self._offset = self.recorded.begin
        self.repetition = Repetition(self.recorded, self._listener(self))
        """What was repeated since then."""

    def _identity(self) -> tuple[int, int]:
        return Signature.of(self.folder)[:2]

    @property
    def offset(self) -> int:
        """Up to where the journal was read."""
        return self._offset

    def end(self) -> RunEnd:
        """The end of the run as far as it was read."""
        return self.repetition.end(running=self.state == "running")

    def read(self, seconds: float, on_trial: Callable[[ReadTrial], None] = lambda _: None) -> bool:
        """Read on for at most so many seconds. Returns whether there is more to read. Raises `LoadError`.

        A last line without its end is left for later: it is being written, or was torn when the run was killed.
        """
        until = time.monotonic() + seconds
        try:
            # Looked at before the journal: what a run wrote before its lock was seen free is then read.
            running = is_running(self.folder)
            if self._is_replaced():
                self._begin()
            while time.monotonic() < until:
                if not self._take_in(self._next_lines(), until, on_trial):
                    self._settle(running)
                    return False
        except OSError as error:
            raise unreadable(self._journal, error) from error
        return True

    def _is_replaced(self) -> bool:
        about = Signature.of(self.folder)
        return about[:2] != self._file or about.size < self._offset

    def _next_lines(self) -> list[bytes]:
        """The next whole lines, without their ends."""
        with self._journal.open("rb") as file:
            file.seek(self._offset)
            data = file.read(AT_ONCE)
            if b"\n" not in data:
                data += file.readline()
        return data.split(b"\n")[:-1]

    def _take_in(self, lines: list[bytes], until: float, on_trial: Callable[[ReadTrial], None]) -> bool:
        """Take in lines until the time is up. Returns whether there may be more."""
        for raw in lines:
            offset = self._offset
            self._offset += len(raw) + 1
            line = decode_line(raw, self._journal)
            if line is None:
                self.repetition.damaged.append(offset)
            elif isinstance(line, RunInfo):
                if offset != self.recorded.begin:
                    self._begin()  # the run goes on
                    return True
            elif (trial := self.repetition.add(offset, line)) is not None:
                self.progress += 1
                on_trial(trial)
            if time.monotonic() > until:
                break
        return bool(lines)

    def _settle(self, running: bool) -> None:
        """Note the state of the run when all of its journal was read."""
        summary = self.repetition.summary
        if running and summary is None:
            self.state = "running"
            return
        if not self._has_rest:  # a summary may come without all trials, after a stop
            self._has_rest = True
            self.repetition.add_rest()
        self.state = "finished" if summary is not None and summary.complete else "stopped"
