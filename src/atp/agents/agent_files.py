"""Reads the files that describe an agent, and collects the mistakes of all of them."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from atp.base.diagnostics import Diagnostic, Diagnostics, Place
from atp.base.errors import ConfigurationError, with_hint
from atp.base.secret_values import is_secret
from atp.loader.source import read_source


class Variables(Mapping[str, str]):
    """The environment, with a record of what was looked up, because these values decide what the agent does."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.used: dict[str, str] = {}
        """The variables that were looked up, by name."""

    def __getitem__(self, name: str) -> str:
        self.used[name] = self._environment[name]
        return self.used[name]

    def look_up(self, name: str, notes: Diagnostics, at: Callable[[], Place], used_as: Any = None) -> str | None:
        """Return the value of `$ENV.NAME`; None with a mistake if it is not set. Its secrets are added to `notes`.

        `used_as` is the key whose value contains the variable: the value of an `api_key` is secret by any name.
        """
        value = self.get(name)
        if value is None:
            hint = f"set {name} in the environment or in .env"
            notes.error("missing-variable", f"the variable `{name}` is not set", at(), hint)
        elif is_secret(name, value, used_as):
            notes.secrets.add(value)
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._environment

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


class AgentFiles:
    """The files of one agent, and the mistakes in them."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        """`root` is the project's folder: links to files outside of it are mistakes."""
        self.root = root.resolve()
        self.variables = Variables(environment)
        self.paths: list[Path] = []
        """The files that were read, in order."""
        self.secrets: set[str] = set()
        """Values that no output may show."""
        self._notes: dict[Path, Diagnostics] = {}

    def notes(self, path: Path) -> Diagnostics:
        """Return the diagnostics of a file, to add mistakes to."""
        if path not in self._notes:
            self._notes[path] = Diagnostics(self.name(path))
            self._notes[path].secrets = self.secrets
        return self._notes[path]

    def name(self, path: Path) -> str:
        """Return the name of a file in messages."""
        return os.path.relpath(path, self.root) if path.is_relative_to(self.root) else str(path)

    def read(self, path: Path) -> str | None:
        """Read a file's text. If that fails, return None and add the reason to the mistakes."""
        self.paths.append(path)
        source = read_source(path, self.notes(path))
        return None if source is None else source.text

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings about all files."""
        return [one for notes in self._notes.values() for one in notes.in_order() if one.severity == "warning"]

    def check(self) -> None:
        """Raise `ConfigurationError` with all mistakes, if there are any."""
        found = [one for notes in self._notes.values() for one in notes.in_order() if one.severity == "error"]
        if not found:
            return
        if len(found) == 1:
            raise ConfigurationError(_line(found[0]), found[0].hint)
        lines = [f"  {with_hint(_line(one), one.hint)}" for one in found]
        raise ConfigurationError("\n".join([f"{len(found)} mistakes in its files:", *lines]))


def _line(one: Diagnostic) -> str:
    return f"{one.file}:{one.line}:{one.column}: {one.message}"
