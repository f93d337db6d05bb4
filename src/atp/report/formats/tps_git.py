"""What git knows of a file, read from its own files: no program is started for three lines of text."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

NO_COMMIT = "0" * 40
"""Stands for a commit where there is none."""
_MOST_STEPS = 5
"""References that point to references."""
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def blob_id(content: bytes) -> str:
    """The name under which git keeps a file with this content."""
    return hashlib.sha1(b"blob %d\x00%s" % (len(content), content), usedforsecurity=False).hexdigest()


class Checkout(NamedTuple):
    """Where a file is under version control."""

    top: Path
    """The folder that was checked out."""
    commit: str
    """What HEAD is, or 40 zeros before the first commit."""


def find_checkout(file: Path) -> Checkout | None:
    """The nearest one around a file."""
    for folder in file.resolve().parents:
        if git := _git_folder(folder):
            return Checkout(folder, _head(git))
    return None


def _git_folder(folder: Path) -> Path | None:
    """`.git`, which in a worktree or submodule is a file that says where it is."""
    git = folder / ".git"
    if (text := _read(git)) is not None:
        where = text.removeprefix("gitdir:").strip()
        git = folder / where if text.startswith("gitdir:") and where else git
    return git if (git / "HEAD").is_file() else None


def _head(git: Path) -> str:
    shared = git / (_read(git / "commondir") or "").strip()
    name = "HEAD"
    for _ in range(_MOST_STEPS):
        text = (_read(git / name) or _read(shared / name) or _packed(shared, name)).strip()
        if _ID.fullmatch(text):
            return text
        name = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not name.startswith("refs/") or ".." in name:
            break
    return NO_COMMIT


def _packed(shared: Path, name: str) -> str:
    """A reference that git has packed into one file with others."""
    for line in (_read(shared / "packed-refs") or "").splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ""


def _read(file: Path) -> str | None:
    try:
        return file.read_text("utf-8", errors="surrogateescape")
    except OSError:
        return None
