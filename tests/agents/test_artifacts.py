"""Artifacts: their contents, their hashes, and that no path leads out of the workspace."""

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.agents.adapter import AgentError
from atp.agents.artifacts import Artifacts, take_in
from atp.agents.wire import ProtocolError
from atp.suite.result import Artifact


def take(workspace: Path, *sent: dict[str, Any]) -> list[Artifact]:
    return take_in(msgspec.convert(list(sent), Artifacts), lambda: workspace)


def file(path: str, content: str | None = "x", **more: Any) -> dict[str, Any]:
    return {"type": "file", "path": path, "content": content, **more}


def everything(folder: Path) -> dict[str, str]:
    """All files below a folder, links as where they point."""
    found = {}
    for here, folders, names in os.walk(folder):
        for name in (*names, *(one for one in folders if os.path.islink(os.path.join(here, one)))):
            path = Path(here, name)
            found[str(path.relative_to(folder))] = os.readlink(path) if path.is_symlink() else path.read_text()
    return found


def test_kinds(tmp_path: Path) -> None:
    binary = bytes(range(256))
    made = take(
        tmp_path,
        file("./a//b.txt", "Grüße", content_type="text/plain", size_bytes=1),
        file("c.bin", base64.encodebytes(binary).decode(), encoding="base64"),
        file("there.txt", None, size_bytes=5),
        {"type": "structured", "name": "data", "data": [1]},
        {"type": "reference", "path": "big.iso", "content_type": "x/y", "size_bytes": 10},
    )
    assert [(one.name, one.kind, one.size_bytes) for one in made] == [
        ("a/b.txt", "file", 7),
        ("c.bin", "file", 256),
        ("there.txt", "file", 5),
        ("data", "structured", None),
        ("big.iso", "reference", 10),
    ]
    assert made[0].text == "Grüße"
    assert made[0].sha256 == hashlib.sha256("Grüße".encode()).hexdigest()
    assert (made[1].text, made[1].sha256) == (None, hashlib.sha256(binary).hexdigest())
    assert (tmp_path / "a/b.txt").read_bytes() == "Grüße".encode()
    assert (tmp_path / "c.bin").read_bytes() == binary
    assert not (tmp_path / "there.txt").exists()


def test_workspace_is_made_only_for_files(tmp_path: Path) -> None:
    def nobody() -> Path:
        raise AssertionError

    sent = msgspec.convert([{"type": "structured", "name": "a", "data": 1}, file("x", None)], Artifacts)
    assert len(take_in(sent, nobody)) == 2


@pytest.mark.parametrize("encoding", ["utf-8", "text", None])
def test_text_encodings(tmp_path: Path, encoding: str | None) -> None:
    assert take(tmp_path, file("a", "é", encoding=encoding))[0].text == "é"


def test_base64_that_isn_t(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="can't be decoded"):
        take(tmp_path, file("a", "not base64!", encoding="base64"))
    assert everything(tmp_path) == {}


@pytest.mark.parametrize("prefix", ["", "sha256:", "SHA256=", "sha256-"])
def test_hash_is_checked(tmp_path: Path, prefix: str) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    take(tmp_path, file("a", content_hash=prefix + digest), file("b", content_hash=prefix + digest.upper()))
    with pytest.raises(ProtocolError, match="is not that of its content"):
        take(tmp_path, file("c", "y", content_hash=prefix + digest))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("name", ["md5", "sha1", "sha512"])
def test_other_hashes(tmp_path: Path, name: str) -> None:
    digest = hashlib.new(name, b"x").hexdigest()
    take(tmp_path, file("a", content_hash=digest), file("b", content_hash=f"{name}:{digest}"))
    with pytest.raises(ProtocolError, match="is not that of its content"):
        take(tmp_path, file("a", "y", content_hash=digest))


@pytest.mark.parametrize("given", ["", "crc:1234", "abc", "sha256:"])
def test_hash_of_no_known_kind(tmp_path: Path, given: str) -> None:
    with pytest.raises(ProtocolError, match="of no known kind"):
        take(tmp_path, file("a", content_hash=given))


def test_hash_of_a_file_that_the_agent_wrote_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    digest = hashlib.sha256(b"x").hexdigest()
    take(tmp_path, file("a", None, content_hash=digest), file("elsewhere", None, content_hash=digest))
    (tmp_path / "a").write_text("y")
    with pytest.raises(ProtocolError, match="is not that of its content"):
        take(tmp_path, file("a", None, content_hash=digest))


BAD = [
    "/etc/x",
    "../x",
    "a/../x",
    "a/..",
    "..",
    "C:x",
    "c:\\x",
    "a\\b",
    "\\\\host\\x",
    "a\0b",
    "",
    ".",
    "./",
    "//x",
    "a" * 5000,
]


@pytest.mark.parametrize("path", BAD)
@pytest.mark.parametrize("kind", ["file", "reference"])
def test_paths_that_could_lead_out(tmp_path: Path, path: str, kind: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with pytest.raises((ProtocolError, msgspec.ValidationError)):
        take(workspace, {"type": kind, "path": path} | ({"content": "x"} if kind == "file" else {}))
    assert everything(tmp_path) == {}


def test_planted_links_are_not_followed_out(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    outside.mkdir()
    workspace.mkdir()
    (outside / "mine.txt").write_text("mine")
    (workspace / "folder").symlink_to(outside)
    (workspace / "deep").mkdir()
    (workspace / "deep/up").symlink_to("../../outside")
    (workspace / "ring").symlink_to("ring")
    for path in ("folder/mine.txt", "folder/new.txt", "deep/up/mine.txt", "deep/up/a/b.txt"):
        with pytest.raises(ProtocolError, match="leads out of the workspace"):
            take(workspace, file(path))
    with pytest.raises(ProtocolError):
        take(workspace, file("ring/x.txt"))
    assert everything(outside) == {"mine.txt": "mine"}


def test_links_to_files_are_replaced_and_not_written_through(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    (workspace / "soft.txt").symlink_to(mine)
    os.link(mine, workspace / "hard.txt")
    take(workspace, file("soft.txt", "new"), file("hard.txt", "new"))
    assert mine.read_text() == "mine"
    assert everything(workspace) == {"soft.txt": "new", "hard.txt": "new"}


def test_links_within_the_workspace_work(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    take(tmp_path, file("alias/a.txt"))
    assert (tmp_path / "real/a.txt").read_text() == "x"


def test_workspace_that_is_itself_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    take(tmp_path / "alias", file("a/b.txt"))
    assert (tmp_path / "real/a/b.txt").read_text() == "x"


def test_places_that_are_taken(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("f")
    for path in ("folder", "file/x", "x" * 300):
        with pytest.raises(ProtocolError, match="could not be written"):
            take(tmp_path, file(path))
    assert everything(tmp_path) == {"file": "f"}


def test_full_disk_is_not_the_agents_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(AgentError, match="No space left") as caught:
        take(tmp_path, file("a"))
    assert caught.value.blame == "environment"
    assert everything(tmp_path) == {}


_STEP = st.sampled_from(["..", ".", "a", "b", "link", "up", "", "~", "C:", "\\", "é", "a b", "..."]) | st.text(
    max_size=4
)


@given(st.builds(lambda steps, slash: slash + "/".join(steps), st.lists(_STEP, max_size=5), st.sampled_from(["", "/"])))
def test_no_path_leads_out(path: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        workspace, outside = root / "workspace", root / "outside"
        (workspace / "a").mkdir(parents=True)
        outside.mkdir()
        (workspace / "link").symlink_to(outside)
        (workspace / "a/up").symlink_to("../..")
        try:
            (made,) = take(workspace, file(path, "content"))
        except (ProtocolError, msgspec.ValidationError):
            assert sorted(everything(root)) == ["workspace/a/up", "workspace/link"]
        else:
            assert (workspace / made.name).read_text() == "content"
            assert (workspace / made.name).resolve().is_relative_to(workspace.resolve())
            new = {one for one in everything(root) if not one.startswith("workspace/")}
            assert not new
