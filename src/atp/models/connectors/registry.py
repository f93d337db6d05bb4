"""The models of a project: found by a connector's id, created by the connector's `type`.

Built-in types and those of plugins are registered alike, and are imported when a connector first needs them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from atp.base.errors import ConfigurationError
from atp.base.registry import PluginError, Registry
from atp.models.connections import ModelContext
from atp.models.connectors.connector import LOCAL, Connector
from atp.models.connectors.sources import HOW_TO_SET, Sources
from atp.models.model import Model

MODELS: Registry[Callable[[Connector, ModelContext], Model]] = Registry(
    "atp.models",
    {
        "openai": "atp.models.openai:OpenAIModel",
        "anthropic": "atp.models.anthropic:AnthropicModel",
        "provider": "atp.models.providers:ProviderModel",
        "local": "atp.models.local.model:LocalModel",
    },
    lambda model: (model.type,),
)
"""The classes of models by the `type` of their connectors. Each is called with a connector and a `ModelContext`."""


def make_model(connector: Connector, context: ModelContext) -> Model:
    """The model behind a connector. Raises `ConfigurationError`."""
    has_type = f"{connector.place('type')}: the connector `{connector.id}` has the type `{connector.type}`"
    try:
        make = MODELS.find(connector.type)
    except PluginError as error:
        raise ConfigurationError(f"{has_type}: {error}", error.hint) from error
    if make is None:
        raise ConfigurationError(f"{has_type}, which isn't installed", f"there are {MODELS}")
    return make(connector, context)


class Known(Struct, kw_only=True, frozen=True):
    """A connector that a project can use, for `atp models`."""

    id: str
    """The name for `-c`; a part in angle brackets is to be replaced."""
    type: str = ""
    """The connector's type; empty if the connector can't be read."""
    model: str = ""
    """The model's own name."""
    where: str
    """Where the connector is configured."""
    problem: str | None = None
    """Why the connector can't be used as it is."""
    hint: str | None = None
    """How to fix that."""

    @property
    def ready(self) -> bool:
        """True if the connector can be used."""
        return self.problem is None


class Models:
    """The models of a project. Each is created once, when it is first needed."""

    def __init__(self, root: Path, env: Mapping[str, str], tables: Mapping[str, Any]) -> None:
        """`tables` are the `connectors` of `atp.toml`."""
        self._sources = Sources(root, env, tables)
        self._context = ModelContext(root, env)
        self._models: dict[str, Model] = {}
        self._secrets: set[str] = set()

    def get(self, connector: str | None, needed_by: str) -> Model:
        """The model behind a connector, needed by `the judge`, say, in messages. Raises `ConfigurationError`."""
        if not connector:
            raise ConfigurationError(f"{needed_by} needs a model, and none is set", HOW_TO_SET)
        if connector not in self._models:
            try:
                self._models[connector] = self._make(connector)
            except ConfigurationError as error:
                raise ConfigurationError(f"{needed_by} needs a model: {error}", error.hint) from error
        return self._models[connector]

    def _make(self, name: str) -> Model:
        connector = self._sources.find(name)
        self._secrets |= connector.secrets
        return make_model(connector, self._context)

    def described(self, connector: str, needed_by: str) -> Connector:
        """A connector as it is configured, also without its key, for replays. Raises `ConfigurationError`."""
        try:
            return self.connector(connector)
        except ConfigurationError as error:
            raise ConfigurationError(f"{needed_by} needs a model: {error}", error.hint) from error

    def connector(self, name: str) -> Connector:
        """The connector of this name, also without its key. Raises `ConfigurationError`."""
        return self._sources.find(name, keyless=True)

    def lacking(self, connector: str, needed_by: str) -> ConfigurationError | None:
        """The error of a connector that lacks only its key or a variable. Raises any other `ConfigurationError`."""
        try:
            self._sources.find(connector)
        except ConfigurationError as error:
            self.described(connector, needed_by)
            return ConfigurationError(f"{needed_by} needs a model: {error}", error.hint)
        return None

    def known(self) -> list[Known]:
        """The connectors that the project configures, and those that need no configuration."""
        configured = [
            self._known(name, sources[0].where) for name, sources in sorted(self._sources.configured().items())
        ]
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
        local = [] if LOCAL in self._sources.configured() else [self._known(LOCAL, "built in")]
        return [*configured, *offers, *local]

    def _known(self, name: str, where: str) -> Known:
        connector: Connector | None = None
        try:
            connector = self._sources.find(name)
            self._secrets |= connector.secrets
            # Not kept in `_models`: a model that is only listed needs no closing.
            model = make_model(connector, self._context)
            return Known(id=name, type=connector.type, model=model.name, where=where)
        except ConfigurationError as error:
            kind, model_name = (connector.type, connector.model) if connector else ("", "")
            return Known(id=name, type=kind, model=model_name, where=where, problem=str(error), hint=error.hint)

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets of all connectors that can be read, which no output may show."""
        for name in self._sources.configured():
            try:
                self._secrets |= self._sources.find(name).secrets
            except ConfigurationError:
                continue  # an unusable connector sends no secret anywhere
        return frozenset(self._secrets)

    async def close(self) -> None:
        """Close all models and connections."""
        models, self._models = list(self._models.values()), {}
        for model in models:
            await model.close()
        await self._context.close()
