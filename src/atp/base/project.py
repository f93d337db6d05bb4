"""Where things live: the project's root, and ATP's own folder in it."""

import os
from pathlib import Path

from atp.base.diagnostics import Diagnostics, LoadError

_SIGNS = ("atp.toml", "agents", "assistants", ".git")


def find_root(start: Path) -> Path:
    """The nearest folder around the input that looks like a project, else the working directory."""
    start = start.resolve()
    for folder in [start, *start.parents]:
        if any(os.path.exists(folder / sign) for sign in _SIGNS) or _has_settings(folder / "pyproject.toml"):
            return folder
    return Path.cwd()


def _has_settings(path: Path) -> bool:
    try:
        return "[tool.atp" in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def runs_folder(root: Path) -> Path:
    """The folder of all runs."""
    return root / ".atp" / "runs"


def unreadable(path: Path | str, error: OSError) -> LoadError:
    """What to raise for something of the project's that is there and can't be read: that isn't the same as nothing."""
    notes = Diagnostics(str(path))
    notes.error("unreadable", f"{path} cannot be read: {error.strerror or error}", hint="check its permissions")
    return LoadError(notes)
