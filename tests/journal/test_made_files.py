"""Files that agents made are kept by their content, within limits, and never with a secret in them."""

import hashlib
import os
from pathlib import Path

import pytest
from tests.engine.support.project import Project

from atp.journal import made_files
from atp.journal.made_files import MadeFiles

MAKES = """
    import pathlib

    def run(prompt, workspace):
        (workspace / "out").mkdir()
        (workspace / "out" / "a.txt").write_text("made")
        (workspace / "link").symlink_to("/etc/hostname")
        (workspace / "fixtures" / "given.txt").read_text()
        if prompt == "changes":
            (workspace / "fixtures" / "given.txt").write_text("changed")
        return prompt
"""


def test_a_run_keeps_what_agents_made(project: Project) -> None:
    project.write("agent.py", MAKES)
    project.write("fixtures/given.txt", "given")
    ran = project.test(project.cases("makes", "changes"), "-n", "agent.py:run")
    assert ran.code == 0
    assert [[one["name"] for one in trial["files"]] for trial in project.trials()] == [
        ["out/a.txt"],
        ["fixtures/given.txt", "out/a.txt"],
    ]
    (run,) = project.runs()
    kept = {one["sha256"] for trial in project.trials() for one in trial["files"] if one["kept"]}
    assert {path.name: path.read_text() for path in (run / "files").iterdir()} == {
        hashlib.sha256(text.encode()).hexdigest(): text for text in ("made", "changed")
    }
    assert kept == {path.name for path in (run / "files").iterdir()}
    assert project.workspaces() == []


def written(folder: Path, **contents: bytes) -> dict[str, Path]:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in contents}


def test_what_is_too_large_is_listed_with_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_files, "LARGEST", 10)
    monkeypatch.setattr(made_files, "MOST", 15)
    monkeypatch.setattr(made_files, "MOST_READ", 40)
    found = written(tmp_path, a=b"1" * 10, b=b"2" * 11, c=b"3" * 6, d=b"4" * 5, e=b"5" * 20)
    made, warnings = MadeFiles(tmp_path / "files").keep(found)
    assert [(one.name, one.size, one.kept) for one in made] == [
        ("a", 10, True),
        ("b", 11, False),
        ("c", 6, False),
        ("d", 5, True),
        ("e", 20, False),
    ]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in found.values()]
    assert [one.sha256 for one in made] == [*digests[:4], None]  # reading all of them would take too long
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == sorted([digests[0], digests[3]])
    assert warnings == []


def test_a_file_with_a_secret_is_not_kept(tmp_path: Path) -> None:
    files = MadeFiles(tmp_path / "files")
    files.secrets = ["s3cret-token"]
    made, _ = files.keep(written(tmp_path, a=b"\xff key: s3cret-token", b=b"none"))
    assert [(one.name, one.kept) for one in made] == [("a", False), ("b", True)]
    assert made[0].sha256 is not None
    assert [path.read_bytes() for path in (tmp_path / "files").iterdir()] == [b"none"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/hostname")
    found = {"pipe": tmp_path / "pipe", "link": tmp_path / "link", "gone": tmp_path / "gone"}
    made, warnings = MadeFiles(tmp_path / "files").keep(found)
    assert made == []
    assert warnings == ["the file gone could not be kept: No such file or directory"]
    assert not (tmp_path / "files").exists()


def test_very_many_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_files, "MOST_LISTED", 2)
    made, warnings = MadeFiles(tmp_path / "files").keep(written(tmp_path, a=b"", b=b"", c=b""))
    assert [one.name for one in made] == ["a", "b"]
    assert warnings == ["the agent made 3 files: only 2 are listed"]


def test_a_disk_that_is_full_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    made, warnings = MadeFiles(tmp_path / "files").keep(written(tmp_path, a=b"1"))
    assert made == []
    assert warnings == ["the file a could not be kept: File exists"]
