"""Document 4's events, one JSON object a line, as they happen: on stdout with `--json`, in a file with `-o x.jsonl`."""

from typing import Any

from atp.base.json_text import encode
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.reporter import Reporter
from atp.report.result_object import result_object
from atp.report.run_object import skipped_object, skipped_test_object, start_object, summary_object
from atp.report.sink import LineStream, Sink, open_stdout
from atp.suite.case import Case
from atp.suite.result import CaseResult


class Events(Reporter):
    """Sends an event for what it hears."""

    _sink: Sink | None = None

    def start(self, info: RunInfo) -> None:
        """`start`. A file is opened no earlier: a run that never starts leaves an earlier report as it was."""
        try:
            self._sink = self._open()
        except OSError as error:
            self.problem(error)
        self._send("start", start_object(info, self.hide))

    def skipped(self, file: str | None, case: Case) -> None:
        """`skipped`: no `result`, because it has none."""
        self._send("skipped", skipped_object(file, case, self.hide))

    def case(self, result: CaseResult) -> None:
        """`result`: one per agent and case; `skipped` if the test itself asked to be left out."""
        if self._sink is None:
            return
        if result.status == "skipped":
            self._send("skipped", skipped_test_object(result, self.hide))
        else:
            self._send("result", result_object(result, self.hide))

    def end(self, end: RunEnd) -> None:
        """`summary`."""
        self._send("summary", summary_object(end, self.hide))
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def _open(self) -> Sink:
        return LineStream(open_stdout())

    def _send(self, kind: str, what: dict[str, Any]) -> None:
        if self._sink is None:
            return
        try:
            # The type first, put in front of what is encoded already: a result has many keys to copy.
            self._sink.write(b'{"type":"%s",%s\n' % (kind.encode(), encode(what)[1:]))
        except OSError as error:
            self.problem(error)
            self._sink.close()
            self._sink = None
