"""Models whose answers are recorded to a cassette, or played back from one."""

from typing import Any

import msgspec

from atp.models.cassettes.cassette import Cassette
from atp.models.connectors.connector import LOCAL, Connector
from atp.models.local.files import named
from atp.models.model import Answer, Ask, CassetteError, Model


class ReplayedModel(Model):
    """A model that is not there: it answers from a cassette only, without key or network."""

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

    async def ask(self, ask: Ask) -> Answer:
        """The recorded answer. Raises `CassetteMiss`, and `ModelError` when recording."""
        live: list[Answer] = []

        async def call() -> Any:
            live.append(await self._answer(ask))
            return msgspec.to_builtins(live[0])

        found = await self._cassette.through("model", self._parts(ask), call)
        try:
            if isinstance(found, dict) and (unknown := sorted(found.keys() - set(Answer.__struct_fields__))):
                raise msgspec.ValidationError(f"nothing of an answer is called `{unknown[0]}`")
            answer = msgspec.convert(found, Answer)
        except msgspec.ValidationError as error:
            message = f"an answer of {self.name} in {self._cassette.folder} can't be read: {error}"
            raise CassetteError(message, "record it again") from error
        if ask.on_text and answer.text and not live:
            ask.on_text(answer.text)
        return answer

    async def _answer(self, ask: Ask) -> Answer:
        raise AssertionError("a replayed model is asked only in a replay, which never calls")

    def _parts(self, ask: Ask) -> dict[str, Any]:
        """All that decides the answer. Streaming does not, nor which connector leads to the model."""
        parts: dict[str, Any] = {
            "model": self.name,
            "settings": self.settings | ask.settings,
            "messages": ask.messages,
            "run": ask.run,
        }
        if ask.tools:
            parts["tools"] = ask.tools
        if ask.schema is not None:
            parts["schema"] = ask.schema
        return parts


def replayed(connector: Connector, cassette: Cassette) -> ReplayedModel:
    """The model of a connector that can't be used now: its key, its package or its file is missing."""
    name, unfit = connector.model, None
    if connector.type == LOCAL:
        name, known = named(connector.model)
        unfit = known.unfit_to_judge if known else None
    return ReplayedModel(connector.id, name, connector.settings, cassette, unfit)


class PlannedModel(Model):
    """A model that can't be used for want of its key: good for showing a plan, in which nobody is asked."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector.id
        self.name = connector.model
        self.settings = connector.settings

    async def ask(self, ask: Ask) -> Answer:
        """Nobody may ask it."""
        raise AssertionError("a planned model is never asked")


class RecordedModel(ReplayedModel):
    """A model that is there, behind a cassette that records it or is replayed in its place."""

    def __init__(self, model: Model, cassette: Cassette) -> None:
        super().__init__(model.connector, model.name, model.settings, cassette, model.unfit_to_judge)
        self._model = model

    async def _answer(self, ask: Ask) -> Answer:
        return await self._model.ask(ask)

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()
