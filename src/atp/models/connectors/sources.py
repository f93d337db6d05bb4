"""Finds connectors: in tables of `atp.toml`, in files below `connectors/`, and in the environment."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from atp.base.diagnostics import Diagnostics
from atp.base.errors import ConfigurationError
from atp.base.json.comments import without_comments
from atp.base.near import near_miss
from atp.base.secret_values import is_secret
from atp.loader.jsonl.nodes import JsonLocator, parse_json
from atp.loader.source import read_source
from atp.models.connectors.connector import ANTHROPIC, LOCAL, OPENAI, PROVIDER, Connector
from atp.models.connectors.reading import read_connector

SUFFIXES = (".conn.yao", ".conn.jsonc", ".conn.json")
TABLES = "atp.toml"
_VARIABLES = {OPENAI: ("OPENAI_API_KEY", "OPENAI_BASE_URL"), ANTHROPIC: ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")}
HOW_TO_SET = (
    "name one with `-c openai.gpt-4o` and set OPENAI_API_KEY (or `-c anthropic.…` and ANTHROPIC_API_KEY), configure "
    'one as [connectors."…"] in atp.toml, or use a small one on this machine: `atp models install smollm2`, then '
    "`-c local`"
)
"""How to configure a model, as a hint."""


class Source(NamedTuple):
    """Where a connector is configured."""

    where: str
    """The file's name, for messages."""
    raw: Any
    """The connector's keys, unchecked; the `Path` of a file that wasn't read yet."""


class Sources:
    """Finds the connectors of a project."""

    def __init__(self, root: Path, env: Mapping[str, str], tables: Mapping[str, Any]) -> None:
        self._root = root
        self._env = env
        self._tables = tables
        self._sources: dict[str, list[Source]] | None = None

    def configured(self) -> dict[str, list[Source]]:
        """The connectors that the project configures, by id."""
        if self._sources is None:
            self._sources = {}
            for name, source in (*_in_tables(self._tables), *_in_files(self._root)):
                self._sources.setdefault(name, []).append(source)
        return self._sources

    def find(self, name: str, *, keyless: bool = False) -> Connector:
        """The connector of this id; with `keyless`, also without its key. Raises `ConfigurationError`."""
        sources = self.configured().get(name, [])
        if len(sources) > 1:
            raise ConfigurationError(
                f"the connector `{name}` is configured twice: in {sources[0].where} and in {sources[1].where}",
                "remove one of them",
            )
        if not sources:
            return self._unconfigured(name, keyless)
        raw, where = sources[0].raw, sources[0].where
        locate = None
        if isinstance(raw, Path):
            raw, file = _read_file(name, raw, where)
            locate = file.key
        read = read_connector(name, raw, where, self._env, keyless=keyless, locate=locate)
        return self._with_key(read, keyless)

    def _with_key(self, connector: Connector, keyless: bool) -> Connector:
        """The connector with the environment's key, which is sent to the provider's own host only."""
        if connector.key is not None or connector.host is not None or connector.type not in _VARIABLES or keyless:
            return connector
        variable, address = _VARIABLES[connector.type]
        key = self._env.get(variable, "").strip()
        if not key:
            raise ConfigurationError(
                f"{connector.where}: the connector `{connector.id}` has no key",
                f'write key = "$ENV.{variable}" and set {variable}; a server of your own needs a `host`',
            )
        return replace(connector, key=key, host=self._env.get(address) or None, secrets=connector.secrets | {key})

    def _unconfigured(self, name: str, keyless: bool) -> Connector:
        """A connector that needs no configuration."""
        kind, _, model = name.partition(".")
        if kind == LOCAL:
            return Connector(id=name, type=LOCAL, model=model, where="built in")
        if kind in _VARIABLES and model:
            return self._from_environment(name, kind, model, keyless)
        if ":" in name:
            return Connector(id=name, type=PROVIDER, model=name, where="pydantic-ai", secrets=self._all_keys())
        meant = near_miss(name, self.configured())
        raise ConfigurationError(f"there is no connector `{name}`", f"did you mean `{meant}`?" if meant else HOW_TO_SET)

    def _from_environment(self, name: str, kind: str, model: str, keyless: bool) -> Connector:
        variable, address = _VARIABLES[kind]
        if not self._env.get(variable) and not keyless:
            raise ConfigurationError(
                f"the connector `{name}` is not configured, and {variable} is not set",
                f'set {variable}, or configure it as [connectors."{name}"] in atp.toml',
            )
        raw: dict[str, Any] = {"type": kind, "model": model, "key": f"$ENV.{variable}"}
        if self._env.get(address):
            raw["host"] = f"$ENV.{address}"
        return read_connector(name, raw, "the environment", self._env, keyless=keyless)

    def _all_keys(self) -> frozenset[str]:
        # pydantic-ai decides which variable a provider reads, so all keys are masked.
        return frozenset(
            value for name, value in self._env.items() if name.endswith("_API_KEY") and is_secret(name, value)
        )

    def offers(self) -> Iterator[tuple[str, str | None]]:
        """The types that need no configuration, each with the variable that is not set."""
        for kind, (variable, _) in _VARIABLES.items():
            yield kind, None if self._env.get(variable) else variable


def _in_tables(tables: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Source]]:
    """`[connectors."a.b"]` and `[connectors.a.b]` are the same."""
    for key, raw in tables.items():
        name = f"{above}{key}"
        if isinstance(raw, dict) and raw and "type" not in raw and all(isinstance(one, dict) for one in raw.values()):
            yield from _in_tables(raw, f"{name}.")
        else:
            yield name, Source(TABLES, raw)


def _in_files(root: Path) -> Iterator[tuple[str, Source]]:
    folder = root / "connectors"
    for path in sorted(folder.rglob("*.conn.*")) if folder.is_dir() else ():
        suffix = next((one for one in SUFFIXES if path.name.endswith(one)), None)
        if suffix is not None and path.is_file():
            below = path.relative_to(folder).as_posix()
            yield below.removesuffix(suffix).replace("/", "."), Source(f"connectors/{below}", path)


def _read_file(name: str, path: Path, where: str) -> tuple[Any, JsonLocator]:
    """The value of a connector's file, and the places of its keys. Raises `ConfigurationError`."""
    notes = Diagnostics(where)
    source = read_source(path, notes)
    parsed = None if source is None else parse_json(without_comments(source.text), notes)
    for one in notes.in_order():
        message = f"{where}:{one.line}:{one.column}: the connector `{name}` can't be read: {one.message}"
        raise ConfigurationError(message, one.hint)
    assert parsed is not None
    return parsed
