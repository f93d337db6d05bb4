"""Folders are listed and removed however deep they are, and whatever was made of their permissions."""

import os
from pathlib import Path

import pytest
from tests.deep import TOO_DEEP, TOO_LONG, make_deep

from atp.base.files import NotRegularFile, open_untrusted, remove_folder, walk_files


def test_files_are_listed_with_their_paths(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.txt").touch()
    (tmp_path / "d.txt").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert dict(walk_files(tmp_path)) == {
        "a/b/c.txt": tmp_path / "a" / "b" / "c.txt",
        "d.txt": tmp_path / "d.txt",
        "link": tmp_path / "link",
    }


def test_files_of_deep_folders_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make_deep(folder, *TOO_DEEP)
    assert [name.count("/") for name, _ in walk_files(folder)] == [TOO_DEEP[0]]
    remove_folder(folder)  # pytest, which removes what tests leave, can't do so at this depth


@pytest.mark.parametrize("unlistable", ["too long", "not there"])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(tmp_path: Path, unlistable: str) -> None:
    if unlistable == "too long":
        make_deep(tmp_path, *TOO_LONG)
    with pytest.raises(OSError, match=r"too long|No such file"):
        list(walk_files(tmp_path if unlistable == "too long" else tmp_path / "none"))


@pytest.mark.parametrize(("levels", "name"), [TOO_DEEP, TOO_LONG])
def test_folders_of_any_depth_are_removed(tmp_path: Path, levels: int, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make_deep(folder, levels, name)
    (folder / name / "beside" / "inside").mkdir(parents=True)
    remove_folder(folder)
    assert list(tmp_path.iterdir()) == []


def test_what_links_lead_to_stays(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").touch()
    (folder / "a" / "link").symlink_to(outside)
    (folder / "link").symlink_to(outside)
    remove_folder(folder)
    assert not folder.exists()
    assert (outside / "file").exists()
    (tmp_path / "swapped").symlink_to(outside)
    remove_folder(tmp_path / "swapped")
    assert (outside / "file").exists()


def test_permissions_do_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c").touch()
    for one in (folder / "a" / "b", folder / "a", folder):
        os.chmod(one, 0)
    remove_folder(folder)
    assert not folder.exists()


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_folder(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with open_untrusted(tmp_path / "file") as file:
        assert file.read() == b"text"
    for other in (tmp_path / "link", tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(NotRegularFile):
            open_untrusted(other)
    with pytest.raises(FileNotFoundError):
        open_untrusted(tmp_path / "nothing")
