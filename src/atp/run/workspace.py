"""A folder of its own for each trial, made when first asked for."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


class WorkspaceError(Exception):
    """A workspace that could not be made: no agent is to blame."""


class Workspace:
    """The folder that an agent works in, seeded from fixtures."""

    def __init__(self, parent: Path, name: str, seed: Path | None = None, fixtures: Path | None = None) -> None:
        self._parent = parent
        self._name = name
        self._seed = seed
        self._fixtures = fixtures
        self._seeded: dict[str, tuple[int, int, int]] | None = None

    @property
    def _folder(self) -> Path:
        return self._parent / self._name  # put together when needed: most trials of a large run have no folder

    @property
    def exists(self) -> bool:
        """Whether anybody has asked for it."""
        return self._seeded is not None

    def path(self) -> Path:
        """The folder, made and seeded the first time."""
        if self._seeded is None:
            try:
                self._make()
            except (OSError, shutil.Error) as error:
                _remove(self._folder)
                raise WorkspaceError(f"the workspace could not be made: {_why(error)}") from error
        return self._folder

    def _make(self) -> None:
        try:
            os.mkdir(self._folder)
        except FileNotFoundError:  # the first one
            self._folder.mkdir(parents=True)
        if self._seed is not None:
            shutil.copytree(self._seed, self._folder, dirs_exist_ok=True, symlinks=True)
        if self._fixtures is not None:
            shutil.copytree(self._fixtures, self._folder / "fixtures", dirs_exist_ok=True, symlinks=True)
        copied = self._seed is not None or self._fixtures is not None
        self._seeded = {name: _stamp(path) for name, path in _files(self._folder).items()} if copied else {}

    def made(self) -> Mapping[str, Path]:
        """The files that the agent made or changed, by their path in the folder."""
        if self._seeded is None:
            return {}
        seeded = self._seeded
        return {name: path for name, path in _files(self._folder).items() if seeded.get(name) != _stamp(path)}

    def remove(self) -> None:
        """Take the folder away."""
        if self._seeded is not None:
            _remove(self._folder)


def _remove(folder: Path) -> None:
    """Take a folder away, also one that an agent has taken its own rights to."""
    with suppress(OSError):
        os.rmdir(folder)  # most are empty, and this is a tenth of the work
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _take_back(folder)
        for here, below, _ in os.walk(folder):
            for name in below:  # before the walk goes into it
                _take_back(Path(here, name))
        shutil.rmtree(folder, ignore_errors=True)


def _take_back(folder: Path) -> None:
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)


def _why(error: OSError | shutil.Error) -> str:
    """The first reason: a copy collects as many as there are files."""
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1])
    return str(error)


def _files(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for here, _, names in os.walk(folder):
        for name in names:
            path = Path(here, name)
            found[path.relative_to(folder).as_posix()] = path
    return found


def _stamp(path: Path) -> tuple[int, int, int]:
    about = path.lstat()
    return about.st_mtime_ns, about.st_size, about.st_ino
