"""Where things live: the project's root, and ATP's own folder in it."""

from pathlib import Path

_SIGNS = ("atp.toml", "agents", "assistants", ".git")


def find_root(start: Path) -> Path:
    """The nearest folder around the input that looks like a project, else the working directory."""
    start = start.resolve()
    for folder in [start, *start.parents]:
        if any((folder / sign).exists() for sign in _SIGNS) or _has_settings(folder / "pyproject.toml"):
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
