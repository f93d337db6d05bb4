"""The folder that an image is built from: what belongs to it, and what tells one state of it from another."""

import hashlib
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from atp.agents.adapter import AgentError
from atp.suite.record import compile_regex

_ALWAYS = ("Dockerfile", ".dockerignore")
"""The builder needs these, whatever `.dockerignore` says."""


class BuildContext:
    """The files of a folder, without those that its `.dockerignore` names. Raises `AgentError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.dockerfile = (folder / "Dockerfile").read_text(encoding="utf-8", errors="replace")
            self._ignored = _Ignored(folder / ".dockerignore")
            self._names = sorted(self._walk(""))
        except OSError as error:
            raise AgentError(f"there is nothing to build in {folder}: {error}", "environment") from error

    def digest(self) -> str:
        """A hash of the files' names, rights and content."""
        found = hashlib.sha256()
        for name in self._names:
            path = self.folder / name
            about = path.lstat()
            found.update(f"{name}\0{stat.filemode(about.st_mode)}\0".encode(errors="surrogateescape"))
            if stat.S_ISLNK(about.st_mode):
                found.update(os.fsencode(os.readlink(path)))
            elif stat.S_ISREG(about.st_mode):
                with path.open("rb") as file:
                    found.update(hashlib.file_digest(file, "sha256").digest())
            found.update(b"\0")
        return found.hexdigest()

    def pack(self, into: IO[bytes]) -> None:
        """Write the archive that the engine builds from; everything in it belongs to root, as Docker has it."""
        with tarfile.open(fileobj=into, mode="w") as archive:
            for name in self._names:
                archive.add(self.folder / name, arcname=name, recursive=False, filter=_of_root)
        into.seek(0)

    def images(self) -> list[str]:
        """The images that the Dockerfile starts or copies from."""
        return list(dict.fromkeys(_images(self.dockerfile)))

    def _walk(self, inside: str) -> Iterator[str]:
        with os.scandir(self.folder / inside) as entries:
            for entry in entries:
                name = f"{inside}/{entry.name}" if inside else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if name in _ALWAYS or not self._ignored.has(name):
                    yield name
                if is_folder and (self._ignored.readmits or not self._ignored.has(name)):
                    yield from self._walk(name)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class _Ignored:
    """The patterns of a `.dockerignore`: the last that fits decides, and one with `!` takes a file back in."""

    def __init__(self, path: Path) -> None:
        self._patterns: list[tuple[re.Pattern[str], bool]] = []
        if path.is_file():
            for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines():
                self._add(line.strip())
        self.readmits = any(not ignored for _, ignored in self._patterns)
        """Something below a folder that is ignored may be wanted."""

    def _add(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        ignored = not line.startswith("!")
        written = line if ignored else line[1:].strip()
        pattern = os.path.normpath(written).strip("/") if written else ""
        if pattern in ("", "."):
            return
        try:
            self._patterns.append((compile_regex(f"(?s:{_regex(pattern)}(?:/.*)?)"), ignored))
        except re.error as error:
            raise AgentError(f"`.dockerignore`: `{written}` is not a pattern: {error}", "environment") from error

    def has(self, name: str) -> bool:
        found = False
        for pattern, ignored in self._patterns:
            if pattern.fullmatch(name):
                found = ignored
        return found


_GLOB = re.compile(r"(\*\*/)|(\*\*)|(\*)|(\?)|\\(.)|(\[\^?[^\]]+\])|(.)", re.DOTALL)


def _regex(pattern: str) -> str:
    """A pattern in the form of Go's `filepath.Match`, with `**` for any number of folders."""

    def part(found: re.Match[str]) -> str:
        folders, anything, some, one, escaped, choice, letter = found.groups()
        if folders:
            return "(?:.*/)?"
        if anything:
            return ".*"
        if some or one:
            return "[^/]*" if some else "[^/]"
        return choice or re.escape(escaped or letter)

    return _GLOB.sub(part, pattern)


_LINE = re.compile(
    r"^\s*(?:(?P<arg>ARG)\s+(?P<name>\w+)=(?P<default>\S*)"
    r"|FROM\s+(?:--\S+\s+)*(?P<base>\S+)(?:\s+AS\s+(?P<stage>\S+))?"
    r"|COPY\s+(?:--\S+\s+)*?--from=(?P<source>\S+))",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::-([^}]*))?\})")


def _images(dockerfile: str) -> Iterator[str]:
    """The images that lines name, other than earlier stages."""
    defaults: dict[str, str] = {}
    stages: set[str] = {"scratch"}
    for line in re.sub(r"\\\s*\n", " ", dockerfile).splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        if found["arg"]:
            defaults.setdefault(found["name"], found["default"].strip("\"'"))
            continue
        named = found["base"] or found["source"]
        image = _VARIABLE.sub(lambda one: defaults.get(one[1] or one[2]) or one[3] or "", named)
        if image and image.lower() not in stages and not image.isdecimal():
            yield image
        if found["stage"]:
            stages.add(found["stage"].lower())
