"""The JSON report of the JSONL test package. The file appears whole when the run ends."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.files import Spool
from atp.report.records.case import ResultRecord, SkippedRecord
from atp.report.records.figures import GateRecord, GroupsRecord, run_metrics
from atp.report.records.judges import JudgeRecord
from atp.report.records.report import FORMAT
from atp.report.records.run import MetadataRecord, SummaryRecord, environment
from atp.report.reporter import SpooledReport
from atp.report.side_by_side import SideBySide
from atp.stats.group_figures import run_groups
from atp.suite.case import Case
from atp.suite.result import CaseResult


class JsonReport(SpooledReport):
    """One JSON object, `records.report.Report`, with the results in the order of the files, whichever ended first."""

    format = "report.json"
    extensions = (".json",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._grid = SideBySide(self.hide)

    def start(self, info: RunInfo) -> None:
        """Open the temporary files, and look at how many agents there are."""
        super().start(info)
        self._grid.start(info)

    def case(self, result: CaseResult) -> None:
        """Add to `results[]`; to `skipped[]` if the test itself asked to be left out."""
        self._grid.case(result)
        if result.status == "skipped" and self._skipped is not None:
            skipped = SkippedRecord.of_result(result)
            self._add(self._skipped, self.place(self._order, result), self.masked_json(skipped))
        else:
            super().case(result)

    def case_part(self, result: CaseResult) -> bytes:
        """An item of `results[]`."""
        return self.masked_json(ResultRecord.of(result))

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """An item of `skipped[]`."""
        return self.masked_json(SkippedRecord.of(file, case))

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write the object key by key: the results may not fit into memory."""
        file.write(b'{\n"format": %d' % FORMAT)
        file.write(b',\n"summary": ' + self.masked_json(SummaryRecord.of(end)))
        file.write(b',\n"environment": ' + self.masked_json(environment(end.info)))
        file.write(b',\n"results": ')
        results.write_list(file)
        file.write(b',\n"skipped": ')
        skipped.write_list(file)
        gates = list(map(GateRecord.of, end.gates))
        parts = {"gates": gates, "metrics": run_metrics(end), "groups": GroupsRecord.of(end)}
        for name, part in parts.items():
            file.write(b',\n"%s": ' % name.encode() + self.masked_json(part))
        if end.judges:
            file.write(b',\n"judges": ' + self.masked_json(list(map(JudgeRecord.of, end.judges))))
        if end.comparison is not None:
            file.write(b',\n"comparison": ' + self.masked_json(end.comparison.shortened()))
        if self._grid.is_needed:
            file.write(b',\n"grid": ' + self.masked_json(self._grid.record(run_groups(end.numbers).agents)))
        file.write(b',\n"metadata": ' + self.masked_json(MetadataRecord.of(end)) + b"\n}\n")
