"""The project's root, and ATP's own folder in it."""

import os
from collections.abc import Iterable
from glob import has_magic
from pathlib import Path

from atp.base.diagnostics import Diagnostics, LoadError

_SIGNS = ("atp.toml", "agents", "assistants", ".git")


def input_folder(inputs: Iterable[str]) -> Path:
    """The folder of the first input that exists: a file, a folder or a pattern. Else the working directory."""
    for one in inputs:
        path = Path(one)
        if has_magic(one) and not os.path.lexists(one):
            path = next(folder for folder in path.parents if not has_magic(str(folder)))
        if os.path.exists(path):
            return path if path.is_dir() else path.resolve().parent
    return Path.cwd()


def find_root(start: Path) -> Path:
    """The nearest folder, `start` or around it, that looks like a project. Else the working directory."""
    start = start.resolve()
    for folder in [start, *start.parents]:
        if any(os.path.exists(folder / sign) for sign in _SIGNS) or _has_settings(folder / "pyproject.toml"):
            return folder
    return Path.cwd()


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


def unreadable(path: Path | str, error: OSError) -> LoadError:
    """The error for a file of the project that exists but can't be read."""
    notes = Diagnostics(str(path))
    notes.error("unreadable", f"{path} cannot be read: {error.strerror or error}", hint="check its permissions")
    return LoadError(notes)
