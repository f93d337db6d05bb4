"""Files and artifacts that the agent made, and a safe way to their content.

They were named by an agent: a file may be a link that leads out of the workspace, a pipe, or endless.
"""

import base64
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atp.base.canonical_json import canonical
from atp.base.found_json import read_whole
from atp.checks.evidence import Evidence
from atp.checks.globs import is_glob, matches_glob, normal_path
from atp.checks.subject import Subject
from atp.suite.result import Artifact

LARGEST = 64 * 1024 * 1024
"""Bytes; a larger file is not read."""
_LONGEST_NAME = 1024
"""Characters; a longer name fits no glob."""


class Unreadable(Exception):
    """Content that can't be had, for a reason that isn't the agent's."""


class NoFile(Exception):
    """Something that only looks like a file."""


class Made:
    """A file or artifact that the agent made."""

    def __init__(self, name: str, source: Path | Artifact) -> None:
        self.name = name
        self._source = source

    def must_be_a_file(self) -> None:
        """Raises `NoFile` if it is something else."""
        if isinstance(self._source, Path) and not stat.S_ISREG(self._source.lstat().st_mode):
            _real_file(self._source, self.name)

    def size(self) -> int:
        """How many bytes it has."""
        if isinstance(self._source, Path):
            return _real_file(self._source, self.name).stat().st_size
        return len(self.content())

    def content(self) -> bytes:
        """Its bytes."""
        source = self._source
        if isinstance(source, Path):
            return _read(_real_file(source, self.name))
        if source.kind == "structured":
            return canonical(source.data).encode(errors="surrogatepass")
        if source.text is not None:
            return source.text.encode(errors="surrogatepass")
        try:
            return base64.b64decode(source.base64 or "")
        except ValueError as error:
            raise NoFile(f"its base64 can't be decoded: {error}") from error

    def data(self) -> Any:
        """Its content as a JSON value, or `MISSING`."""
        if isinstance(self._source, Artifact) and self._source.kind == "structured":
            return self._source.data
        return read_whole(self.content().decode(errors="replace"))

    def subject(self) -> Subject:
        """Its content, to be looked at."""
        if isinstance(self._source, Artifact) and self._source.kind == "structured":
            content = self._source.data
        else:
            content = self.content().decode(errors="replace")
        return Subject(content, f"`{self.name}`", f"artifact {self.name}")


def _real_file(path: Path, name: str) -> Path:
    root = path.parents[name.count("/")]
    try:
        real = path.resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
        inside = real.is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:
        raise NoFile(f"it leads nowhere ({error})") from error
    if not inside:
        raise NoFile("it is a link that leads out of the workspace")
    if not regular:
        raise NoFile("it is not a regular file")
    return real


def _read(path: Path) -> bytes:
    try:
        # Had a pipe taken the file's place by now, opening it would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise Unreadable(f"it can't be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST >> 20} MB")
    return content


def made_at(path: str, evidence: Evidence) -> Iterator[Made]:
    """All that the agent made under this path or glob. What it only speaks of must be in the workspace."""
    wanted = normal_path(path)
    glob = is_glob(wanted)

    def is_wanted(name: str) -> bool:
        return name == wanted or (glob and len(name) <= _LONGEST_NAME and matches_glob(wanted, name))

    for name, file in evidence.made.items():
        if is_wanted(name):
            yield Made(name, file)
    for artifact in evidence.transcript.artifacts:
        has_content = artifact.kind == "structured" or artifact.text is not None or artifact.base64 is not None
        if has_content and is_wanted(name := normal_path(artifact.name)):
            yield Made(name, artifact)
