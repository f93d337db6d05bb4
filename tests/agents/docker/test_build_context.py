"""The folder that an image is built from."""

import contextlib
import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.agents.adapter import AgentError
from atp.agents.docker.image import BuildContext


def context(folder: Path, ignore: str = "", dockerfile: str = "FROM scratch", files: str = "") -> BuildContext:
    for name in files.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "Dockerfile").write_text(dockerfile)
    if ignore:
        (folder / ".dockerignore").write_text(ignore)
    return BuildContext(folder)


def packed(made: BuildContext) -> list[str]:
    archive = io.BytesIO()
    made.pack(archive)
    with tarfile.open(fileobj=archive) as found:
        return [one.name for one in found if one.isfile() and one.name not in ("Dockerfile", ".dockerignore")]


FILES = "a.py b.pyc lib/c.py lib/d.pyc lib/deep/e.pyc .git/config README.md docs/README.md x1 x2 xa"


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ("", sorted(FILES.split())),
        (".git\n# a comment\n\n*.pyc\nx?\nlib/deep", ["README.md", "a.py", "docs/README.md", "lib/c.py", "lib/d.pyc"]),
        ("**/*.pyc\n/.git/\nx[0-9]\n**/README.md", ["a.py", "lib/c.py", "xa"]),
        ("*\n!lib/deep\n!a.py", ["a.py", "lib/deep/e.pyc"]),
        ("lib\n!lib/c.py\n.git/**\nx*\n*.md\ndocs/*", ["a.py", "b.pyc", "lib/c.py"]),
        ("Dockerfile\n.dockerignore\n*", []),
    ],
)
def test_dockerignore(tmp_path: Path, ignore: str, left: list[str]) -> None:
    made = context(tmp_path, ignore, files=FILES)
    assert packed(made) == sorted(left)
    archive = io.BytesIO()
    made.pack(archive)
    with tarfile.open(fileobj=archive) as found:
        assert "Dockerfile" in found.getnames()
        assert {(one.uid, one.gid, one.uname) for one in found} == {(0, 0, "")}


def test_the_digest_is_of_names_rights_and_content(tmp_path: Path) -> None:
    first = context(tmp_path, "ignored", files="a b ignored").digest()
    os.utime(tmp_path / "a", (1, 1))
    (tmp_path / "ignored").write_text("changed")
    assert BuildContext(tmp_path).digest() == first
    seen = {first}
    for change in (
        lambda: (tmp_path / "a").write_text("changed"),
        lambda: (tmp_path / "a").chmod(0o755),
        lambda: (tmp_path / "a").rename(tmp_path / "c"),
        lambda: (tmp_path / "link").symlink_to("b"),
        (tmp_path / "folder").mkdir,
    ):
        change()
        seen.add(BuildContext(tmp_path).digest())
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("dockerfile", "images"),
    [
        ("FROM scratch", []),
        ("from python:3.12 as base\nFROM base\nRUN x", ["python:3.12"]),
        (
            "# FROM no\nFROM --platform=linux/amd64 \\\n  a/b@sha256:12 AS x\nCOPY --chown=1 --from=c/d:1 a b",
            ["a/b@sha256:12", "c/d:1"],
        ),
        ("FROM a\nCOPY --from=0 a b\nCOPY --from=scratch a b", ["a"]),
        ('ARG V=3\nARG BASE="py"\nFROM ${BASE}:$V\nFROM ${OTHER:-d}:1\nFROM ${NONE}', ["py:3", "d:1"]),
    ],
)
def test_the_images_a_dockerfile_needs(tmp_path: Path, dockerfile: str, images: list[str]) -> None:
    assert context(tmp_path, dockerfile=dockerfile).images() == images


@given(st.text(alphabet="*?[]^!\\/.a-b\n #", max_size=30))
def test_no_pattern_breaks_it(tmp_path_factory: pytest.TempPathFactory, ignore: str) -> None:
    folder = tmp_path_factory.mktemp("context")
    with contextlib.suppress(AgentError):  # it says that this is no pattern
        assert set(packed(context(folder, ignore, files="a b/a"))) <= {"a", "b/a"}


def test_what_is_no_pattern(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"`.dockerignore`: `\[b-a\]` is not a pattern"):
        context(tmp_path, "[b-a]")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="there is nothing to build in") as caught:
        BuildContext(tmp_path / "none")
    assert caught.value.blame == "environment"
