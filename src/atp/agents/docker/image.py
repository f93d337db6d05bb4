"""Images: found by name, fetched with `pull`, or built from a folder with `build`."""

import asyncio
import hashlib
import os
import re
import stat
import tarfile
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from weakref import WeakValueDictionary

from aiodocker.exceptions import DockerError

from atp.agents.adapter import AgentError
from atp.agents.docker.engine import Engine
from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.suite.agent import DockerConfig
from atp.suite.record import compile_regex
from atp.usercode.threads import in_thread

BUILT = "atp-build"
"""The name of the images that ATP builds. The tag is a hash of the folder."""
_TAIL = 12
Read = TypeVar("Read")
_BUILDING: "WeakValueDictionary[str, asyncio.Lock]" = WeakValueDictionary()
"""Locks by engine and tag, so that agents with the same folder build one image."""
_ALWAYS = ("Dockerfile", ".dockerignore")
"""The builder needs these files, whatever `.dockerignore` says."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image on the engine."""

    id: str
    """The content's id. What a name refers to may change during a run."""
    architecture: str
    """The architecture that the image was built for."""


async def find_image(engine: Engine, config: DockerConfig, base: Path) -> Image:
    """Find, fetch or build the image of an agent. Raises `AgentError`."""
    if config.build is not None:
        return await _build(engine, base, config.build, config.pull)
    assert config.image is not None, "the configuration has one of the two"
    found = await _inspect(engine, config.image)
    if found is None and config.pull:
        await _pull(engine, config.image)
        found = await _inspect(engine, config.image)
    if found is None:
        raise AgentError(
            f"there is no image `{config.image}` on the container engine at {engine.address.url}: "
            "write `pull: true` to fetch it, or `build:` to build it",
            "environment",
        )
    return found


async def _inspect(engine: Engine, name: str) -> Image | None:
    with engine.explained(f"the image `{name}` can't be looked at"):
        try:
            about = await engine.docker.images.inspect(name)
        except DockerError as error:
            if error.status == 404:
                return None
            raise
    return Image(about["Id"], about.get("Architecture") or "")


async def _pull(engine: Engine, name: str) -> None:
    with engine.explained(f"the image `{name}` can't be fetched"):
        await engine.docker.images.pull(name)


async def _build(engine: Engine, base: Path, folder: str, pull: bool) -> Image:
    context = await in_thread(lambda: BuildContext(base / Path(folder).expanduser()))
    tag = f"{BUILT}:{(await _read_files(context.digest))[:32]}"
    async with _BUILDING.setdefault(f"{id(asyncio.get_running_loop())} {engine.address.url} {tag}", asyncio.Lock()):
        found = await _inspect(engine, tag)
        if found is None:
            await _find_base_images(engine, context, pull)
            await _run_build(engine, context, tag)
            found = await _inspect(engine, tag)
    if found is None:
        raise AgentError(f"the image of {folder} was built, but the container engine doesn't have it", "environment")
    return found


async def _read_files(read: Callable[[], Read]) -> Read:
    try:
        return await in_thread(read)
    except OSError as error:
        raise AgentError(f"the image can't be built: {error}", "environment") from error


async def _find_base_images(engine: Engine, context: "BuildContext", pull: bool) -> None:
    """Fetch missing base images only with `pull`, because a builder would fetch them without asking."""
    for name in context.images():
        if await _inspect(engine, name) is not None:
            continue
        if not pull:
            raise AgentError(
                f"{context.folder / 'Dockerfile'} needs the image `{name}`, which the container engine doesn't have: "
                "write `pull: true` to fetch it",
                "environment",
            )
        await _pull(engine, name)


async def _run_build(engine: Engine, context: "BuildContext", tag: str) -> None:
    output: deque[str] = deque(maxlen=_TAIL)
    with tempfile.TemporaryFile(prefix="atp-build-") as archive:
        await _read_files(lambda: context.pack(archive))
        try:
            with engine.explained(f"the image can't be built from {context.folder}"):
                await _follow_build(engine, archive, tag, output)
        except AgentError as error:
            message = cut("\n".join([str(error), *output]), RAW_LENGTH)
            raise AgentError(message, error.blame, retryable=error.retryable) from error


async def _follow_build(engine: Engine, archive: IO[bytes], tag: str, output: deque[str]) -> None:
    """Build, and collect the builder's output."""
    steps = engine.docker.images.build(
        fileobj=archive, encoding="identity", tag=tag, forcerm=True, labels={"atp.build": "1"}, stream=True
    )
    async for step in steps:
        output.extend(line for line in str(step.get("stream", "")).splitlines() if line.strip())


class BuildContext:
    """The files that an image is built from: a folder without what its `.dockerignore` names. Raises `AgentError`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.dockerfile = (folder / "Dockerfile").read_text(encoding="utf-8", errors="replace")
            self._ignored = _Ignored(folder / ".dockerignore")
            self._names = sorted(self._walk(""))
        except OSError as error:
            raise AgentError(f"there is nothing to build in {folder}: {error}", "environment") from error

    def digest(self) -> str:
        """Hash the files' names, permissions and content."""
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
        """Write the archive that the engine builds from. All files in it belong to root, as Docker has it."""
        with tarfile.open(fileobj=into, mode="w") as archive:
            for name in self._names:
                archive.add(self.folder / name, arcname=name, recursive=False, filter=_of_root)
        into.seek(0)

    def images(self) -> list[str]:
        """Return the images that the Dockerfile starts or copies from."""
        return list(dict.fromkeys(_images(self.dockerfile)))

    def _walk(self, inside: str) -> Iterator[str]:
        with os.scandir(self.folder / inside) as entries:
            for entry in entries:
                name = f"{inside}/{entry.name}" if inside else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if name in _ALWAYS or not self._ignored.has(name):
                    yield name
                if is_folder and (self._ignored.includes_again or not self._ignored.has(name)):
                    yield from self._walk(name)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class _Ignored:
    """The patterns of a `.dockerignore`: the last that matches decides, and `!` includes a file again."""

    def __init__(self, path: Path) -> None:
        self._patterns: list[tuple[re.Pattern[str], bool]] = []
        if path.is_file():
            for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines():
                self._add(line.strip())
        self.includes_again = any(not ignored for _, ignored in self._patterns)
        """True if a file below an ignored folder may be included again."""

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
    """Translate a pattern of Go's `filepath.Match`, with `**` for any number of folders."""

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
    """Yield the images that a Dockerfile names, other than its own stages."""
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
