"""Document 4's JSON report. It appears whole, when the run is over; until then its results wait in a file."""

import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from atp.report.encode import encode
from atp.report.reporter import REPORTERS, Reporter
from atp.report.result_object import result_object
from atp.report.run_object import environment_object, metadata_object, skipped_object, summary_object
from atp.report.whole_file import must_stay, whole_file
from atp.run.listener import RunEnd, RunInfo
from atp.run.plan import Trial
from atp.suite.case import Case
from atp.suite.result import CaseResult


@REPORTERS.register("report.json", ".json")
class JsonReport(Reporter):
    """One JSON object, with the results in the order of the files, whichever ended first."""

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._results: _Spool | None = None
        self._skipped: _Spool | None = None
        self._order: _Order | None = None

    def start(self, info: RunInfo) -> None:
        """Make room for the results, on the disk that the report is for."""
        try:
            folder = self.path.resolve().parent if self.path and not must_stay(self.path) else None
            self._results, self._skipped = _Spool(folder), _Spool(folder)
        except OSError as error:
            self.problem(error)
        self._order = _Order(info.agents)

    def skipped(self, file: str | None, case: Case) -> None:
        """For `skipped[]`."""
        if self._skipped is not None:
            self._add(self._skipped, len(self._skipped), encode(skipped_object(file, case, self.hide)))

    def began(self, trial: Trial) -> None:
        """Trials begin in the order of the files, so this tells it."""
        if self._order is not None:
            self._order.see(trial.source.suite.path)

    def case(self, result: CaseResult) -> None:
        """For `results[]`."""
        if self._results is not None and self._order is not None:
            place = self._order.place(result)
            self._add(self._results, place, encode(result_object(result, self.hide)))

    def end(self, end: RunEnd) -> None:
        """Write the report, unless some of it is missing."""
        results, skipped = self._results, self._skipped
        if results is None or skipped is None:
            return
        try:
            if not self.problems:
                self._write(end, results, skipped)
        except OSError as error:
            self.problem(error)
        finally:
            results.close()
            skipped.close()

    def _write(self, end: RunEnd, results: "_Spool", skipped: "_Spool") -> None:
        with whole_file(self.path) as file:
            file.write(b'{\n"summary": ' + encode(summary_object(end, self.hide)))
            file.write(b',\n"environment": ' + encode(environment_object(end.info, self.hide)))
            file.write(b',\n"results": ')
            results.pour(file)
            file.write(b',\n"skipped": ')
            skipped.pour(file)
            file.write(b',\n"metadata": ' + encode(metadata_object(end, self.hide)) + b"\n}\n")

    def _add(self, spool: "_Spool", place: int, item: bytes) -> None:
        try:
            spool.add(place, item)
        except OSError as error:
            if not self.problems:
                self.problem(error)


class _Order:
    """Where each result belongs: by file, then by its place there, then by agent; one number for all three."""

    def __init__(self, agents: Sequence[str]) -> None:
        self._files: dict[str | None, int] = {}
        self._agents = {name: number for number, name in enumerate(agents)}

    def see(self, file: str | None) -> int:
        """A file's number: they are counted as they come up."""
        return self._files.setdefault(file, len(self._files))

    def place(self, result: CaseResult) -> int:
        """The place of a result. Fits into 64 bits."""
        agent = self._agents.setdefault(result.agent, len(self._agents))
        return self.see(result.file) << 48 | min(result.index, 2**32 - 1) << 16 | min(agent, 2**16 - 1)


class _Spool:
    """Items on their way into a JSON list. In memory is only where each one is: 16 bytes."""

    def __init__(self, folder: Path | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (lives as long as the run)
        self._places = array("Q")
        self._offsets = array("Q", [0])

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: int, item: bytes) -> None:
        """Keep an item until the end."""
        self._file.write(item)
        self._places.append(place)
        self._offsets.append(self._offsets[-1] + len(item))

    def pour(self, into: IO[bytes]) -> None:
        """Write the list, a line an item, each in its place."""
        self._file.flush()
        between = b"[\n"
        for number in sorted(range(len(self)), key=self._places.__getitem__):
            into.write(between)
            self._file.seek(self._offsets[number])
            into.write(self._file.read(self._offsets[number + 1] - self._offsets[number]))
            between = b",\n"
        into.write(b"\n]" if len(self) else b"[]")

    def close(self) -> None:
        """The items are gone with it."""
        self._file.close()
