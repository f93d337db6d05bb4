"""The workspace of a trial: a folder of its own, made when it is first asked for."""

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from atp.base.errors import Error


class WorkspaceError(Error):
    """A workspace that could not be made: no agent is to blame."""


@dataclass(frozen=True, slots=True)
class KeptWorkspace:
    """A workspace as a before has left it."""

    folder: Path
    """A copy of it."""
    seeded: frozenset[str]
    """The files that were put there for the agent and that it has not touched."""


class Workspace:
    """The folder that an agent works in, seeded from fixtures or from the snapshot of befores."""

    def __init__(
        self,
        parent: Path,
        name: str,
        seed: Path | None = None,
        fixtures: Path | None = None,
        start: KeptWorkspace | None = None,
    ) -> None:
        self._parent = parent
        self._name = name
        self._seed = seed
        self._fixtures = fixtures if start is None else None  # what befores left has them already
        self._start = start
        self._seeded: dict[str, tuple[int, int, int]] | None = None

    @property
    def _folder(self) -> Path:
        return self._parent / self._name  # joined when needed: most trials of a large run have no folder

    @property
    def exists(self) -> bool:
        """True once the folder was asked for."""
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
        made: frozenset[str] = frozenset()
        if self._start is not None:
            _copy(self._start.folder, self._folder)
            made = frozenset(_files(self._folder)) - self._start.seeded
        if self._seed is not None:
            made -= _copy(self._seed, self._folder)
        if self._fixtures is not None:
            _copy(self._fixtures, self._folder / "fixtures")
        copied = self._seed or self._fixtures or self._start
        found = _files(self._folder) if copied else {}
        self._seeded = {name: _stamp(path) for name, path in found.items() if name not in made}

    def keep(self, folder: Path) -> KeptWorkspace | None:
        """Copy the workspace for the cases that go on from here; nothing if it was never asked for."""
        if self._seeded is None:
            return None
        made = self.changed_files()
        try:
            _copy(self._folder, folder)
        except (OSError, shutil.Error) as error:
            raise WorkspaceError(f"the workspace could not be copied: {_why(error)}") from error
        return KeptWorkspace(folder, frozenset(name for name in self._seeded if name not in made))

    def changed_files(self) -> Mapping[str, Path]:
        """The files that the agent made or changed, by their path in the folder."""
        if self._seeded is None:
            return {}
        seeded = self._seeded
        return {name: path for name, path in _files(self._folder).items() if seeded.get(name) != _stamp(path)}

    def remove(self) -> None:
        """Remove the folder."""
        if self._seeded is not None:
            _remove(self._folder)


def _copy(source: Path, target: Path) -> frozenset[str]:
    """Copy the content of a folder. Returns the names of its files."""
    shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, copy_function=_copy_file)
    return frozenset(_files(source))


def _copy_file(source: str, target: str) -> str:
    """Copy a file, sharing its bytes where the file system can."""
    if hasattr(os, "copy_file_range") and stat.S_ISREG(os.stat(source).st_mode):  # a pipe would never open
        with suppress(OSError), open(source, "rb") as read, open(target, "wb") as written:
            left = os.fstat(read.fileno()).st_size
            while left > 0 and (copied := os.copy_file_range(read.fileno(), written.fileno(), left)):
                left -= copied
            if left == 0:
                shutil.copystat(source, target)
                return target
    return shutil.copy2(source, target)


def _remove(folder: Path) -> None:
    """Remove a folder, also one whose permissions an agent has changed."""
    with suppress(OSError):
        os.rmdir(folder)  # most are empty, and this is ten times as fast
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _restore_permissions(folder)
        for here, below, _ in os.walk(folder):
            for name in below:  # before the walk goes into it
                _restore_permissions(Path(here, name))
        shutil.rmtree(folder, ignore_errors=True)


def _restore_permissions(folder: Path) -> None:
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
