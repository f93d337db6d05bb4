"""The JSONL report: an event a line, as it happens: on stdout with `--json`, in a file with `-o x.jsonl`."""

from collections.abc import Sequence
from pathlib import Path

from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.files import LineFile, LineStream, Sink, open_stdout
from atp.report.records.report import Event, ResultEvent, SkippedEvent, StartEvent, SummaryEvent
from atp.report.reporter import Reporter
from atp.suite.case import Case
from atp.suite.result import CaseResult


class JsonlReport(Reporter):
    """Writes each event at once, so that a run that is killed leaves what happened so far."""

    format = "report.jsonl"
    extensions = (".jsonl",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = (), *, fresh: bool = False) -> None:
        """With `fresh` an existing file is left alone, and the name gets a number."""
        super().__init__(path, secrets)
        self._fresh = fresh
        self._sink: Sink | None = None

    def start(self, info: RunInfo) -> None:
        """Send `start`. A file is opened no earlier: a run that never starts leaves an earlier report as it was."""
        try:
            self._sink = self._open()
        except OSError as error:
            self.problem(error)
        self._send(StartEvent.of(info))

    def skipped(self, file: str | None, case: Case) -> None:
        """Send `skipped`."""
        if self._sink is not None:
            self._send(SkippedEvent.of(file, case))

    def case(self, result: CaseResult) -> None:
        """Send `result`, one per agent and case; `skipped` if the test itself asked to be left out."""
        if self._sink is None:
            return
        if result.status == "skipped":
            self._send(SkippedEvent.of_result(result))
        else:
            self._send(ResultEvent.of(result))

    def end(self, end: RunEnd) -> None:
        """Send `summary`."""
        self._send(SummaryEvent.of(end))
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _open(self) -> Sink:
        if self.path is None or self.target is None:
            return LineStream(open_stdout())
        if not self._fresh:
            return LineFile(self.target)
        stem, number = self.path.stem, 1
        while True:
            try:
                return LineFile(self.target, fresh=True)
            except FileExistsError:
                number += 1
                self.path = self.path.with_stem(f"{stem}-{number}")

    def _send(self, event: Event) -> None:
        if self._sink is None:
            return
        try:
            self._sink.write(self.masked_json(event) + b"\n")
        except OSError as error:
            self.problem(error)
            self._sink.close()
            self._sink = None
