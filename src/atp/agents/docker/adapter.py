"""What both kinds of agents in containers share: an engine, an image, and containers that don't outlive them."""

import asyncio
import os
import re
import secrets
from abc import abstractmethod
from pathlib import Path
from typing import Any

import aiohttp
from aiodocker.exceptions import DockerError

from atp.agents.adapter import Adapter, AdapterContext, AgentError, Finding
from atp.agents.docker.container import Container, Ended
from atp.agents.docker.engine import Engine
from atp.agents.docker.image import Image, find_image
from atp.agents.docker.leftovers import labels, remove_leftovers, remove_own
from atp.agents.docker.settings import Settings
from atp.agents.needs import engine_found
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent, DockerConfig

CLOSING_SECONDS = 30.0
"""How long the end may wait for containers that are being removed."""


class DockerAdapter(Adapter):
    """An agent in containers."""

    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        config: DockerConfig = agent.config
        self._config = config
        self._agent_name = agent.name
        self._context = context
        self._settings = Settings(config, context.base)
        if config.build is not None:
            folder = context.base / config.build
            if not (folder / "Dockerfile").is_file():
                raise ConfigurationError(
                    f"`build`: there is no Dockerfile in {folder}",
                    "`build` is a folder, seen from the file that names it",
                )
            self.files = sorted(Path(here, name) for here, _, names in os.walk(folder) for name in names)
        self._id = secrets.token_hex(8)
        self._starting: asyncio.Task[Any] | None = None
        self._opened: Engine | None = None
        self._image = Image("", "")
        self._notes: list[str] = []
        self._removals: set[asyncio.Task[None]] = set()
        self._stuck = False
        """A container could not be removed when its time had come."""

    async def start(self) -> None:
        """Find the engine, remove what earlier runs left on it, and have the image."""
        self._starting = asyncio.current_task()
        try:
            self._opened = engine = await Engine.open(self._context.environment)
            with engine.asked("containers of earlier runs can't be listed"):
                await remove_leftovers(engine)
            self._notes = self._settings.check(engine)
            self._image = await find_image(engine, self._config, self._context.base)
            await self._settle_in()
        finally:
            self._starting = None

    async def check(self) -> list[Finding]:
        """See that there is an engine and the image, and with `port` that the server gets ready."""
        engine = await engine_found(self._context.environment)
        if not engine.ok:
            return [engine]
        what = "image" if self._config.port is None else "server"
        try:
            await self.start()
        except AgentError as error:
            return [engine, Finding(what=what, ok=False, detail=str(error))]
        image = Finding(what=what, ok=True, detail=self._config.image or f"built from {self._config.build}")
        return [engine, image, *(Finding(what="limit", ok=True, detail=note) for note in self._notes)]

    @abstractmethod
    async def _settle_in(self) -> None:
        """What is left to do before the first turn."""

    async def _move_out(self) -> None:
        """What is to be done after the last turn."""

    @property
    def _engine(self) -> Engine:
        assert self._opened is not None, "it was started"
        return self._opened

    async def close(self) -> None:
        """Remove every container that is left."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._opened is None:
            return
        try:
            await self._move_out()
            if self._removals:
                await asyncio.wait(self._removals, timeout=CLOSING_SECONDS)
            if self._stuck or self._removals:
                await self._remove_rest()
        finally:
            await self._opened.close()
            self._opened = None

    async def _remove_rest(self) -> None:
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await remove_own(self._engine, self._id)
        except (DockerError, aiohttp.ClientError, OSError) as error:
            why = str(error) or type(error).__name__
            raise AgentError(
                f"containers may be left, with the label atp.adapter={self._id}: {why}; the next run removes them",
                "environment",
            ) from error

    def _container(self, settings: dict[str, Any], case: str = "") -> Container:
        """A container that is still to be made, with a name and labels that tell whose it is."""
        named = re.sub(r"[^a-zA-Z0-9_.-]+", "-", self._agent_name)[:40]
        about = {"atp.agent": self._agent_name, "atp.case": case}
        settings["Labels"] = {**labels(self._context.marker, self._id), **about}
        return Container(self._engine, f"atp-{named}-{secrets.token_hex(6)}", settings)

    async def _remove(self, container: Container) -> None:
        """Remove a container, also if we are cancelled meanwhile."""
        removal = asyncio.ensure_future(self._removed(container))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        await asyncio.shield(removal)

    async def _removed(self, container: Container) -> None:
        try:
            await container.remove()
        except AgentError:
            self._stuck = True  # tried again at the end, and told then

    def _bad_end(self, ended: Ended, tail: str) -> AgentError | str:
        """Why a container ended badly: somebody else's error, or in words what the agent did."""
        if ended.killed and ended.out_of_memory:
            return f"out of memory: it needs more than `memory: {self._config.memory}` ({ended})"
        if ended.killed:  # not by us; some engines don't tell who did it
            return f"{ended}, perhaps for want of memory: it has `memory: {self._config.memory}`"
        ours, theirs = self._engine.architecture, self._image.architecture
        if "exec format error" in tail and theirs not in ("", ours):
            return AgentError(
                f"the image is built for {theirs}, but the container engine runs {ours}: build it for {ours}",
                "environment",
            )
        return str(ended)
