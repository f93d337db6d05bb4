"""The project's root, ATP's own folder in it, and the working directory."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from glob import has_magic
from pathlib import Path

from atp.base.diagnostics import Diagnostics, LoadError

QUARANTINE = "quarantine.yaml"
"""The file at the root that lists cases whose failures are taken out of the exit code."""
_SIGNS = ("atp.toml", "agents", "assistants", ".git")
_WORKING_DIRECTORY: ContextVar[Path | None] = ContextVar("working_directory", default=None)


def working_directory() -> Path:
    """The working directory, as it was when the run was begun: the user's code may change it, or delete the folder."""
    return _WORKING_DIRECTORY.get() or Path.cwd()


@contextmanager
def keeping_working_directory(folder: Path | None = None) -> Iterator[None]:
    """Let `working_directory` return a folder, or what it returns now, until the end."""
    before = _WORKING_DIRECTORY.get()
    _WORKING_DIRECTORY.set(folder or working_directory())
    try:
        yield
    finally:
        _WORKING_DIRECTORY.set(before)  # not `reset`: a coroutine that is never resumed is closed in another context


def input_folder(inputs: Iterable[str]) -> Path:
    """The folder of the first input that exists: a file, a folder or a pattern. Else the working directory."""
    for one in inputs:
        path = Path(one)
        if has_magic(one) and not os.path.lexists(one):
            path = next(folder for folder in path.parents if not has_magic(str(folder)))
        if os.path.exists(path):
            return path if path.is_dir() else path.resolve().parent
    return working_directory()


def find_root(start: Path) -> Path:
    """The nearest folder, `start` or around it, that looks like a project. Else the working directory."""
    start = start.resolve()
    for folder in [start, *start.parents]:
        if any(os.path.exists(folder / sign) for sign in _SIGNS) or _has_settings(folder / "pyproject.toml"):
            return folder
    return working_directory()


def project_at(folder: Path) -> Path:
    """The root of the project that a folder names: the folder itself, if nothing around it looks like a project."""
    root = find_root(folder)
    return root if folder.resolve().is_relative_to(root) else folder.resolve()


def is_below(path: Path, folders: Iterable[Path]) -> bool:
    """True if a path is one of the folders, or in one. Links are not followed: a link is where somebody has put it."""
    plain = Path(os.path.normpath(path))
    return any(plain.is_relative_to(folder) for folder in folders)


def _has_settings(path: Path) -> bool:
    try:
        return "[tool.atp" in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def runs_folder(root: Path) -> Path:
    """The folder of all runs."""
    return root / ".atp" / "runs"


def project_of_run(folder: Path) -> Path | None:
    """The root of the project whose run is in a folder; None if the folder was moved out of its project."""
    found = len(folder.parents) > 2 and runs_folder(folder.parents[2]) == folder.parent
    return folder.parents[2] if found else None


def unreadable(path: Path | str, error: OSError) -> LoadError:
    """The error for a file of the project that exists but can't be read."""
    notes = Diagnostics(str(path))
    notes.error("unreadable", f"{path} cannot be read: {error.strerror or error}", hint="check its permissions")
    return LoadError(notes)
