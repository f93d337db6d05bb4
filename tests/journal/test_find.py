"""Runs are found by all that people call them, and what refers to none, or to several, is refused with a hint."""

import os
from pathlib import Path

import pytest

from atp.base.diagnostics import LoadError
from atp.base.json.text import encode
from atp.journal.find import find_run
from atp.journal.records import FORMAT, NAME, RunInfo

OLD, OLDER_OF_NEW, NEW = ("20260101-080000-000aaaa", "20260102-080000-000bbbb", "20260103-080000-000cccc")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three runs: one of the commit that begins with `aa11`, and two of `aa22`."""
    for name, commit in ((OLD, "aa11" * 10), (OLDER_OF_NEW, "aa22" * 10), (NEW, "aa22" * 10)):
        folder = tmp_path / "project" / ".atp" / "runs" / name
        folder.mkdir(parents=True)
        info = RunInfo(format=FORMAT, id=name, at=1.0, version="1", identity=["a.jsonl"], commit=commit)
        (folder / NAME).write_bytes(encode(info) + b"\n")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("last", NEW),
        ("last~0", NEW),
        ("last~2", OLD),
        ("commit:aa11", OLD),
        (f"commit:{'AA22' * 10}", NEW),
        (OLD, OLD),
        ("20260102", OLDER_OF_NEW),
        (f".atp/runs/{OLD}", OLD),
        (f".atp/runs/{OLD}/{NAME}", OLD),
    ],
)
def test_a_run_is_found(root: Path, name: str, found: str) -> None:
    assert find_run(root, name) == (root / ".atp" / "runs" / found).resolve()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("last~3", "there are only 3 runs"),
        ("last~", "there is no such run"),
        ("", "there is no such run"),
        ("2026", "several runs begin so"),
        ("1999", "there is no such run"),
        ("commit:aa", "fewer than 4 letters"),
        ("commit:main", "this is not the hash of a commit"),
        ("commit:HEAD", "commit:HEAD: this is not the hash of a commit"),
        ("commit:bbbb", "no run in .* was of that commit"),
        ("x" * 5000, "there is no such run"),
        ("a\0b", "there is no such run"),
    ],
)
def test_what_refers_to_no_run_is_refused(root: Path, name: str, why: str) -> None:
    with pytest.raises(LoadError, match=why) as error:
        find_run(root, name)
    assert error.value.diagnostics[0].code == "no-run"
    assert error.value.diagnostics[0].hint


def test_a_commit_that_is_not_told_apart_is_refused(root: Path) -> None:
    folder = root / ".atp" / "runs" / OLD
    text = (folder / NAME).read_text("utf-8").replace("aa11" * 10, "aa22" + "b" * 36)
    (folder / NAME).write_text(text, "utf-8")
    with pytest.raises(LoadError, match="there are runs of 2 commits that begin so"):
        find_run(root, "commit:aa22")


def test_an_id_that_another_begins_with_is_found(root: Path) -> None:
    os.rename(root / ".atp" / "runs" / NEW, root / ".atp" / "runs" / f"{OLD}x")
    assert find_run(root, OLD).name == OLD


def test_a_project_without_runs_says_where_there_are_some(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    with pytest.raises(LoadError, match=f"there are runs in {root.name}: --project {root.name}"):
        find_run(root.parent, "last")
