"""Images: found by name, fetched or built if that is asked for."""

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar
from weakref import WeakValueDictionary

from aiodocker.exceptions import DockerError

from atp.agents.adapter import AgentError
from atp.agents.docker.context import BuildContext
from atp.agents.docker.engine import Engine
from atp.agents.wire import RAW_LENGTH
from atp.base.text import cut
from atp.suite.agent import DockerConfig
from atp.usercode.threads import in_thread

BUILT = "atp-build"
"""The name of the images that we build; the tag says what is in them."""
_TAIL = 12
Read = TypeVar("Read")
_BUILDING: "WeakValueDictionary[str, asyncio.Lock]" = WeakValueDictionary()
"""Agents that share a folder build it once."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the engine has."""

    id: str
    """Its own, which doesn't change while we run, as what a name stands for may."""
    architecture: str
    """What it was built for."""


async def find_image(engine: Engine, config: DockerConfig, base: Path) -> Image:
    """The image of an agent. Raises `AgentError` when it can't be had."""
    if config.build is not None:
        return await _build(engine, base, config.build, config.pull)
    assert config.image is not None, "the configuration has one of the two"
    found = await _inspect(engine, config.image)
    if found is None and config.pull:
        await _pull(engine, config.image)
        found = await _inspect(engine, config.image)
    if found is None:
        raise AgentError(
            f"there is no image `{config.image}` on the container engine at {engine.place.url}: "
            "write `pull: true` to fetch it, or `build:` to build it",
            "environment",
        )
    return found


async def _inspect(engine: Engine, name: str) -> Image | None:
    with engine.asked(f"the image `{name}` can't be looked at"):
        try:
            about = await engine.docker.images.inspect(name)
        except DockerError as error:
            if error.status == 404:
                return None
            raise
    return Image(about["Id"], about.get("Architecture") or "")


async def _pull(engine: Engine, name: str) -> None:
    with engine.asked(f"the image `{name}` can't be fetched"):
        await engine.docker.images.pull(name)


async def _build(engine: Engine, base: Path, folder: str, pull: bool) -> Image:
    context = await in_thread(lambda: BuildContext(base / Path(folder).expanduser()))
    tag = f"{BUILT}:{(await _of_files(context.digest))[:32]}"
    async with _BUILDING.setdefault(f"{id(asyncio.get_running_loop())} {engine.place.url} {tag}", asyncio.Lock()):
        found = await _inspect(engine, tag)
        if found is None:
            await _have_bases(engine, context, pull)
            await _carry_out(engine, context, tag)
            found = await _inspect(engine, tag)
    if found is None:
        raise AgentError(f"the image of {folder} was built, but the container engine doesn't have it", "environment")
    return found


async def _of_files(read: Callable[[], Read]) -> Read:
    try:
        return await in_thread(read)
    except OSError as error:
        raise AgentError(f"the image can't be built: {error}", "environment") from error


async def _have_bases(engine: Engine, context: BuildContext, pull: bool) -> None:
    """A builder fetches what it misses without asking; we don't."""
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


async def _carry_out(engine: Engine, context: BuildContext, tag: str) -> None:
    said: deque[str] = deque(maxlen=_TAIL)
    with tempfile.TemporaryFile(prefix="atp-build-") as archive:
        await _of_files(lambda: context.pack(archive))
        try:
            with engine.asked(f"the image can't be built from {context.folder}"):
                await _follow(engine, archive, tag, said)
        except AgentError as error:
            told = cut("\n".join([str(error), *said]), RAW_LENGTH)
            raise AgentError(told, error.blame, retryable=error.retryable) from error


async def _follow(engine: Engine, archive: IO[bytes], tag: str, said: deque[str]) -> None:
    """Build, and hear what the builder says."""
    steps = engine.docker.images.build(
        fileobj=archive, encoding="identity", tag=tag, forcerm=True, labels={"atp.build": "1"}, stream=True
    )
    async for step in steps:
        said.extend(line for line in str(step.get("stream", "")).splitlines() if line.strip())
