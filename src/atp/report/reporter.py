"""What every reporter promises, and which there are.

A reporter is a listener that writes a report, to a file or to stdout. It is registered by a decorator, ours and a
plugin's in the same way; a plugin's module is found by its entry point in the group `atp.reporters`.
"""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from atp.base.registry import Registry
from atp.base.secrets import hider
from atp.journal.listeners import Listener


class Reporter(Listener):
    """Writes a report. What it could not write goes to `problems`, it never ends the run."""

    format: ClassVar[str]
    """The name that `-r` takes: `report.json`."""
    extensions: ClassVar[tuple[str, ...]] = ()
    """The extensions of the files that get this report: `.json`."""

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        self.path = path
        """The file to write; stdout if there is none."""
        self.hide = hider(secrets)
        """Every text that leaves goes through this."""
        self._problems: list[str] = []

    @property
    def problems(self) -> Sequence[str]:
        """What could not be written."""
        return self._problems

    def problem(self, error: OSError) -> None:
        """Note that the report could not be written. A reader of stdout who has seen enough (`| head`) is none."""
        if self.path is not None or error.errno != errno.EPIPE:
            self._problems.append(f"{self.path or 'stdout'}: {error.strerror or error}")


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
        "report.summary": "atp.report.formats.summary_report:SummaryReport",
    },
    lambda reporter: (reporter.format, *reporter.extensions),
)
