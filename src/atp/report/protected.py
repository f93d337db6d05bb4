"""The files that no report may overwrite: what a run reads, the journals, and files of the project that are no reports.

A mistyped path costs a report then, and not the agent under test.
"""

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from atp.base.project import working_directory
from atp.engine.keys import named_in
from atp.engine.prepare.options import Options
from atp.engine.run import Run

_PARTS_OF_AGENTS = frozenset({".md", ".yao", ".yml", ".yaml", ".py", ".toml", ".jsonc", ".txt"})
"""The extensions of files that define agents and connectors. Others in their folders may be earlier reports."""
_REPORT_HEADS = re.compile(
    rb"# Agent Test Report|Agent: [^\n]*\n(?:\xe2\x94\x80)+\n  Summary\n"
    rb'|file,line,case,name,|<\?xml[^>]*>\s*<testsuites?\b|\{\s*"format":\s*\d+,\s*"summary"'
    rb'|\{"type":"start"|\{"reportFormat":"CTRF"|<!doctype html>.{0,100}<meta http-equiv="Content-Security-Policy"',
    re.DOTALL,
)
"""What ATP's own reports begin with."""
_WRITTEN = Path(".atp", "reports.txt")
"""The reports of a project that can't be told by how they begin, as those that an agent writes: a line for each, with
the SHA-256 of what was written and the path. A file that was changed since is no report."""
_SETTINGS = ("atp.toml", "pyproject.toml", ".env")


class Protected:
    """Files and folders, each with the reason why nothing may be written there."""

    def __init__(self, root: Path | None = None) -> None:
        """`root` is the project's: a report may only take the place of an earlier report in it."""
        self._root = root and real(root)
        self._files: dict[Path, str] = {}
        self._folders: list[tuple[Path, frozenset[str] | None, str]] = []
        self.reports: list[Path] = []
        """The reports that the run writes."""

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
        if not os.path.exists(path):  # of a name that is too long, it says no
            return None
        for folder, endings, why in self._folders:
            if not path.is_relative_to(folder) or self._is_report(path):
                continue
            if endings is None or path.suffix.lower() in endings:
                return why
        if self._root is not None and path.is_relative_to(self._root) and not self._is_report(path):
            return "it is a file of the project, and no report of ATP's; delete it or choose another path"
        return None

    def remember_reports(self) -> None:
        """Note what the run has written to `reports`, so that later reports may take its place."""
        if self._root is None:
            return
        found = [path for path in map(real, self.reports) if path.is_relative_to(self._root)]
        with suppress(OSError):  # a project that can't be written to has other troubles
            new = [(_digest(path), path) for path in found if not self._is_report(path)]
            if new:
                file = self._root / _WRITTEN
                file.parent.mkdir(exist_ok=True)
                with file.open("a", encoding="utf-8", errors="surrogateescape") as lines:
                    lines.writelines(f"{digest}  {os.path.relpath(path, self._root)}\n" for digest, path in new)

    def _was_written(self, path: Path) -> bool:
        """Whether a run has written the file, and nobody has changed it since."""
        if self._root is None:
            return False
        try:
            text = (self._root / _WRITTEN).read_text(encoding="utf-8", errors="surrogateescape")
            lines = [line.partition("  ") for line in text.splitlines()]
            digests = {digest for digest, _, name in lines if name and str(self._root / name) == str(path)}
            return bool(digests) and _digest(path) in digests
        except OSError:
            return False

    def _is_report(self, path: Path) -> bool:
        """True for an empty file, an earlier report of ATP's, and what is no plain file, such as /dev/stdout."""
        if not path.is_file():
            return True
        try:
            with path.open("rb") as file:
                head = file.read(2000)
        except OSError:
            return True  # whether it can be written is found out elsewhere
        if not head or _REPORT_HEADS.match(head):
            return True
        return self._was_written(path)


def files_of_run(run: Run) -> Protected:
    """The files that a run is about to read."""
    found = of_project(run.root, run.options)
    if not run.options.output:
        return found
    for unit in run.plan.units:
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
    found = Protected(root)
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


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def real(path: Path) -> Path:
    """The path without symbolic links. A circle of links stays as it is."""
    return Path(os.path.realpath(working_directory() / path))


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
