"""The index of a project: opened by the setting `history`, brought up to date from the journals."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from atp.base.diagnostics import Diagnostic, LoadError
from atp.base.errors import Error
from atp.base.project import runs_folder
from atp.history.index.rows import RunRows, read_rows
from atp.history.index.schema import (
    CASE_COLUMNS,
    RESULT_COLUMNS,
    RUN_COLUMNS,
    TOTAL_COLUMNS,
)
from atp.journal.folder import all_runs, is_running
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import NAME, RunInfo
from atp.suite.case import Case
from atp.suite.result import CaseResult

if TYPE_CHECKING:
    from atp.history.index.database import Database

DEFAULT = ".atp/history.sqlite"
"""Where the index is if the setting `history` names no other place, from the project's root."""
OFF = "off"
"""The value of the setting that leaves runs out of any index."""
URLS = ("postgresql://", "postgres://")
"""How the address of an index in PostgreSQL begins."""


class Signature(NamedTuple):
    """What a journal was like when it was read: another one means that the run went on since."""

    size: int
    """How long it is, in bytes."""
    changed: int
    """When it was last written to, in nanoseconds since 1970."""


def signature(run: Path) -> Signature | None:
    """The signature of a run's journal; None if there is none."""
    try:
        about = os.stat(run / NAME)
    except OSError:
        return None
    return Signature(about.st_size, about.st_mtime_ns)


def is_off(setting: str | None) -> bool:
    """True if the setting `history` says that there is no index."""
    return setting in ("", OFF)


class Index:
    """An index. Raises `LoadError` for one that can't be used, `IndexFailure` for one that can't be reached now."""

    def __init__(self, root: Path, setting: str | None = None) -> None:
        """`root` is the project's, `setting` a path or an address of PostgreSQL, by default that of `DEFAULT`."""
        from atp.history.index.database import Postgres, Sqlite  # sqlite3 takes a while to import

        self.root = root
        self.source = "" if setting is None else _id_of_folder(root)
        """Tells the runs of this project's folder from others in the same index. The default one has no others."""
        self._known_cases: set[int] = set()
        self.database: Database = (
            Postgres(setting)
            if setting is not None and setting.startswith(URLS)
            else Sqlite(root / (setting or DEFAULT), own=setting is None)
        )

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_error: object) -> None:
        self.database.close()

    def update(self) -> list[Diagnostic]:
        """Take in what the index lacks: runs that are new or went on. Drop those whose folders were deleted.

        A run that is under way is left for later. Returns what is wrong with journals that can't be read.
        """
        unread: list[Diagnostic] = []
        runs = all_runs(self.root)
        known = self.signatures()
        for run in reversed(runs):
            found = signature(run)
            if found is None or known.get(run.name) == found or is_running(run):
                continue
            try:
                rows = read_rows(run)
            except LoadError as error:
                unread += (one for one in error.diagnostics if one.code != "no-run")  # killed before it had begun
            else:
                self.add(run, rows, found)
        self._drop_all_but({run.name for run in runs})
        return unread

    def signatures(self) -> dict[str, Signature]:
        """The journals that the index has, by the ids of their runs."""
        return {run: Signature(*rest) for run, *rest in self.database.query("SELECT id, size, changed FROM run")}

    def add(self, run: Path, rows: RunRows, found: Signature) -> None:
        """Put a run into the index, in place of what it had of it. `found` is its journal's signature.

        Nothing is written if the journal was written to since, or if another process was faster.
        """
        database = self.database
        run_row = rows.run_row(self.source, *found)
        run_no = run_row[0]
        cases = [case for case, _ in rows.rows() if case.case_no not in self._known_cases]
        with database.writing(run_no):
            have = database.query("SELECT size, changed FROM run WHERE run_no = ?", (run_no,))
            if have == [found] or signature(run) != found:
                return
            if have:
                self._delete(run_no)
            database.insert("run", RUN_COLUMNS, [run_row])
            database.insert("total", TOTAL_COLUMNS, rows.total_rows())
            if cases:
                database.insert("test_case", CASE_COLUMNS, cases, known=True)
            database.insert("result", RESULT_COLUMNS, ((run_no, case.case_no, *one) for case, one in rows.rows()))
        self._known_cases.update(case.case_no for case in cases)

    def _delete(self, run_no: int) -> None:
        for table in ("run", "total", "result"):
            self.database.execute(f"DELETE FROM {table} WHERE run_no = ?", (run_no,))

    def _drop_all_but(self, there: set[str]) -> None:
        """Drop the runs that came from this project's folder, and are there no more."""
        for run_no, run in self.database.query("SELECT run_no, id FROM run WHERE source = ?", (self.source,)):
            if run not in there and not (runs_folder(self.root) / run / NAME).exists():
                with self.database.writing(run_no):
                    self._delete(run_no)


def _id_of_folder(root: Path) -> str:
    """The id of this folder of runs: what it does not have is dropped from an index that it shares with others.

    Not the host and the path: CI has new machines of the same name, each with an empty folder.
    """
    path = root / ".atp" / "history-id"
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(exist_ok=True)
            new.write_text(secrets.token_hex(8), "ascii")
            with suppress(FileExistsError):  # another process was faster
                os.link(new, path)
        finally:
            new.unlink(missing_ok=True)
        return path.read_text("ascii")


class IndexListener(Listener):
    """Adds a run to the index when it ends. A failure is a warning: the next `atp history` takes the run in."""

    def __init__(self, root: Path, setting: str | None) -> None:
        self.warning: str | None = None
        """Why the run is not in the index, if it is not."""
        self._root = root
        self._setting = setting
        self._rows = RunRows()

    def start(self, info: RunInfo) -> None:
        """Remember where the run came from."""
        self._try(lambda: self._rows.start(info))

    def skipped(self, file: str | None, case: Case) -> None:
        """Count a case that is left out."""
        self._try(lambda: self._rows.skipped(file, case))

    def case(self, result: CaseResult) -> None:
        """Add a case."""
        self._try(lambda: self._rows.case(result))

    def end(self, end: RunEnd) -> None:
        """Write the run into the index."""
        self._try(lambda: self._add(end))

    def _add(self, end: RunEnd) -> None:
        self._rows.end(end)
        run = Path(end.info.folder)
        if (found := signature(run)) is not None:
            with Index(self._root, self._setting) as index:
                index.add(run, self._rows, found)

    def _try(self, call: Callable[[], None]) -> None:
        if self.warning is None:
            try:
                call()
            except Exception as error:
                why = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
                self.warning = f"the run is not in the history yet ({why}); `atp history` takes it in"
