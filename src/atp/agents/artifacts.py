"""Artifacts of agents. Their files are written to the trial's workspace, and nowhere else."""

import base64
import binascii
import errno
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from atp.agents.adapter import AgentError
from atp.agents.wire import ProtocolError
from atp.base.files import in_place_of
from atp.base.text import cut
from atp.suite.result import Artifact

_Name = Annotated[str, Meta(min_length=1)]
_Size = Annotated[int, Meta(ge=0)] | None
_DRIVE = re.compile(r"[A-Za-z]:")
_HASH = re.compile(r"(?:(\w+)[:=-])?([0-9a-fA-F]+)")
_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_OURS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE}


class FileArtifact(Struct, tag="file"):
    """A file, with or without its content."""

    path: _Name
    content: str | None = None
    encoding: Literal["base64", "utf-8", "text"] | None = None
    content_type: str | None = None
    size_bytes: _Size = None
    content_hash: str | None = None


class StructuredArtifact(Struct, tag="structured"):
    """Data under a name."""

    name: _Name
    data: Any
    content_type: str | None = None


class ReferenceArtifact(Struct, tag="reference"):
    """A reference to a file that the agent does not send."""

    path: _Name
    content_type: str | None = None
    size_bytes: _Size = None


AnyArtifact = FileArtifact | StructuredArtifact | ReferenceArtifact
_FIELDS = {
    kind: frozenset(("type", *shape.__struct_fields__))
    for kind, shape in (("file", FileArtifact), ("structured", StructuredArtifact), ("reference", ReferenceArtifact))
}
Artifacts = Annotated[list[AnyArtifact], Meta(max_length=1000)]


def unknown_fields(raw: Any) -> dict[str, Any]:
    """Return the keys of artifacts that the protocol does not know, by the artifact's place in the list."""
    found: dict[str, Any] = {}
    for number, one in enumerate(raw or ()):
        if more := {key: value for key, value in one.items() if key not in _FIELDS[one["type"]]}:
            found[str(number)] = more
    return found


def take_in(sent: Iterable[AnyArtifact], workspace: Callable[[], Path]) -> list[Artifact]:
    """Return the artifacts as the transcript keeps them, and write the contents of files to the workspace."""
    return [_take_in(one, workspace) for one in sent]


def _take_in(one: AnyArtifact, workspace: Callable[[], Path]) -> Artifact:
    match one:
        case StructuredArtifact():
            return Artifact(name=one.name, kind="structured", data=one.data, content_type=one.content_type)
        case ReferenceArtifact():
            relative_path(one.path)
            return Artifact(name=one.path, kind="reference", content_type=one.content_type, size_bytes=one.size_bytes)
        case FileArtifact():
            return _take_file_in(one, workspace)


def _take_file_in(one: FileArtifact, workspace: Callable[[], Path]) -> Artifact:
    name = relative_path(one.path)
    made = Artifact(name=name, content_type=one.content_type, size_bytes=one.size_bytes)
    if one.content is None:
        if one.content_hash is not None:
            path = _target(workspace(), name)
            if path.is_file() and not path.is_symlink():  # the agent wrote the file itself
                _check_hash(one.content_hash, path, name)
        return made
    content = _decode(one)
    if one.content_hash is not None:
        _check_hash(one.content_hash, content, name)
    _write(workspace(), name, content)
    if one.encoding == "base64":
        made.base64 = one.content
    else:
        made.text = one.content
    made.size_bytes = len(content)
    made.sha256 = hashlib.sha256(content).hexdigest()
    return made


def _decode(one: FileArtifact) -> bytes:
    assert one.content is not None
    try:
        if one.encoding == "base64":
            return base64.b64decode("".join(one.content.split()), validate=True)
        return one.content.encode()
    except (binascii.Error, ValueError) as error:
        raise ProtocolError(f"the content of `{cut(one.path, 200)}` can't be decoded: {error}") from error


def _stated_hash(given: str, name: str) -> tuple[str, str]:
    """Return the algorithm and the digest of a `content_hash`."""
    match = _HASH.fullmatch(given.strip())
    prefix, digest = match.groups() if match else (None, "")
    algorithm = str(prefix or _BY_LENGTH.get(len(digest), "")).lower()
    if algorithm not in _BY_LENGTH.values():
        raise ProtocolError(f"the content_hash of `{name}` is of no known kind: `{cut(given, 200)}`")
    return algorithm, digest.lower()


def _check_hash(given: str, content: bytes | Path, name: str) -> None:
    algorithm, stated = _stated_hash(given, name)
    if isinstance(content, Path):
        with open(content, "rb") as file:
            found = hashlib.file_digest(file, algorithm).hexdigest()
    else:
        found = hashlib.new(algorithm, content).hexdigest()
    if found != stated:
        raise ProtocolError(f"the content_hash of `{name}` is not that of its content")


def relative_path(path: str) -> str:
    """Normalise a relative path. Raises `ProtocolError` for a path that could lead out of the workspace."""
    shown = cut(path, 200)
    if path.startswith("/") or "\\" in path or _DRIVE.match(path):
        raise ProtocolError(f"the path `{shown}` is not relative")
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if ".." in steps:
        raise ProtocolError(f"the path `{shown}` has `..` in it")
    if not steps or "\0" in path or len(path) > 4096:
        raise ProtocolError(f"`{shown}` is not a path")
    return "/".join(steps)


def _target(workspace: Path, name: str) -> Path:
    """Return the path to write to. Links are resolved here, once, so that none leads out of the workspace."""
    root = workspace.resolve()
    path = root / name
    try:
        folder = path.parent.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, or no valid path
        raise ProtocolError(f"the path `{cut(name, 200)}` leads nowhere") from error
    if not folder.is_relative_to(root):
        raise ProtocolError(f"the path `{cut(name, 200)}` leads out of the workspace")
    return folder / path.name


def _write(workspace: Path, name: str, content: bytes) -> None:
    """Write a file into the workspace. An existing file or link is replaced, never written to."""
    path = _target(workspace, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with in_place_of(path) as file:
            file.write(content)
    except (OSError, ValueError, RecursionError) as error:  # `mkdir` calls itself for each folder above
        if isinstance(error, OSError) and error.errno in _OURS:
            raise AgentError(f"the artifact `{name}` could not be written: {error.strerror}", "environment") from error
        why = error.strerror if isinstance(error, OSError) else "it can't be the name of a file"
        raise ProtocolError(f"the artifact `{cut(name, 200)}` could not be written: {why}") from error
