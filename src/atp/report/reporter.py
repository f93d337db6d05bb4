"""The base classes of reporters, and the registry of all reporters.

A reporter is a listener that writes a report, to a file or to stdout. A plugin's reporters are found by the
entry points in the group `atp.reporters`.
"""

import errno
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

from atp.base.json.text import encode
from atp.base.project import working_directory
from atp.base.registry import Registry
from atp.base.secrets import hider, secrets_of
from atp.journal.listeners import Listener, RunEnd
from atp.journal.records import RunInfo
from atp.report.files import Order, Spool, spool_folder, whole_file
from atp.suite.case import Case
from atp.suite.result import CaseResult


class Reporter(Listener):
    """Writes a report. What could not be written goes to `problems`; a reporter never ends the run."""

    format: ClassVar[str]
    """The name that `-r` takes: `report.json`."""
    extensions: ClassVar[tuple[str, ...]] = ()
    """The extensions of the files that get this report: `.json`."""

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        self.path = path
        """The file to write, as the user named it; stdout if there is none."""
        self._working_directory = working_directory()
        self._secrets = secrets_of(secrets)
        self.hide = hider(self._secrets)
        """Masks secrets. Every text in a report goes through this function."""
        self._problems: list[str] = []

    @property
    def problems(self) -> Sequence[str]:
        """What could not be written."""
        return self._problems

    @property
    def target(self) -> Path | None:
        """The file to write, wherever the process is by now: the user's code may change the working directory."""
        return None if self.path is None else self._working_directory / self.path

    def masked_json(self, record: Any) -> bytes:
        """A record as one line of JSON without secrets. Searching the line is much faster than walking the record."""
        data = encode(record)
        return encode(self._secrets.mask(record, numbers=False)) if self._secrets.may_be_in(data) else data

    def problem(self, error: OSError) -> None:
        """Note that the report could not be written. A reader of stdout that ended (`| head`) is no problem."""
        if self.path is not None or error.errno != errno.EPIPE:
            self._problems.append(f"{self.path or 'stdout'}: {error.strerror or error}")


class SpooledReport(Reporter, ABC):
    """A report that is written whole when the run ends, with the results in the order of the files.

    Each case adds its part to a temporary file.
    """

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._results: Spool | None = None
        self._skipped: Spool | None = None
        self._order = Order(())

    def start(self, info: RunInfo) -> None:
        """Open the temporary files."""
        try:
            folder = spool_folder(self.target)
            self._results, self._skipped = Spool(folder), Spool(folder)
        except OSError as error:
            self.problem(error)
        self._order = Order(info.agents, info.files)

    def skipped(self, file: str | None, case: Case) -> None:
        """Add the part of a case that is left out."""
        if self._skipped is not None:
            self._add(self._skipped, self._order.file_number(file), self.skipped_part(file, case))

    def case(self, result: CaseResult) -> None:
        """Add the part of a case that ended."""
        if self._results is not None:
            self._add(self._results, self.place(self._order, result), self.case_part(result))

    def end(self, end: RunEnd) -> None:
        """Write the report, unless a part could not be kept."""
        results, skipped = self._results, self._skipped
        if results is None or skipped is None:
            return
        try:
            if not self.problems:
                with whole_file(self.target) as file:
                    self.write(file, end, results, skipped)
        except OSError as error:
            self.problem(error)
        finally:
            results.close()
            skipped.close()

    def place(self, order: Order, result: CaseResult) -> int:
        """The place of a result in the report."""
        return order.place(result)

    @abstractmethod
    def case_part(self, result: CaseResult) -> bytes:
        """The part of the report about a case."""

    @abstractmethod
    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """The part of the report about a case that is left out."""

    @abstractmethod
    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write the report from its parts."""

    def _add(self, spool: Spool, place: int, item: bytes) -> None:
        try:
            spool.add(place, item)
        except OSError as error:
            if not self.problems:
                self.problem(error)


class Reporters(Registry[type[Reporter]]):
    """The reporters by name (`report.json`) and by the extension of the files that they write (`.json`)."""

    def for_extension(self, extension: str) -> type[Reporter] | None:
        """The reporter for files that end so."""
        return self.find(extension.lower())

    def for_file(self, path: Path) -> type[Reporter] | None:
        """The reporter for a file, by the longest of its endings that is known: `.ctrf.json` goes before `.json`."""
        endings = ["".join(path.suffixes[number:]) for number in range(len(path.suffixes))]
        return next((kind for ending in endings if (kind := self.for_extension(ending))), None)

    @property
    def formats(self) -> list[str]:
        """The names that `-r` takes."""
        return sorted(name for name in self.names if not name.startswith("."))

    @property
    def extensions(self) -> list[str]:
        """The extensions that `-o` takes."""
        return sorted(name for name in self.names if name.startswith("."))


REPORTERS = Reporters(
    "atp.reporters",
    {
        **dict.fromkeys(("report.csv", ".csv"), "atp.report.formats.csv:CsvReport"),
        **dict.fromkeys(("report.ctrf", ".ctrf.json"), "atp.report.formats.ctrf:CtrfReport"),
        **dict.fromkeys(("report.html", ".html", ".htm"), "atp.report.html.report:HtmlReport"),
        **dict.fromkeys(("report.json", ".json"), "atp.report.formats.json:JsonReport"),
        **dict.fromkeys(("report.jsonl", ".jsonl"), "atp.report.formats.jsonl:JsonlReport"),
        **dict.fromkeys(("report.junit", ".xml"), "atp.report.formats.junit:JunitReport"),
        **dict.fromkeys(("report.markdown", ".md"), "atp.report.formats.markdown:MarkdownReport"),
        "report.summary": "atp.report.formats.summary:SummaryReport",
    },
    lambda reporter: (reporter.format, *reporter.extensions),
)
