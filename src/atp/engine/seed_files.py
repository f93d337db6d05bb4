"""Copies the files that a trial starts with: the case's `workspace` folder, and the suite's `fixtures`.

An agent may write to every file in its workspace, so no link is copied as a link: the file that the link points to is
copied, and it must be inside the project.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from atp.base.errors import Error

MOST_FILES = 200_000
"""A folder with more files is not copied."""
MOST_BYTES = 8 * 2**30
"""Bytes; a larger folder is not copied."""
PART = 64 * 2**20
"""Bytes of a large file that are copied at once."""
OWN_FOLDER = ".atp"
"""The folder of the project root that is never copied: it holds the runs, and the workspace itself."""


class UnusableSeed(Error):
    """A folder that no trial can start with."""


def why_unusable(folder: Path, root: Path) -> str | None:
    """Why no trial can start with a copy of this folder; None if it can. Looks at names and links only."""
    try:
        _refuse_whole_machine(folder, root)
        for _ in _walk(folder, root):
            pass
    except UnusableSeed as error:
        return str(error)
    except OSError as error:
        return f"{folder} can't be read: {error.strerror}"
    return None


def copy_seed(folder: Path, target: Path, root: Path, check: Callable[[], None] = lambda: None) -> frozenset[str]:
    """Copy the content of a folder, and return the paths of the files in it.

    `check` is called before each file and folder. Raises `UnusableSeed`, `OSError`, and what `check` raises.
    """
    _refuse_whole_machine(folder, root)
    copied: set[str] = set()
    folders: list[tuple[Path, Path]] = []
    for source, name in _walk(folder, root):
        check()
        to = target / name
        if source.is_dir():
            to.mkdir(parents=True, exist_ok=True)
            folders.append((source, to))
        else:
            copy_file(str(source), str(to), check)
            copied.add(name)
    for source, to in reversed(folders):  # a folder that may not be written to must be filled first
        shutil.copystat(source, to)
    return frozenset(copied)


def _refuse_whole_machine(folder: Path, root: Path) -> None:
    real, project = folder.resolve(), root.resolve()
    if real != project and project.is_relative_to(real):
        raise UnusableSeed(f"{folder} contains the whole project, and each trial would copy it")


def _walk(folder: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """The folders and files to copy, each with its path in the workspace, folders before what they contain."""
    project = root.resolve()
    own = project / OWN_FOLDER
    allowed = (project, folder.resolve())
    files = size = 0
    waiting: list[tuple[Path, str, tuple[Path, ...]]] = [(folder, "", ())]
    while waiting:
        here, name, linking = waiting.pop()
        yield here, name
        with os.scandir(here) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                path, below = Path(entry.path), f"{name}/{entry.name}" if name else entry.name
                around = linking
                if entry.is_symlink():
                    around = (*linking, here.resolve())
                    path = _link_target(path, allowed, around)
                about = path.stat()
                if stat.S_ISDIR(about.st_mode):
                    if path.resolve() != own:
                        waiting.append((path, below, around))
                    continue
                if not stat.S_ISREG(about.st_mode):
                    raise UnusableSeed(f"{entry.path} is neither a file nor a folder")
                files, size = files + 1, size + about.st_size
                if files > MOST_FILES or size > MOST_BYTES:
                    most = f"{MOST_FILES} files or {MOST_BYTES >> 30} GB"
                    raise UnusableSeed(f"{folder} has more than {most}, and each trial would copy it")
                yield path, below


def _link_target(link: Path, allowed: tuple[Path, ...], around: tuple[Path, ...]) -> Path:
    """The file or folder that a link of the user's points to. Raises `UnusableSeed`.

    `around` are the folders that hold the link, and the links that led there: a link back to one has no end.
    """
    try:
        real = link.resolve(strict=True)
    except (OSError, RuntimeError):
        raise UnusableSeed(f"{link} is a link that leads nowhere") from None
    if not any(real.is_relative_to(one) for one in allowed):
        raise UnusableSeed(f"{link} is a link that leads out of the project, to {real}: copy the file instead")
    if any(one.is_relative_to(real) for one in around):
        raise UnusableSeed(f"{link} is a link to a folder that contains the link")
    return real


def copy_file(source: str, target: str, check: Callable[[], None] = lambda: None) -> str:
    """Copy a file, sharing its bytes where the file system can. `check` is called before each part of a large file."""
    if hasattr(os, "copy_file_range") and stat.S_ISREG(os.stat(source).st_mode):  # a pipe would never open
        with suppress(OSError), open(source, "rb") as read, open(target, "wb") as written:
            left = os.fstat(read.fileno()).st_size
            while left > 0 and (copied := os.copy_file_range(read.fileno(), written.fileno(), min(left, PART))):
                left -= copied
                check()
            if left == 0:
                shutil.copystat(source, target)
                return target
    return shutil.copy2(source, target)
