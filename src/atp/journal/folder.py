"""The folder of a run: its journal, the workspaces of its trials, and a lock held by the process that runs it."""

import contextlib
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from atp.agents.leftovers import OF_RUN, end_leftovers
from atp.base.errors import Error
from atp.base.project import runs_folder, unreadable
from atp.journal.records import NAME

_LOCK = "lock"
_WORK = "work"
_LOCKS: set[int] = set()
"""The locks that this process holds."""


def _close_locks() -> None:
    """Close the locks in a copy of this process that an agent forks: the copy may outlive the run."""
    for lock in _LOCKS:
        os.close(lock)
    _LOCKS.clear()


os.register_at_fork(after_in_child=_close_locks)


class RunFolder:
    """The folder of a run that is under way, locked until this process closes it or ends."""

    def __init__(self, path: Path, marker: str) -> None:
        """`marker` is in the environment of every process that the run starts."""
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.id = path.name
        self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise BusyRun(path.name) from None
        _LOCKS.add(self._lock)
        try:
            os.ftruncate(self._lock, 0)
            os.write(self._lock, marker.encode())
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
        """Unlock the folder, and remove the workspaces: code that could not be stopped may have made theirs again."""
        if keep:
            with contextlib.suppress(OSError):
                self.work.rmdir()
        else:
            shutil.rmtree(self.work, ignore_errors=True)
        (self.path / _LOCK).unlink(missing_ok=True)
        _LOCKS.discard(self._lock)
        os.close(self._lock)


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


def sweep(root: Path) -> None:
    """End the processes and remove the workspaces of runs that were killed."""
    for lock in _in_all_runs(root, _LOCK):
        with contextlib.suppress(OSError):
            handle = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held by a run that lives: an OSError
                marker = os.read(handle, 200).decode(errors="replace")
                if marker:
                    end_leftovers(marker)
                shutil.rmtree(lock.parent / _WORK, ignore_errors=True)
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
    """The folders of all runs, newest first."""
    return sorted((path.parent for path in _in_all_runs(root, NAME)), reverse=True)


def _in_all_runs(root: Path, name: str) -> list[Path]:
    """The files of this name in the folders of runs."""
    folder = runs_folder(root)
    try:
        found = [Path(one.path, name) for one in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return [path for path in found if os.path.lexists(path)]
