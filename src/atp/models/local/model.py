"""The local model: a small one on this machine, without key or network, to test against."""

import asyncio
import threading
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from atp.base.errors import ConfigurationError, install_extra
from atp.base.near import near_miss
from atp.models.connections import Limiter, ModelContext
from atp.models.connectors.connector import OPENAI, Connector, Prices
from atp.models.local.files import GGUF, LOCAL_MODELS, named
from atp.models.local.process import Address, LocalServer, server_of
from atp.models.model import Model, ModelAnswer, ModelError, ModelRequest
from atp.models.openai import OpenAIModel

MAX_TOKENS = 1024
"""The default limit of an answer: small models may never stop."""


class LocalModel(Model):
    """A model on this machine, in a process of its own that starts with the first request."""

    type = "local"

    def __init__(self, connector: Connector, context: ModelContext) -> None:
        """The connector's `model` is the name of an installed one, or a GGUF file. Raises `ConfigurationError`."""
        self.connector = connector.id
        self.settings = connector.settings
        self._connector = connector
        self._context = context
        file = self._find()
        if find_spec("xllamacpp") is None:
            raise ConfigurationError("the local model needs the package xllamacpp", install_extra("local"))
        self._server: LocalServer = server_of(file, self.name)
        self._starting = asyncio.Lock()
        self._address: Address | None = None
        self._client: OpenAIModel | None = None
        self._guard = threading.Lock()
        self._closed = False

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Answer a request; requests are answered one after the other. Raises `ModelError`."""
        async with self._starting:
            client = await self._connect()
        return await client.ask(request)

    async def close(self) -> None:
        """End the process, unless other models of this process use it."""
        await asyncio.to_thread(self._stop)
        if self._client is not None:
            await self._client.close()

    def _find(self) -> Path:
        """The model's file."""
        model = self._connector.model
        self.name, known = named(model)
        if known is not None:
            self.unfit_to_judge = known.unfit_to_judge
            if not known.is_installed(self._context.env):
                raise ConfigurationError(
                    f"the local model {known.name} is not installed", f"atp models install {known.name}"
                )
            return known.path(self._context.env)
        file = self._context.root / Path(model).expanduser()
        if not model.endswith(GGUF):
            meant = near_miss(model, LOCAL_MODELS) or ", ".join(LOCAL_MODELS)
            raise ConfigurationError(
                f"the connector `{self.connector}` names the local model `{model}`, which ATP doesn't know",
                f"there is {meant}, or give the path of a {GGUF} file",
            )
        if not file.is_file():
            raise ConfigurationError(
                f"the connector `{self.connector}` names the model file {file}, which is not there"
            )
        return file

    async def _connect(self) -> OpenAIModel:
        address = await asyncio.to_thread(self._start)
        if self._client is None or address != self._address:
            connector = replace(
                self._connector,
                type=OPENAI,
                model=self.name,
                host=f"{address.url}/v1",
                key=address.key,
                settings={"max_tokens": MAX_TOKENS, **self.settings},
                prices=self._connector.prices or Prices(input=0, output=0),
                retries=0,  # a server of ours that fails has died; the next request starts another
                native_schema=True,
            )
            # One at a time: waiting in the server would count towards a request's own time limit.
            self._context.provider(address.url, address.key).limiter = Limiter(1, 1)
            self._client, self._address = OpenAIModel(connector, self._context), address
        return self._client

    def _start(self) -> Address:
        with self._guard:
            if self._closed:  # the request was cancelled before this thread ran
                raise ModelError(f"the local model {self.name} is closed")
            return self._server.start(self)

    def _stop(self) -> None:
        with self._guard:
            self._closed = True
            self._server.stop(self)
