"""The folder of a run: who holds it, and what a start removes of runs that were killed."""

import fcntl
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import get_args

import pytest
from tests.deep import TOO_LONG, make_deep
from tests.engine.support.project import Project

from atp.base.project import runs_folder
from atp.journal.folder import BusyRun, Purpose, RunFolder, TemporaryFolder, new_run, sweep


def killed_run(root: Path, lock: str) -> Path:
    """A run whose process is gone, with the lock that it wrote."""
    run = new_run(root)
    (run / "work" / "1").mkdir(parents=True)
    (run / "lock").write_text(lock)
    return run


def test_a_lock_names_host_and_process(tmp_path: Path) -> None:
    made = RunFolder(new_run(tmp_path), "marker")
    assert (made.path / "lock").read_text().split() == ["marker", os.uname().nodename, str(os.getpid())]
    assert made.left_by is None
    made.close()
    assert not (made.path / "lock").exists()


@pytest.mark.parametrize(
    ("lock", "swept"),
    [
        (f"marker-of-nobody {os.uname().nodename} 1", True),
        ("marker-of-nobody another-host 1", False),
        ("marker-of-nobody", True),  # as earlier versions wrote it
        ("", False),  # of a run that is being started
    ],
)
def test_only_runs_of_this_host_are_swept(tmp_path: Path, lock: str, swept: bool) -> None:
    run = killed_run(tmp_path, lock)
    sweep(tmp_path)
    assert (run / "work").exists() is not swept
    assert (run / "lock").exists() is not swept


def test_a_start_waits_while_another_start_looks_at_its_new_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path)
    run.mkdir(parents=True)
    other = os.open(run / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(other, fcntl.LOCK_EX)
    monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(other, fcntl.LOCK_UN))
    made = RunFolder(run, "mine")
    os.close(other)
    with pytest.raises(BusyRun):
        RunFolder(run, "another")
    made.close()


def test_who_goes_on_with_a_run_of_another_host_is_told(tmp_path: Path) -> None:
    run = killed_run(tmp_path, "marker another-host 1")
    made = RunFolder(run, "mine")
    assert made.left_by == "another-host"
    assert (run / "lock").read_text().split()[1] == os.uname().nodename
    made.close()


def test_folders_of_any_depth_are_swept(tmp_path: Path) -> None:
    run = killed_run(tmp_path, "marker-of-nobody")
    make_deep(run / "work" / "1", *TOO_LONG)
    sweep(tmp_path)
    assert not (run / "work").exists()
    assert [one.name for one in runs_folder(tmp_path).iterdir()] == [run.name]


def test_a_temporary_folder_of_a_killed_process_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = TemporaryFolder("roles")
    host = os.uname().nodename
    for purpose in get_args(Purpose):
        (tmp_path / f"atp-{purpose}-{host}-killed" / "inside").mkdir(parents=True)
    (tmp_path / "atp-roles-elsewhere-killed").mkdir()
    (tmp_path / f"atp-roles-{host}-link").symlink_to(tmp_path / "atp-roles-elsewhere-killed")
    sweep(tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(
        [mine.path.name, "atp-roles-elsewhere-killed", f"atp-roles-{host}-link"]
    )
    mine.remove()
    assert not mine.path.exists()


def test_a_temporary_folder_that_another_process_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    locked = fcntl.flock
    removed: list[Path] = []

    def removes_the_first(handle: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].rmdir()
        locked(handle, how)

    monkeypatch.setattr(fcntl, "flock", removes_the_first)
    made = TemporaryFolder("roles")
    assert made.path not in removed
    assert made.path.is_dir()
    made.remove()


def test_the_first_run_hides_atps_folder_from_git(project: Project) -> None:
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    project.write("agent.py", "def answer(prompt):\n    return prompt\n")
    call = ("test", project.cases("a"), "-n", "agent.py:answer", "-q")
    assert project.atp(*call).code == 0
    status = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all"],
        cwd=project.folder,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ".atp" not in status.stdout
    ignored = project.folder / ".atp" / ".gitignore"
    ignored.write_text("runs\n")
    assert project.atp(*call).code == 0
    assert ignored.read_text() == "runs\n"
    ignored.unlink()
    assert project.atp(*call).code == 0
    assert not ignored.exists()  # whoever deletes it wants to commit what is there
