"""The folder of a run: its journal, its files, the workspaces of its trials, and a lock of the process that runs it."""

import contextlib
import fcntl
import glob
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

from atp.agents.leftovers import OF_RUN, end_leftovers
from atp.base.errors import Error
from atp.base.files import remove_folder
from atp.base.project import runs_folder, unreadable
from atp.journal.records import NAME

_LOCK = "lock"
_WORK = "work"
Purpose = Literal["chat", "report", "roles"]
"""What a temporary folder is for. A part of its name."""
_LOCKS: set[int] = set()
"""The locks that this process holds."""


def _close_locks() -> None:
    """Close the locks in a copy of this process that an agent forks: the copy may outlive the run."""
    for lock in _LOCKS:
        os.close(lock)
    _LOCKS.clear()


os.register_at_fork(after_in_child=_close_locks)


def _hide_from_git(folder: Path) -> None:
    """Put a `.gitignore` into ATP's own folder, unless there is one, so that runs don't show up in `git status`."""
    with contextlib.suppress(OSError), open(folder / ".gitignore", "x", encoding="utf-8") as file:
        file.write("# Made by ATP. Delete the next line to commit what is here.\n*\n")


class RunFolder:
    """The folder of a run that is under way, locked until this process closes it or ends."""

    def __init__(self, path: Path, marker: str) -> None:
        """`marker` is in the environment of every process that the run starts."""
        is_first = not path.parent.exists()
        path.mkdir(parents=True, exist_ok=True)
        if is_first and path.parts[-3:-1] == (".atp", "runs"):
            _hide_from_git(path.parent.parent)
        self.path = path
        self.id = path.name
        self._lock = _lock(path)
        _LOCKS.add(self._lock)
        self._about = os.stat(path)
        try:
            self.left_by = _other_host(_read_lock(self._lock))
            """The host whose lock the folder still has, if it is another: locks may not hold across hosts."""
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{marker} {host()} {os.getpid()}".encode(), 0)
            os.close(os.open(path / NAME, os.O_WRONLY | os.O_CREAT, 0o644))  # a full disk is known before the run
        except OSError:
            self.close()
            with contextlib.suppress(OSError):  # the folder of a resumed run is not empty, and stays
                path.rmdir()
            raise

    @property
    def work(self) -> Path:
        """Where the trials' workspaces are."""
        return self.path / _WORK

    def close(self, keep: bool = False) -> None:
        """Unlock the folder, and remove the workspaces: code that could not be stopped may have made theirs again.

        Nothing is removed if an agent has put another folder in the place of this one: that may be the user's.
        """
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(self.path), self._about):
                if keep:
                    with contextlib.suppress(OSError):
                        self.work.rmdir()
                else:
                    remove_folder(self.work)
                (self.path / _LOCK).unlink(missing_ok=True)
        _LOCKS.discard(self._lock)
        os.close(self._lock)


def _lock(run: Path) -> int:
    """Lock a run for this process. Raises `BusyRun`.

    A run that starts at the same time looks at all locks (`sweep`), and may hold one that is new for a moment.
    """
    handle = os.open(run / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    for _ in range(50):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _read_lock(handle):
                break
            time.sleep(0.02)
        else:
            return handle
    os.close(handle)
    raise BusyRun(run.name)


@contextlib.contextmanager
def marking(marker: str) -> Iterator[None]:
    """Mark the processes that agents in our own process start, too, so that a run can end those that are left."""
    before = os.environ.get(OF_RUN)
    os.environ[OF_RUN] = marker
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(OF_RUN, None)
        else:
            os.environ[OF_RUN] = before


class BusyRun(Error):
    """Another process is running this run."""


def new_run(root: Path) -> Path:
    """The folder of a new run. Names sort by time, to the millisecond, and no two are alike."""
    now = time.time_ns()
    seconds = time.strftime("%Y%m%d-%H%M%S", time.localtime(now // 10**9))
    return runs_folder(root) / f"{seconds}-{now // 10**6 % 1000:03}{secrets.token_hex(2)}"


def host() -> str:
    """The name of this machine."""
    return os.uname().nodename or "-"


def _read_lock(handle: int) -> list[str]:
    """What a lock file says: the run's marker, its host and its process. Earlier versions wrote the marker only."""
    return os.pread(handle, 400, 0).decode(errors="replace").split()


def _other_host(lock: list[str]) -> str | None:
    """The host of a lock, if it is not this one."""
    return lock[1] if len(lock) > 1 and lock[1] != host() else None


def sweep(root: Path) -> None:
    """End the processes and remove the workspaces of runs that were killed on this host.

    A run of another host may live although its lock can be taken: not all network file systems share locks.
    """
    _sweep_temporary()
    for lock in _in_runs(runs_folder(root), _LOCK):
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a run that lives: an OSError
                said = _read_lock(handle)
                if not said or _other_host(said):  # empty while its run is being started
                    continue
                end_leftovers(said[0])
                remove_folder(lock.parent / _WORK)
                lock.unlink(missing_ok=True)
            finally:
                os.close(handle)


def is_running(run: Path) -> bool:
    """True if a process is running this run."""
    with contextlib.suppress(OSError):
        handle = os.open(run / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
    return False


def all_runs(root: Path) -> list[Path]:
    """The folders of all runs of a project, newest first."""
    return runs_in(runs_folder(root))


def runs_in(folder: Path) -> list[Path]:
    """The folders of the runs in a folder, newest first."""
    return sorted((path.parent for path in _in_runs(folder, NAME)), reverse=True)


def projects_below(folder: Path) -> list[Path]:
    """The folders with runs of their own, one or two levels below `folder`."""
    found = [*folder.glob("*/.atp/runs"), *folder.glob("*/*/.atp/runs")]
    return sorted(runs.parents[1] for runs in found if all_runs(runs.parents[1]))


def _in_runs(folder: Path, name: str) -> list[Path]:
    """The files of this name in the folders of runs in `folder`."""
    try:
        found = [Path(one.path, name) for one in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return [path for path in found if os.path.lexists(path)]


class TemporaryFolder:
    """A folder outside of all runs, for what has none of its own. Locked until it is removed.

    Should this process be killed, the next run removes the folder.
    """

    def __init__(self, purpose: Purpose) -> None:
        self._prefix = _prefix(purpose)
        while not self._made():  # another process removed it before it was locked
            pass
        _LOCKS.add(self._lock)

    def _made(self) -> bool:
        self.path = Path(tempfile.mkdtemp(prefix=self._prefix))
        try:
            self._lock = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if self.path.exists():
            return True
        os.close(self._lock)
        return False

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        remove_folder(self.path)
        _LOCKS.discard(self._lock)
        os.close(self._lock)


def _prefix(purpose: Purpose) -> str:
    return f"atp-{purpose}-{host()}-"


def _sweep_temporary() -> None:
    """Remove the temporary folders of processes of this host that were killed."""
    names = [f"{glob.escape(_prefix(purpose))}*" for purpose in get_args(Purpose)]
    for folder in chain.from_iterable(map(Path(tempfile.gettempdir()).glob, names)):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(handle).st_uid == os.getuid():
                    remove_folder(folder)
            finally:
                os.close(handle)
