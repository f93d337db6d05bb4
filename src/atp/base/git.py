"""The working tree of git that a folder is in: its top, its commit, its branch, whether files have changed."""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

LIMIT = 5
"""Seconds that git may take to answer."""


class Checkout(NamedTuple):
    """A working tree of git."""

    top: Path
    """The folder at its top."""
    commit: str | None
    """The commit that HEAD is; None before the first commit."""
    branch: str | None
    """The branch that is checked out, if one is."""
    dirty: bool
    """Whether files that git knows differ from the commit."""


def top_of(path: Path) -> Path | None:
    """The top of the working tree around a file or folder; None if there is none."""
    path = path.resolve()
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)


def find_checkout(path: Path) -> Checkout | None:
    """The working tree around a file or folder; None if there is none, or no git that can read it.

    One call of git, and none where there is no repository. Untracked files are not looked for, which may take long.
    """
    top = top_of(path)
    if top is None:
        return None
    status = _ask("--no-optional-locks", "status", "--porcelain=v2", "--branch", "--untracked-files=no", folder=top)
    if status is None:
        return None
    lines = status.splitlines()
    known = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = known.get("branch.oid", ""), known.get("branch.head")
    return Checkout(
        top,
        commit if re.fullmatch("[0-9a-f]{40}(?:[0-9a-f]{24})?", commit) else None,
        branch if branch != "(detached)" else None,
        any(not line.startswith("#") for line in lines),
    )


def user_name(folder: Path) -> str | None:
    """The name that git writes into commits made in a folder; None if it has none."""
    name = _ask("config", "user.name", folder=folder)
    return name.strip() or None if name is not None else None


def _ask(*command: str, folder: Path) -> str | None:
    """What git prints; None if it can't be called or fails."""
    # A hook of git sets variables that name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *command],  # noqa: S607
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(done.stdout)
