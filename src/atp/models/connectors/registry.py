"""From a connector's id to the model behind it.

Models are found by the connector's `type`, ours and a plugin's in the same way; they load when one is asked for.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from atp.base.registry import Registry
from atp.models.connections import Shared
from atp.models.connectors.connector import LOCAL, Connector
from atp.models.connectors.sources import HOW, Sources
from atp.models.model import Model, NoModel

MODELS: Registry[Callable[[Connector, Shared], Model]] = Registry(
    "atp.models",
    {
        "openai": "atp.models.openai:OpenAIModel",
        "anthropic": "atp.models.anthropic:AnthropicModel",
        "provider": "atp.models.providers:ProviderModel",
        "local": "atp.models.local.model:LocalModel",
    },
    lambda model: (model.type,),
)
"""The classes of models by the `type` of their connectors. Each is called with a connector and what models share."""


def make_model(connector: Connector, shared: Shared) -> Model:
    """The model behind a connector. Raises `NoModel`."""
    make = MODELS.find(connector.type)
    if make is None:
        raise NoModel(
            f"{connector.where}: the connector `{connector.id}` has the type `{connector.type}`, which isn't installed",
            f"there are {MODELS}",
        )
    return make(connector, shared)


class Known(Struct, kw_only=True, frozen=True):
    """A connector that a project has, for `atp models`."""

    id: str
    """What to name with `-c`; a part in angle brackets is to be filled in."""
    type: str = ""
    """How it is spoken to; empty if that can't be told."""
    model: str = ""
    """The model's own name."""
    where: str
    """Where it is configured."""
    problem: str | None = None
    """Why it can't be used as it is."""
    hint: str | None = None
    """What to do about that."""

    @property
    def ready(self) -> bool:
        """Whether it can be used."""
        return self.problem is None


class Models:
    """The models of a project: each is made once, when it is first asked for."""

    def __init__(self, root: Path, env: Mapping[str, str], tables: Mapping[str, Any]) -> None:
        """`tables` are the `connectors` of `atp.toml`."""
        self._sources = Sources(root, env, tables)
        self._shared = Shared(root, env)
        self._made: dict[str, Model] = {}
        self._secrets: set[str] = set()

    def get(self, connector: str | None, needed_by: str) -> Model:
        """The model behind a connector, for whom (`the judge`) a message can name. Raises `NoModel`."""
        if not connector:
            raise NoModel(f"{needed_by} needs a model, and none is set", HOW)
        if connector not in self._made:
            try:
                self._made[connector] = self._make(connector)
            except NoModel as error:
                raise NoModel(f"{needed_by} needs a model: {error}", error.hint) from error
        return self._made[connector]

    def _make(self, name: str) -> Model:
        connector = self._sources.find(name)
        self._secrets |= connector.secrets
        return make_model(connector, self._shared)

    def described(self, connector: str, needed_by: str) -> Connector:
        """A connector as it is configured, also without its key: for who replays answers. Raises `NoModel`."""
        try:
            return self._sources.find(connector, keyless=True)
        except NoModel as error:
            raise NoModel(f"{needed_by} needs a model: {error}", error.hint) from error

    def lacking(self, connector: str, needed_by: str) -> NoModel | None:
        """What a connector lacks to be used, if it is no more than its key or a variable. Raises `NoModel`."""
        try:
            self._sources.find(connector)
        except NoModel as error:
            self.described(connector, needed_by)
            return NoModel(f"{needed_by} needs a model: {error}", error.hint)
        return None

    def known(self) -> list[Known]:
        """What the project has, and what there is without being configured."""
        written = [self._known(name, places[0].where) for name, places in sorted(self._sources.written().items())]
        offers = [
            Known(
                id=f"{kind}.<model>",
                type=kind,
                model="any",
                where="environment",
                problem=f"{lacking} is not set" if lacking else None,
                hint=f"set {lacking} in the environment or in .env" if lacking else None,
            )
            for kind, lacking in self._sources.offers()
        ]
        local = [] if LOCAL in self._sources.written() else [self._known(LOCAL, "built in")]
        return [*written, *offers, *local]

    def _known(self, name: str, where: str) -> Known:
        connector: Connector | None = None
        try:
            connector = self._sources.find(name)
            self._secrets |= connector.secrets
            # Only here, not in `_made`: what is listed need not be closed.
            model = make_model(connector, self._shared)
            return Known(id=name, type=connector.type, model=model.name, where=where)
        except NoModel as error:
            kind, model_name = (connector.type, connector.model) if connector else ("", "")
            return Known(id=name, type=kind, model=model_name, where=where, problem=str(error), hint=error.hint)

    @property
    def secrets(self) -> frozenset[str]:
        """What no output may show: of all connectors that can be read."""
        for name in self._sources.written():
            try:
                self._secrets |= self._sources.find(name).secrets
            except NoModel:
                continue  # it has no secrets, for it can't be used
        return frozenset(self._secrets)

    async def close(self) -> None:
        """Leave nothing behind."""
        made, self._made = list(self._made.values()), {}
        for model in made:
            await model.close()
        await self._shared.close()
