"""Asking models in tests, in both formats."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.models.mock_server import Behaviour, MockModels

from atp.models.connectors.registry import Models
from atp.models.model import Model, ModelAnswer, ModelError, ModelRequest

FORMATS = ("openai", "anthropic")


class Asked:
    """A model of one format on a mock server."""

    def __init__(self, model: Model, server: MockModels, models: Models) -> None:
        self.model = model
        self.server = server
        self.models = models

    async def ask(self, prompt: str = "Hello there", **more: Any) -> ModelAnswer:
        messages = more.pop("messages", [{"role": "user", "content": prompt}])
        return await self.model.ask(ModelRequest(messages=messages, **more))

    async def fail(self, prompt: str = "Hello there", **more: Any) -> ModelError:
        try:
            answer = await self.ask(prompt, **more)
        except ModelError as error:
            return error
        raise AssertionError(f"it answered {answer}")


@asynccontextmanager
async def asking(
    format_: str,
    behaviour: Behaviour = None,
    *,
    takes_schemas: bool = True,
    **connector: Any,
) -> AsyncIterator[Asked]:
    """A model behind a connector with these keys, on a server that takes schemas or refuses them."""
    async with MockModels(behaviour, native_schema=takes_schemas) as server:
        host = server.openai if format_ == "openai" else server.anthropic
        table = {"type": format_, "model": "m1", "host": host, "key": server.key, **connector}
        models = Models(Path("/nowhere"), {}, {"tested": table})
        try:
            yield Asked(models.get("tested", "a test"), server, models)
        finally:
            await models.close()
