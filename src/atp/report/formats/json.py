"""Document 4's JSON report. It appears whole, when the run is over; until then its results wait in a file."""

from typing import IO

from atp.base.json_text import encode
from atp.journal.listeners import RunEnd
from atp.report.result_object import result_object
from atp.report.run_object import (
    environment_object,
    metadata_object,
    skipped_object,
    skipped_test_object,
    summary_object,
)
from atp.report.spool import Spool
from atp.report.spooled import SpooledReport
from atp.suite.case import Case
from atp.suite.result import CaseResult


class JsonReport(SpooledReport):
    """One JSON object, with the results in the order of the files, whichever ended first."""

    format = "report.json"
    extensions = (".json",)

    def case(self, result: CaseResult) -> None:
        """A piece of `results[]`; of `skipped[]` if the test itself asked to be left out."""
        if result.status == "skipped" and self._skipped is not None:
            self._add(self._skipped, self.place(self._order, result), encode(skipped_test_object(result, self.hide)))
        else:
            super().case(result)

    def piece(self, result: CaseResult) -> bytes:
        """For `results[]`."""
        return encode(result_object(result, self.hide))

    def left_out(self, file: str | None, case: Case) -> bytes:
        """For `skipped[]`."""
        return encode(skipped_object(file, case, self.hide))

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """The object."""
        file.write(b'{\n"summary": ' + encode(summary_object(end, self.hide)))
        file.write(b',\n"environment": ' + encode(environment_object(end.info, self.hide)))
        file.write(b',\n"results": ')
        results.pour(file)
        file.write(b',\n"skipped": ')
        skipped.pour(file)
        file.write(b',\n"metadata": ' + encode(metadata_object(end, self.hide)) + b"\n}\n")
