"""Files and folders: written whole or not at all, listed and removed however deep they are."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple


def write_file(path: Path, text: str) -> None:
    """Write a text in UTF-8, with its line ends as they are."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that replaces the file at `path` once all is written, and gets its permissions.

    Raises `OSError`, and leaves the file as it was, if writing fails.
    """
    target = path.resolve()  # a symbolic link stays one
    if target.exists() and not target.is_file():  # a file must not replace a device
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    try:
        with in_place_of(target) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                os.chmod(file.name, target.stat().st_mode & 0o777)
    except OSError as error:
        if error.filename == str(target):
            error.filename = str(path)
        raise


@contextmanager
def in_place_of(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that gets the name `path` once all is written. A link of that name is replaced, not followed.

    Raises `OSError`, and leaves no part of the file, if writing fails.
    """
    # Not the file's name with an ending: that name may be as long as is allowed.
    half = path.with_name(f".atp-{secrets.token_hex(8)}.tmp")
    try:
        with half.open("xb") as file:
            yield file
        half.replace(path)
    except BaseException as error:
        half.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename == str(half):
            error.filename = str(path)  # the user doesn't know the temporary file
        raise


class NotRegularFile(OSError):
    """A link, a pipe, a folder or a device, where a file should be."""


def open_untrusted(path: Path) -> BufferedReader:
    """Open a file for reading that others can replace at any time. Raises `OSError`, of which `NotRegularFile` is one.

    Links are not followed, and nothing blocks: a pipe may have taken the file's place.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotRegularFile(error.errno, "it is a link", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularFile(errno.EINVAL, "it is not a regular file", str(path))
    return open(descriptor, "rb")


def walk_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files and links below a folder, each with its path in the folder.

    Raises `OSError` for a folder that can't be listed: what is in it is unknown, not absent.

    Not `os.walk`: before Python 3.12 it calls itself for each level, and agents can make folders of any depth.
    """
    waiting = [(str(folder), "")]
    while waiting:
        here, prefix = waiting.pop()
        with os.scandir(here) as entries:
            found = list(entries)
        for one in found:
            if one.is_dir(follow_symlinks=False):
                waiting.append((one.path, f"{prefix}{one.name}/"))
            else:
                yield prefix + one.name, Path(one.path)


def remove_folder(folder: Path) -> None:
    """Remove a folder as far as that is possible, also one whose permissions were changed or that is very deep.

    Not `shutil.rmtree`: it calls itself for each level, or needs paths that the system says are too long. Here only one
    folder is open at a time, and none is ever reached through a link.
    """
    with suppress(OSError):
        os.rmdir(folder)  # most are empty, and this is ten times as fast
        return
    with suppress(OSError):
        os.unlink(folder)  # a link in the place of the folder; fails for a folder
        return
    with suppress(OSError):
        _empty(_open(str(folder)))
        os.rmdir(folder)


class _Level(NamedTuple):
    name: str
    """The folder's name in the one above."""
    about: os.stat_result
    left: list[str]
    """The folders in it that are still to be removed."""


def _empty(here: int) -> None:
    """Remove all that is in an open folder, and close it."""
    levels = [_Level("", os.fstat(here), _remove_files(here))]
    try:
        while True:
            level = levels[-1]
            if level.left:
                name = level.left.pop()
                with suppress(OSError):
                    below = _open(name, here)
                    os.close(here)
                    here = below
                    levels.append(_Level(name, os.fstat(here), _remove_files(here)))
                continue
            levels.pop()
            if not levels:
                return
            above = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = above
            if not os.path.samestat(os.fstat(here), levels[-1].about):
                return  # a process that still runs has moved the folder out of here
            with suppress(OSError):
                os.rmdir(level.name, dir_fd=here)
    finally:
        os.close(here)


def _remove_files(folder: int) -> list[str]:
    """Remove what is no folder in an open folder. Returns the names of the folders."""
    with os.scandir(folder) as entries:
        found = list(entries)
    for one in found:
        if not one.is_dir(follow_symlinks=False):
            with suppress(OSError):
                os.unlink(one.name, dir_fd=folder)
    return [one.name for one in found if one.is_dir(follow_symlinks=False)]


def _open(name: str, parent: int | None = None) -> int:
    """Open a folder, never a link to one, and give it the permissions that emptying it takes."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        folder = os.open(name, flags, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        folder = os.open(name, flags, dir_fd=parent)
    with suppress(OSError):
        os.fchmod(folder, 0o700)
    return folder
