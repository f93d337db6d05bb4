"""What the reports have in common that appear whole, when the run is over, with results in the order of the files."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.reporter import Reporter
from atp.report.spool import Order, Spool
from atp.report.whole_file import must_stay, whole_file
from atp.suite.case import Case
from atp.suite.result import CaseResult


class SpooledReport(Reporter, ABC):
    """Keeps a piece of the report for each case, and puts them together at the end."""

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._results: Spool | None = None
        self._skipped: Spool | None = None
        self._order = Order(())

    def start(self, info: RunInfo) -> None:
        """Make room for the pieces, on the disk that the report is for."""
        try:
            folder = self.path.resolve().parent if self.path and not must_stay(self.path) else None
            self._results, self._skipped = Spool(folder), Spool(folder)
        except OSError as error:
            self.problem(error)
        self._order = Order(info.agents, info.files)

    def skipped(self, file: str | None, case: Case) -> None:
        """A piece for a case that is left out."""
        if self._skipped is not None:
            self._add(self._skipped, self._order.see(file), self.left_out(file, case))

    def case(self, result: CaseResult) -> None:
        """A piece for a case that ended."""
        if self._results is not None:
            self._add(self._results, self.place(self._order, result), self.piece(result))

    def end(self, end: RunEnd) -> None:
        """Write the report, unless some of it is missing."""
        results, skipped = self._results, self._skipped
        if results is None or skipped is None:
            return
        try:
            if not self.problems:
                with whole_file(self.path) as file:
                    self.write(file, end, results, skipped)
        except OSError as error:
            self.problem(error)
        finally:
            results.close()
            skipped.close()

    def place(self, order: Order, result: CaseResult) -> int:
        """Where a result belongs."""
        return order.place(result)

    @abstractmethod
    def piece(self, result: CaseResult) -> bytes:
        """What is said of a case."""

    @abstractmethod
    def left_out(self, file: str | None, case: Case) -> bytes:
        """What is said of a case that is left out."""

    @abstractmethod
    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Put the report together."""

    def _add(self, spool: Spool, place: int, item: bytes) -> None:
        try:
            spool.add(place, item)
        except OSError as error:
            if not self.problems:
                self.problem(error)
