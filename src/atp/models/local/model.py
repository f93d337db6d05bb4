"""The local model: small, real, on this machine, with no key and no network. It is there to test against."""

import asyncio
import threading
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from atp.base.near import near_miss
from atp.models.connections import Shared
from atp.models.connectors.connector import OPENAI, Connector, Prices
from atp.models.limiter import Limiter
from atp.models.local.files import GGUF, LOCAL_MODELS, named
from atp.models.local.process import Address, LocalServer, server_of
from atp.models.model import Answer, Ask, Model, ModelError, NoModel
from atp.models.openai import OpenAIModel

MAX_TOKENS = 1024
"""Where an answer ends by default: small models can go on for ever."""


class LocalModel(Model):
    """A model on this machine, in a process of its own that starts when it is first asked."""

    type = "local"

    def __init__(self, connector: Connector, shared: Shared) -> None:
        """The connector's `model` is the name of an installed one, or a GGUF file. Raises `NoModel`."""
        self.connector = connector.id
        self.settings = connector.settings
        self._given = connector
        self._shared = shared
        file = self._find()
        if find_spec("xllamacpp") is None:
            raise NoModel("the local model needs the package xllamacpp", "pip install 'agent-test-platform[local]'")
        self._server: LocalServer = server_of(file, self.name)
        self._starting = asyncio.Lock()
        self._address: Address | None = None
        self._client: OpenAIModel | None = None
        self._guard = threading.Lock()
        self._closed = False

    async def ask(self, ask: Ask) -> Answer:
        """Answer, one after the other. Raises `ModelError`."""
        async with self._starting:
            client = await self._connect()
        return await client.ask(ask)

    async def close(self) -> None:
        """End the process, unless other models here need it, too."""
        await asyncio.to_thread(self._stop)
        if self._client is not None:
            await self._client.close()

    def _find(self) -> Path:
        """The model's file."""
        wanted = self._given.model
        self.name, known = named(wanted)
        if known is not None:
            self.unfit_to_judge = known.unfit_to_judge
            if not known.is_installed(self._shared.env):
                raise NoModel(f"the local model {known.name} is not installed", f"atp models install {known.name}")
            return known.path(self._shared.env)
        file = self._shared.root / Path(wanted).expanduser()
        if not wanted.endswith(GGUF):
            meant = near_miss(wanted, LOCAL_MODELS) or ", ".join(LOCAL_MODELS)
            raise NoModel(
                f"the connector `{self.connector}` names the local model `{wanted}`, which ATP doesn't know",
                f"there is {meant}, or give the path of a {GGUF} file",
            )
        if not file.is_file():
            raise NoModel(f"the connector `{self.connector}` names the model file {file}, which is not there")
        return file

    async def _connect(self) -> OpenAIModel:
        address = await asyncio.to_thread(self._start)
        if self._client is None or address != self._address:
            connector = replace(
                self._given,
                type=OPENAI,
                model=self.name,
                host=f"{address.url}/v1",
                key=address.key,
                settings={"max_tokens": MAX_TOKENS, **self.settings},
                prices=self._given.prices or Prices(input=0, output=0),
                retries=0,  # a server of our own that fails has died, and is started again when next asked
                native_schema=True,
            )
            # Who waits for another's answer must not use up the time that the own one may take.
            self._shared.provider(address.url, address.key).limiter = Limiter(1, 1)
            self._client, self._address = OpenAIModel(connector, self._shared), address
        return self._client

    def _start(self) -> Address:
        with self._guard:
            if self._closed:  # who asked has been cancelled, and this thread came late
                raise ModelError(f"the local model {self.name} is closed")
            return self._server.start(self)

    def _stop(self) -> None:
        with self._guard:
            self._closed = True
            self._server.stop(self)
