"""The files that no report may overwrite: what a run reads, and the journals.

A mistyped path costs a report then, and not the agent under test.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from atp.engine.prepare.keys import named_in
from atp.engine.prepare.options import Options
from atp.engine.run import Run

_PARTS_OF_AGENTS = frozenset({".md", ".yao", ".yml", ".yaml", ".py", ".toml", ".jsonc", ".txt"})
"""The extensions of files that define agents and connectors. Others in their folders may be earlier reports."""
_SETTINGS = ("atp.toml", "pyproject.toml", ".env")


class Protected:
    """Files and folders, each with the reason why nothing may be written there."""

    def __init__(self) -> None:
        self._files: dict[Path, str] = {}
        self._folders: list[tuple[Path, frozenset[str] | None, str]] = []

    def add(self, files: Iterable[Path], why: str) -> None:
        """Protect these files."""
        for file in files:
            self._files.setdefault(real(file), why)

    def add_folder(self, folder: Path, why: str, endings: frozenset[str] | None = None) -> None:
        """Protect the existing files in a folder, or those with one of these extensions."""
        self._folders.append((real(folder), endings, why))

    def why(self, path: Path) -> str | None:
        """The reason why no report may be written to this path, if there is one."""
        path = real(path)
        if _in_runs(path):
            return "ATP keeps its runs in that folder"
        if path in self._files:
            return self._files[path]
        for folder, endings, why in self._folders:
            if path.is_relative_to(folder) and (endings is None or path.suffix.lower() in endings) and path.exists():
                return why
        return None


def of_session(session: Run) -> Protected:
    """The files that a run is about to read."""
    found = of_project(session.root, session.options)
    if not session.options.output:
        return found
    for unit in session.plan.units:
        folder = unit.source.folder
        for tested in unit.agents:
            config, why = tested.agent.model_dump(mode="json"), f"the agent `{tested.name}` is made of it"
            found.add([*named_in(config, tested.base), *named_in(config, folder), *tested.adapter.files], why)
        for place in {folder, *(tested.base for tested in unit.agents)}:
            _add_scripts(found, place)
        found.add([path for hook in unit.source.survey.hooks for path in named_in(hook, folder)], "a hook is in it")
        for name in unit.source.survey.workspaces:
            found.add_folder(folder / name, "trials start with what is in that folder")
        if unit.source.fixtures is not None:
            found.add_folder(unit.source.fixtures, "trials start with what is in that folder")
    return found


def of_run(root: Path, options: dict[str, Any], files: Iterable[str]) -> Protected:
    """The files that a finished run has read, as far as the journal and the test files still show."""
    found = of_project(root, Options())
    found.add(named_in([*options.get("name", ()), options.get("ctx")], root), "the run has read it")
    for file in map(Path, files):
        _add_scripts(found, file.parent)
        found.add(named_in(_agents_in(file), real(file).parent), f"an agent of {file.name} is made of it")
    return found


def of_project(root: Path, options: Options) -> Protected:
    """The files that every run of a project may read."""
    found = Protected()
    found.add([root / name for name in _SETTINGS], "it is a settings file of the project")
    found.add([Path(one) for one in (options.ctx, options.env_file) if one], "the run reads it")
    hooks = [one for one in (options.before_all, options.after_all) if one]
    found.add(named_in(hooks, root), "a hook is in it")
    for name in ("agents", "assistants"):
        found.add_folder(root / name, "an agent is made of it", _PARTS_OF_AGENTS)
    found.add_folder(root / "connectors", "it describes a connector")
    for recorded in (options.record, options.replay):
        if recorded:
            found.add_folder(Path(recorded), "what was recorded is in that folder")
    _add_scripts(found, root)
    return found


def real(path: Path) -> Path:
    """The path without symbolic links. A circle of links stays as it is."""
    return Path(os.path.realpath(path))


def _add_scripts(found: Protected, folder: Path) -> None:
    found.add_folder(folder / "scripts", "it is a script of the project", frozenset({".py"}))


def _in_runs(path: Path) -> bool:
    return (".atp", "runs") in zip(path.parts, path.parts[1:], strict=False)


def _agents_in(file: Path) -> Any:
    """The agents of a YAML suite; nothing if the file can't be read any more."""
    if file.suffix.lower() not in (".yaml", ".yml"):
        return None
    import yaml

    try:
        data = yaml.load(file.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    except (OSError, yaml.YAMLError):
        return None
    return data.get("agents") if isinstance(data, dict) else None
