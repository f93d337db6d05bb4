"""The workspace of a trial: a folder of its own, made when it is first asked for.

Files are copied in a thread, since the event loop belongs to all trials. A copy stops before its next file when the
trial is cancelled or its time is up, and the thread removes what it has copied.

The agent may do to the folder whatever it likes, also put a link in its place. So the folder is looked at before each
use, and nothing is read or written through a link.
"""

import asyncio
import errno
import os
import shutil
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from atp.agents.adapter import AgentError
from atp.base.errors import Error
from atp.base.files import remove_folder, walk_files
from atp.engine.seed_files import UnusableSeed, copy_file, copy_seed
from atp.usercode.threads import Raised, Thread

Result = TypeVar("Result")
STOP_LIMIT = 0.5
"""Seconds that a trial which was cancelled waits for its copy to stop. A file that never ends can't hold it up."""


class WorkspaceError(Error):
    """A workspace that could not be made: no agent is to blame."""


class _TimeUp(Error):
    """The trial's time was up, or the trial was cancelled, before all files were copied."""

    def __init__(self) -> None:
        super().__init__("the trial's time was up before all its files were copied")


class WorkspaceReplaced(AgentError):
    """A workspace that is no longer the folder that the agent was given."""


@dataclass(frozen=True, slots=True)
class KeptWorkspace:
    """A workspace as a before has left it."""

    folder: Path
    """A copy of it."""
    seeded: frozenset[str]
    """The files that were put there for the agent and that it has not touched."""


class WorkFolder:
    """The folder that workspaces are made in. What an agent puts in its place is neither written to nor removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made: os.stat_result | None = None

    def make(self) -> None:
        """Make the folder if it is not there. Raises `OSError`."""
        if self._made is None or not os.path.lexists(self.path):
            self.path.mkdir(parents=self._made is None, exist_ok=True)  # not again where the run's folder was moved
            self._made = os.stat(self.path)
        if not self.is_there():
            raise OSError(errno.ENOTDIR, f"an agent has put something else in the place of {self.path}")

    def is_there(self) -> bool:
        """True unless the folder, or one above it, was replaced. Raises `OSError`."""
        return self._made is not None and os.path.samestat(os.stat(self.path), self._made)

    def remove(self, folder: Path) -> None:
        """Remove a folder in this one, unless this one was replaced: the other may be the user's."""
        with suppress(OSError):
            if self.is_there():
                remove_folder(folder)


class Workspace:
    """The folder that an agent works in, seeded from fixtures or from the snapshot of befores."""

    def __init__(
        self,
        parent: "WorkFolder",
        name: str,
        seed: Path | None = None,
        fixtures: Path | None = None,
        start: KeptWorkspace | None = None,
        root: Path | None = None,
    ) -> None:
        """`root` is the project's root, out of which no link in the seed or the fixtures may lead."""
        self._parent = parent
        self._name = name
        self._seed = seed
        self._fixtures = fixtures if start is None else None  # what befores left has them already
        self._start = start
        self._root = root
        self.time_is_up: Callable[[], bool] = lambda: False
        """Asked before each file is copied, in the thread that copies: whether the trial's time is up."""
        self._copying: str | None = None
        """What is not done while files are copied, and was not done if that was stopped."""
        self._stopped = False
        """True if the trial was cancelled while files were copied."""
        self._lock = threading.Lock()
        """Held to set `_stopped`, and by the copying thread while it finds that it was not stopped and is done."""
        self._is_made = False
        """True once the folder was made, until it is removed."""
        self._seeded: dict[str, tuple[int, int, int, int]] | None = None
        self._made_by_befores: dict[str, tuple[int, int, int, int]] = {}

    @property
    def _folder(self) -> Path:
        return self._parent.path / self._name  # joined when needed: most trials of a large run have no folder

    @property
    def exists(self) -> bool:
        """True once the folder was asked for."""
        return self._seeded is not None

    @property
    def has_copies(self) -> bool:
        """True if files are copied into the folder when it is made. There may be very many."""
        return self._seed is not None or self._fixtures is not None or self._start is not None

    @property
    def cut_short(self) -> WorkspaceError | None:
        """The reason if the trial was cancelled while files were copied."""
        return WorkspaceError(f"the workspace could not be {self._copying}: {_TimeUp()}") if self._stopped else None

    async def prepare(self) -> None:
        """Make and seed the folder if files are to be copied into it. Raises as `path` does."""
        if self._seeded is None and self.has_copies:
            await self._in_thread("made", self.path)

    async def _in_thread(self, what: str, copy: Callable[[], Result]) -> Result:
        self._copying = what
        work = Thread().call(copy, last=True)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            with self._lock:
                self._stopped = True
            with suppress(asyncio.CancelledError):
                await asyncio.wait({work}, timeout=STOP_LIMIT)
            raise
        outcome = work.result()
        if isinstance(outcome, Raised):
            raise outcome.error
        result: Result = outcome
        return result

    def path(self) -> Path:
        """The folder, made and seeded the first time. Raises `WorkspaceError`, `WorkspaceReplaced`."""
        if self._seeded is not None:
            return self._own_folder()
        try:
            self._make()
        except (OSError, shutil.Error, RecursionError, UnusableSeed, _TimeUp) as error:
            self.remove()
            raise WorkspaceError(f"the workspace could not be made: {_why(error)}") from error
        return self._folder

    def _own_folder(self) -> Path:
        """The folder, unless something else is in its place now: a link, or a link in the place of its parent."""
        folder = self._folder
        try:
            is_there = self._parent.is_there()
            mode = os.lstat(folder).st_mode
        except OSError as error:
            raise WorkspaceReplaced(f"the agent took its workspace away: {error.strerror}") from error
        if not stat.S_ISDIR(mode) or not is_there:
            what = "a link" if stat.S_ISLNK(mode) else "something else"
            raise WorkspaceReplaced(f"the agent replaced its workspace folder by {what}")
        return folder

    def _make(self) -> None:
        self._parent.make()
        os.mkdir(self._folder)
        self._is_made = True
        made: frozenset[str] = frozenset()
        if self._start is not None:
            self._copy(self._start.folder, self._folder)
            made = frozenset(_files(self._folder)) - self._start.seeded
        if self._seed is not None:
            made -= copy_seed(self._seed, self._folder, self._root or self._seed, self._check_time)
        if self._fixtures is not None:
            copy_seed(self._fixtures, self._folder / "fixtures", self._root or self._fixtures, self._check_time)
        found = _files(self._folder) if self.has_copies else {}
        stamps = {name: _stamp(path) for name, path in found.items()}
        self._made_by_befores = {name: stamps.pop(name) for name in made & stamps.keys()}
        with self._lock:
            if self._stopped:
                raise _TimeUp
            self._seeded = stamps

    def _check_time(self) -> None:
        """Called before each file and folder is copied. Raises `_TimeUp`."""
        if self._stopped or self.time_is_up():
            raise _TimeUp

    def _copy(self, source: Path, target: Path) -> None:
        """Copy what an agent has left, links as links."""

        def copy(one: str, to: str) -> str:
            self._check_time()
            return copy_file(one, to, self._check_time)

        def look(_folder: str, _names: list[str]) -> set[str]:
            self._check_time()
            return set()

        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, ignore=look, copy_function=copy)

    async def copy_to(self, folder: Path) -> KeptWorkspace | None:
        """Copy the workspace for the cases that go on from here; nothing if it was never asked for.

        Raises `WorkspaceError`, `WorkspaceReplaced`.
        """
        return await self._in_thread("copied", lambda: self._copy_to(folder)) if self._seeded is not None else None

    def _copy_to(self, folder: Path) -> KeptWorkspace:
        seeded = self._seeded or {}
        try:
            made = self.changed_files()
            self._copy(self._own_folder(), folder)
            with self._lock:
                if self._stopped:
                    raise _TimeUp
        except (OSError, shutil.Error, RecursionError, _TimeUp) as error:
            self._parent.remove(folder)
            raise WorkspaceError(f"the workspace could not be copied: {_why(error)}") from error
        return KeptWorkspace(folder, frozenset(name for name in seeded if name not in made))

    def files(self) -> Mapping[str, Path]:
        """All files and links in the folder. Raises as `changed_files` does."""
        return _files(self._own_folder()) if self._seeded is not None else {}

    def changed_files(self, *, own: bool = False) -> Mapping[str, Path]:
        """The files and links that the agent made or changed, by their path in the folder.

        With `own`, only those that no before has left as they are. Raises `WorkspaceReplaced`, and `OSError` if not all
        of the folder can be listed.
        """
        if self._seeded is None:
            return {}
        seeded = {**self._seeded, **self._made_by_befores} if own else self._seeded
        return {name: path for name, path in _files(self._own_folder()).items() if seeded.get(name) != _stamp(path)}

    def remove(self) -> None:
        """Remove the folder if it was made."""
        if self._is_made:
            self._parent.remove(self._folder)


def _why(error: Exception) -> str:
    """The first reason: a copy collects as many as there are files."""
    if isinstance(error, RecursionError):
        return "its folders are too deep"
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1])
    return str(error)


def _files(folder: Path) -> dict[str, Path]:
    """Everything in a folder that is no folder itself, by path: files, and links whatever they lead to."""
    return dict(walk_files(folder))


def _stamp(path: Path) -> tuple[int, int, int, int]:
    """What tells a file that was changed. An agent can set the time of the last change back, but not `st_ctime`."""
    about = path.lstat()
    return about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino
