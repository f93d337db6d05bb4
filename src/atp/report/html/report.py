"""The HTML report: one file that a browser opens from the disk, with everything in it.

The page's script shows a table from one block of rows, and unpacks the details of a trial when the reader opens it. The
reporter keeps nothing of a case in memory: rows and details wait in temporary files until the run ends.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from atp.base.json.text import encode
from atp.base.text import one_line
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.facts import reason
from atp.report.files import Spool, spool_folder
from atp.report.html.detail import case_object, longest_text, trial_object
from atp.report.html.pack import Chunks, Packed
from atp.report.html.page import page_parts, run_object
from atp.report.html.rows import case_row, skipped_row
from atp.report.reporter import SpooledReport
from atp.report.side_by_side import SideBySide
from atp.suite.case import Case
from atp.suite.result import CaseResult

MOST_LISTED = 20
"""How many failures the page lists for a reader without JavaScript."""


class HtmlReport(SpooledReport):
    """A page that needs no network and no other file."""

    format = "report.html"
    extensions = (".html", ".htm")

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._info: RunInfo | None = None
        self._details: Chunks | None = None
        self._listed: list[tuple[str, str]] = []
        self._grid = SideBySide(self.hide)

    def start(self, info: RunInfo) -> None:
        """Open the temporary files."""
        super().start(info)
        self._info = info
        self._grid.start(info)
        try:
            self._details = Chunks(spool_folder(self.target))
        except OSError as error:
            self.problem(error)

    def case(self, result: CaseResult) -> None:
        """Add the row and the details of a case that ended."""
        if self.problems:  # nothing will be written any more
            return
        try:
            super().case(result)
        except OSError as error:
            self.problem(error)
        self._grid.case(result)
        if result.status not in ("passed", "skipped") and len(self._listed) < MOST_LISTED:
            self._listed.append((one_line(self.hide(result.case), 120), one_line(self.hide(reason(result)))))

    def end(self, end: RunEnd) -> None:
        """Write the report, unless a part could not be kept."""
        super().end(end)
        if self._details is not None:
            self._details.close()

    def case_part(self, result: CaseResult) -> bytes:
        """The row of a case, with the places of its details in the chunks."""
        details, info = self._details, self._info
        assert details is not None
        assert info is not None
        longest = longest_text(details.size, result.status == "passed")
        spot = details.add(encode(case_object(result, info, self.hide, longest)))
        folder = Path(info.folder)
        trials = (trial_object(one, result, self.hide, longest, folder) for one in result.trials)
        spots = [details.add(encode(one)) for one in trials]
        return encode(case_row(result, self.hide, spot, spots))

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """The row of a case that did not run."""
        return encode(skipped_row(file, case, self.hide))

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write the page. Its script stands before the details, so that the table appears before they are read."""
        head, tail = page_parts(end, self._listed, self.hide)
        file.write(head)
        with Packed(file, "run") as pack:
            pack.write(encode(run_object(end, self.hide, self._grid.sentences())))
        for name, rows in (("rows", results), ("skipped", skipped)):
            with Packed(file, name) as pack:
                rows.write_list(pack)
        file.write(tail)
        if self._details is not None:
            self._details.copy_to(file)
        file.write(b"</body>\n</html>\n")
