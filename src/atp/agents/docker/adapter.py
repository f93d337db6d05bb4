"""The base of both adapters of containers: connects to the engine, has the image, and removes all containers."""

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
from atp.agents.docker.engine import Engine, check_engine
from atp.agents.docker.image import Image, find_image
from atp.agents.docker.leftovers import labels, remove_leftovers, remove_own
from atp.agents.docker.settings import Settings
from atp.base.errors import ConfigurationError
from atp.suite.agent import Agent, DockerConfig

CLOSING_SECONDS = 30.0
"""Seconds that `close` may wait for containers that are being removed."""


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
        """True if a container could not be removed after its turn."""

    async def start(self) -> None:
        """Connect to the engine, remove containers of earlier runs, and find or build the image."""
        self._starting = asyncio.current_task()
        try:
            self._opened = engine = await Engine.open(self._context.environment)
            with engine.explained("containers of earlier runs can't be listed"):
                await remove_leftovers(engine)
            self._notes = self._settings.check(engine)
            self._image = await find_image(engine, self._config, self._context.base)
            await self._start_server()
        finally:
            self._starting = None

    async def check(self) -> list[Finding]:
        """Look for the engine and the image, and with `port` whether the server gets ready."""
        engine = await check_engine(self._context.environment)
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
    async def _start_server(self) -> None:
        """Start what runs between turns."""

    async def _stop_server(self) -> None:
        """Stop what runs between turns."""

    @property
    def _engine(self) -> Engine:
        assert self._opened is not None, "start() was called"
        return self._opened

    async def close(self) -> None:
        """Remove all containers, and disconnect."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._opened is None:
            return
        try:
            await self._stop_server()
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
        """Return a container that is not created yet, labelled with its run, adapter, agent and case."""
        named = re.sub(r"[^a-zA-Z0-9_.-]+", "-", self._agent_name)[:40]
        about = {"atp.agent": self._agent_name, "atp.case": case}
        settings["Labels"] = {**labels(self._context.marker, self._id), **about}
        return Container(self._engine, f"atp-{named}-{secrets.token_hex(6)}", settings)

    async def _remove(self, container: Container) -> None:
        """Remove a container, even if the caller is cancelled meanwhile."""
        removal = asyncio.ensure_future(self._removed(container))
        self._removals.add(removal)
        removal.add_done_callback(self._removals.discard)
        await asyncio.shield(removal)

    async def _removed(self, container: Container) -> None:
        try:
            await container.remove()
        except AgentError:
            self._stuck = True  # close() tries again, and raises then

    def _bad_end(self, ended: Ended, tail: str) -> AgentError | str:
        """Explain a bad end: an `AgentError` if the environment is to blame, else text about what the agent did."""
        if ended.killed and ended.out_of_memory:
            return f"out of memory: it needs more than `memory: {self._config.memory}` ({ended})"
        if ended.killed:  # not by ATP; some engines don't report who did it
            return f"{ended}, perhaps for want of memory: it has `memory: {self._config.memory}`"
        ours, theirs = self._engine.architecture, self._image.architecture
        if "exec format error" in tail and theirs not in ("", ours):
            return AgentError(
                f"the image is built for {theirs}, but the container engine runs {ours}: build it for {ours}",
                "environment",
            )
        return str(ended)
