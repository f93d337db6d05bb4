"""Models whose answers are recorded to a cassette or replayed from one."""

from copy import copy
from typing import Any, Self

import msgspec

from atp.models.cassettes.cassette import Cassette
from atp.models.connectors.connector import LOCAL, Connector
from atp.models.local.files import named
from atp.models.model import CassetteError, Model, ModelAnswer, ModelRequest


class ReplayedModel(Model):
    """A model that answers from a cassette only, without key or network."""

    def __init__(
        self,
        connector: str,
        name: str,
        settings: dict[str, Any],
        cassette: Cassette,
        unfit_to_judge: str | None = None,
    ) -> None:
        self.connector = connector
        self.name = name
        self.settings = settings
        self.unfit_to_judge = unfit_to_judge
        self._cassette = cassette
        self._further_connector: str | None = None

    def of_connector(self, connector: str | None) -> Self:
        """Return the model with the connector in the key of its recordings; none keeps the key without one."""
        if connector == self._further_connector:
            return self
        made = copy(self)
        made._further_connector = connector
        return made

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """The recorded answer. Raises `CassetteMiss`, and `ModelError` when recording."""
        live: list[ModelAnswer] = []

        async def call() -> Any:
            live.append(await self._live_answer(request))
            return msgspec.to_builtins(live[0])

        found = await self._cassette.through("model", self._parts(request), call)
        try:
            if isinstance(found, dict) and (unknown := sorted(found.keys() - set(ModelAnswer.__struct_fields__))):
                raise msgspec.ValidationError(f"answers have no field `{unknown[0]}`")
            answer = msgspec.convert(found, ModelAnswer)
        except msgspec.ValidationError as error:
            message = f"an answer of {self.name} in {self._cassette.folder} can't be read: {error}"
            raise CassetteError(message, "record it again") from error
        if request.on_text and answer.text and not live:
            request.on_text(answer.text)
        return answer

    async def _live_answer(self, request: ModelRequest) -> ModelAnswer:
        raise AssertionError("a replay makes no calls")

    def _parts(self, request: ModelRequest) -> dict[str, Any]:
        """All that decides the answer: streaming does not, nor the connector, unless two lead to the same model."""
        parts: dict[str, Any] = {
            "model": self.name,
            "settings": self.settings | request.settings,
            "messages": request.messages,
            "run": request.run,
        }
        if self._further_connector is not None:
            parts["connector"] = self._further_connector
        if request.tools:
            parts["tools"] = request.tools
        if request.schema is not None:
            parts["schema"] = request.schema
        return parts


def replayed(connector: Connector, cassette: Cassette) -> ReplayedModel:
    """The model of a connector for a replay, which needs neither the key nor the package nor the model's file."""
    name, unfit = connector.model, None
    if connector.type == LOCAL:
        name, known = named(connector.model)
        unfit = known.unfit_to_judge if known else None
    return ReplayedModel(connector.id, name, connector.settings, cassette, unfit)


class PlannedModel(Model):
    """A model without its key, for a dry run, in which no model is asked."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Never called in a dry run."""
        raise AssertionError("a dry run asks no model")


class RecordedModel(ReplayedModel):
    """A model whose answers are recorded to a cassette."""

    def __init__(self, model: Model, cassette: Cassette, further_connector: str | None = None) -> None:
        super().__init__(model.connector, model.name, model.settings, cassette, model.unfit_to_judge)
        self._model = model
        self._further_connector = further_connector

    async def _live_answer(self, request: ModelRequest) -> ModelAnswer:
        return await self._model.ask(request)

    async def close(self) -> None:
        """Close the recorded model."""
        await self._model.close()
