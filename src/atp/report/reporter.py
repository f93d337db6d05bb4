"""What every reporter promises, and which there are.

A reporter is a listener that writes a report, to a file or to stdout. It is registered by a decorator, ours and a
plugin's in the same way; a plugin's module is found by its entry point in the group `atp.reporters`.
"""

import errno
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from atp.journal.listeners import Listener
from atp.report.hiding import hider


class Reporter(Listener):
    """Writes a report. What it could not write goes to `problems`, it never ends the run."""

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


Made = TypeVar("Made", bound=type[Reporter])


class Reporters:
    """The reporters by name and by the extension of the files they write. Ours, too, load when they are asked for."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._by_name: dict[str, type[Reporter] | str] = {}
        self._by_extension: dict[str, type[Reporter] | str] = {}
        self._discovered = False

    def register(self, name: str, *extensions: str) -> Callable[[Made], Made]:
        """A decorator: this class writes the format that `-r name` or a file's extension (`.json`) asks for."""

        def add(made: Made) -> Made:
            self._by_name[name] = made
            self._by_extension |= dict.fromkeys(extensions, made)
            return made

        return add

    def at(self, module: str, name: str, *extensions: str) -> None:
        """The same for a module that registers this when it is loaded, which is not before it is needed."""
        self._by_name[name] = module
        self._by_extension |= dict.fromkeys(extensions, module)

    def named(self, name: str) -> type[Reporter] | None:
        """The reporter that `-r` names."""
        return self._find(self._by_name, name)

    def for_extension(self, extension: str) -> type[Reporter] | None:
        """The reporter for files that end so."""
        return self._find(self._by_extension, extension.lower())

    def for_file(self, path: Path) -> type[Reporter] | None:
        """The reporter for a file, by the longest of its endings that is known: `.ctrf.json` goes before `.json`."""
        endings = ["".join(path.suffixes[number:]) for number in range(len(path.suffixes))]
        return next((kind for ending in endings if (kind := self.for_extension(ending))), None)

    @property
    def names(self) -> list[str]:
        """All names."""
        return sorted(self._by_name)

    @property
    def extensions(self) -> list[str]:
        """All extensions."""
        return sorted(self._by_extension)

    def _find(self, known: dict[str, type[Reporter] | str], wanted: str) -> type[Reporter] | None:
        found = known.get(wanted)
        if isinstance(found, str):
            import_module(found)
            found = known.get(wanted)
        if found is None and not self._discovered:
            self._discovered = True  # looking for plugins takes time, so only what we don't know asks for it
            for entry in entry_points(group=self._group):
                entry.load()
            found = known.get(wanted)
        return None if isinstance(found, str) else found


REPORTERS = Reporters("atp.reporters")
REPORTERS.at("atp.report.formats.csv", "report.csv", ".csv")
REPORTERS.at("atp.report.formats.ctrf", "report.ctrf", ".ctrf.json")
REPORTERS.at("atp.report.html.report", "report.html", ".html", ".htm")
REPORTERS.at("atp.report.formats.json", "report.json", ".json")
REPORTERS.at("atp.report.formats.jsonl", "report.jsonl", ".jsonl")
REPORTERS.at("atp.report.formats.junit", "report.junit", ".xml")
REPORTERS.at("atp.report.formats.markdown", "report.markdown", ".md")
REPORTERS.at("atp.report.formats.summary_report", "report.summary")
