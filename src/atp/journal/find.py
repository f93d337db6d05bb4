"""Finds a run by what people call it: its id, its folder, `last`, `last~1`, or the commit that it tested."""

import os
import re
import shlex
from pathlib import Path

from atp.base.diagnostics import LoadError, load_error
from atp.base.numbers import counted
from atp.base.project import runs_folder
from atp.journal.folder import all_runs, projects_below
from atp.journal.read import bounds
from atp.journal.records import NAME

_LAST = re.compile(r"last(?:~(?P<back>\d{1,9}))?")
_COMMIT = re.compile(r"commit:(?P<commit>.*)")
_SHORTEST_COMMIT = 4
"""Letters of a commit's hash that must be given, as git asks for."""
_HINT = "atp runs lists them"


def find_run(root: Path, name: str, hint: str = _HINT) -> Path:
    """The folder of the run that `name` refers to, in the project at `root`. Raises `LoadError`.

    `hint` says where to look if no run has this name.
    """
    if (folder := run_at(Path(name))) is not None:
        return folder
    if last := _LAST.fullmatch(name):
        return _newest(root, int(last["back"] or 0))
    if commit := _COMMIT.fullmatch(name):
        return _of_commit(root, commit["commit"])
    found = runs_beginning(root, name)
    if len(found) != 1:
        known = "several runs begin so" if found else "there is no such run"
        raise _no_run(f"{name}: {known} in {runs_folder(root)}", hint)
    return found[0]


def run_at(path: Path) -> Path | None:
    """The folder of a run, if that is what a path leads to, or if it leads to the journal in one."""
    try:
        if path.name == NAME and path.is_file():
            return path.resolve().parent
        return path.resolve() if (path / NAME).is_file() else None
    except (OSError, ValueError):  # a name that is too long, or that has a NUL in it
        return None


def runs_beginning(root: Path, text: str) -> list[Path]:
    """The runs whose ids begin with a text; the one with exactly that id, if there is one."""
    found = [run for run in all_runs(root) if text and run.name.startswith(text)]
    return [run for run in found if run.name == text] or found


def _newest(root: Path, back: int) -> Path:
    """The newest run, or the one that is `back` runs older."""
    runs = all_runs(root)
    if back < len(runs):
        return runs[back]
    if runs:
        verb = "is" if len(runs) == 1 else "are"
        raise _no_run(f"last~{back}: there {verb} only {counted(len(runs), 'run')} in {runs_folder(root)}")
    raise no_runs(root)


def no_runs(root: Path) -> LoadError:
    """The error for a project without runs; its hint names a project further down that has some."""
    below = [shlex.quote(os.path.relpath(one)) for one in projects_below(root)]
    hint = f"there are runs in {below[0]}: --project {below[0]}" if below else "run something: atp test"
    return _no_run(f"there are no runs in {runs_folder(root)}", hint)


def _of_commit(root: Path, commit: str) -> Path:
    """The newest run with a start record of this commit, or of one that begins so."""
    if not re.fullmatch(f"[0-9A-Fa-f]{{{_SHORTEST_COMMIT},64}}", commit):
        message = f"commit:{commit}: this is not the hash of a commit, or fewer than {_SHORTEST_COMMIT} letters of one"
        raise _no_run(message, "write out the hash: commit:$(git rev-parse main)")
    found: dict[str, Path] = {}
    for run in all_runs(root):
        start, _ = bounds(run)
        if start is not None and start.commit is not None and start.commit.startswith(commit.lower()):
            found.setdefault(start.commit, run)
    if len(found) > 1:
        raise _no_run(f"commit:{commit}: there are runs of {len(found)} commits that begin so", "give more of the hash")
    if not found:
        raise _no_run(f"commit:{commit}: no run in {runs_folder(root)} was of that commit")
    return next(iter(found.values()))


def _no_run(message: str, hint: str = _HINT) -> LoadError:
    return load_error("no-run", message, hint)
