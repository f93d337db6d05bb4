"""What git says of a working tree."""

import subprocess
from pathlib import Path

import pytest
from tests.parts import needs
from tests.repository import git

from atp.base.git import find_checkout


def test_head_branch_and_changes_are_what_git_says(tmp_path: Path) -> None:
    needs("git")
    repo = tmp_path / "repo"
    (repo / "tests").mkdir(parents=True)
    file = repo / "tests" / "a.txt"
    file.write_text("one")
    git(repo, "init", "-q")

    def found(where: Path) -> tuple[str | None, str | None, bool]:
        checkout = find_checkout(where)
        assert checkout is not None
        return checkout[1:]

    assert found(file) == (None, "main", False)  # before the first commit
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "one")
    head = git(repo, "rev-parse", "HEAD")
    assert found(file) == found(repo) == (head, "main", False)
    git(repo, "pack-refs", "--all")
    assert not (repo / ".git" / "refs" / "heads" / "main").exists()
    (repo / "untracked").touch()
    assert found(file) == (head, "main", False)
    git(repo, "worktree", "add", "-q", "-b", "other/one", "../tree")
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "two")
    second = git(tmp_path / "tree", "rev-parse", "HEAD")
    assert found(tmp_path / "tree" / "tests") == (second, "other/one", False)
    git(repo, "checkout", "-q", "--detach")
    file.write_text("two")
    assert found(file) == (head, None, True)


def test_without_a_repository_git_is_not_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git was called"))
    assert find_checkout(tmp_path) is None


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", "")
    assert find_checkout(tmp_path) is None


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "nonsense", "\udcff" * 40])
def test_a_broken_repository_has_no_commit(tmp_path: Path, head: str) -> None:
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "objects").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(head.encode("utf-8", "surrogateescape"))
    found = find_checkout(tmp_path)
    assert found is None or found.commit is None


def test_a_hook_of_git_names_another_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("git")
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    found = find_checkout(tmp_path / "one")
    assert found is not None
    assert found.top == (tmp_path / "one").resolve()
