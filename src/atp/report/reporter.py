"""What every reporter promises, and which there are.

A reporter is a listener that writes a report, to a file or to stdout. It is registered by a decorator, ours and a
plugin's in the same way; a plugin's module is found by its entry point in the group `atp.reporters`.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from atp.report.hiding import hider
from atp.run.listener import Listener


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
        """Note that the report could not be written."""
        self._problems.append(f"{self.path or 'stdout'}: {error.strerror or error}")


Made = TypeVar("Made", bound=type[Reporter])


class Reporters:
    """The reporters by name and by the extension of the files they write."""

    def __init__(self, group: str, ours: Sequence[str]) -> None:
        self._group = group
        self._ours = ours
        self._by_name: dict[str, type[Reporter]] = {}
        self._by_extension: dict[str, type[Reporter]] = {}
        self._loaded = self._discovered = False

    def register(self, name: str, *extensions: str) -> Callable[[Made], Made]:
        """A decorator: this class writes the format that `-r name` or a file's extension (`.json`) asks for."""

        def add(made: Made) -> Made:
            self._by_name[name] = made
            self._by_extension |= dict.fromkeys(extensions, made)
            return made

        return add

    def named(self, name: str) -> type[Reporter] | None:
        """The reporter that `-r` names."""
        return self._find(self._by_name, name)

    def for_extension(self, extension: str) -> type[Reporter] | None:
        """The reporter for files that end so."""
        return self._find(self._by_extension, extension.lower())

    @property
    def names(self) -> list[str]:
        """All names."""
        return sorted(self._by_name)

    @property
    def extensions(self) -> list[str]:
        """All extensions."""
        return sorted(self._by_extension)

    def _find(self, known: dict[str, type[Reporter]], wanted: str) -> type[Reporter] | None:
        if not self._loaded:
            self._loaded = True
            for module in self._ours:
                import_module(module)
        if wanted not in known and not self._discovered:
            self._discovered = True  # looking for plugins takes time, so only what we don't know asks for it
            for entry in entry_points(group=self._group):
                entry.load()
        return known.get(wanted)


REPORTERS = Reporters("atp.reporters", ["atp.report.jsonl", "atp.report.json_report", "atp.report.summary_report"])
