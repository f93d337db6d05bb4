"""The runs of a folder: a list of them that is cheap to make again, and those that are open."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

from atp.base.diagnostics import LoadError
from atp.base.errors import Error
from atp.base.secrets import Hide
from atp.journal.find import run_at
from atp.journal.folder import is_running, runs_in
from atp.journal.follow import Signature
from atp.journal.read import bounds
from atp.view.served_run import ServedRun, about_finished

MOST_ROWS = 120_000
"""Rows of open runs that are kept in memory. The run that was opened last stays whatever it has."""


class NoRun(Error):
    """There is no run of this id."""


class Runs:
    """The runs of one folder."""

    def __init__(self, folder: Path, hide: Hide) -> None:
        self.folder = folder
        self.hide = hide
        self._open: OrderedDict[str, ServedRun] = OrderedDict()
        self._about: dict[str, tuple[Signature, dict[str, Any]]] = {}

    def folders(self) -> list[Path]:
        """The runs' folders, newest first."""
        try:
            return runs_in(self.folder)
        except LoadError:
            return []

    def folder_of(self, ident: str) -> Path:
        """The folder of a run. Raises `NoRun`: an id is a name in the folder of runs, and never a path."""
        found = self.folder / ident
        if found.name != ident or found.parent != self.folder or run_at(found) is None:
            raise NoRun(ident)
        return found

    def open(self, ident: str) -> ServedRun:
        """A run, to be read on. Raises `NoRun` and `LoadError`."""
        folder = self.folder_of(ident)
        run = self._open.get(ident)
        if run is None:
            run = self._open[ident] = ServedRun(folder, self.hide)
        self._open.move_to_end(ident)
        rows = 0
        for other in reversed(list(self._open)):
            rows += len(self._open[other].rows)
            if rows > MOST_ROWS and other != ident:
                del self._open[other]
        return run

    def listed(self) -> list[dict[str, Any]]:
        """What the list says of each run, newest first. Runs that can't be read say so in `reason`."""
        found = []
        for folder in self.folders():
            try:
                about = self._about_run(folder)
            except (LoadError, OSError, NoRun) as error:
                about = _unreadable(folder.name, str(error))
            if about is not None:
                found.append(about)
        return found

    def _about_run(self, folder: Path) -> dict[str, Any] | None:
        """What is known of a run; None if it has not begun. A run that runs is read on for a moment."""
        if is_running(folder):
            self._about.pop(folder.name, None)
            if not Signature.of(folder).size:
                return None
            run = self.open(folder.name)
            run.read(0.02)
            return run.about()
        signature = Signature.of(folder)
        known = self._about.get(folder.name)
        if known is not None and known[0] == signature:
            return known[1]
        if not signature.size:
            return None
        start, summary = bounds(folder)
        if start is None:
            return None
        if summary is not None:
            start.folder = str(folder)
            about = about_finished(start, summary, folder.name, self.hide)
        else:  # it was killed: only its lines tell what it came to
            run = ServedRun(folder, self.hide)
            while run.read(1.0):
                pass
            about = run.about()
        self._about[folder.name] = signature, about
        return about


def _unreadable(name: str, why: str) -> dict[str, Any]:
    counts = dict.fromkeys(("finished", "total", "passed", "failed", "errors", "other", "skipped"), 0)
    return {"id": name, "state": "stopped", **counts, "started_at": None, "commit": None, "reason": why}
