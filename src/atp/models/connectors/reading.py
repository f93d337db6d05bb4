"""Reads a connector: checks its keys, fills in its variables and collects its secrets."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, cast, get_args

from atp.base.diagnostics import Place
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.base.numbers import is_number
from atp.base.secret_values import is_secret, secret_settings
from atp.base.secrets import SHORTEST_SECRET
from atp.loader.validate import DataPath
from atp.models.connectors.connector import (
    ANTHROPIC,
    LOCAL,
    OPENAI,
    PROVIDER,
    RETRIES,
    SETTINGS,
    TIMEOUT,
    AuthMode,
    Connector,
    Prices,
)

_HOST = ("host", "proxy", "url", "endpoint", "base_url")
_KEY = ("key", "api_key")
_OWN = ("type", "model", "headers", "prices", "timeout", "retries", "native_schema", "version", "auth_mode")
_FREE = ("settings", "extra_body")
"""Objects of settings: `settings` has known ones, `extra_body` those that only the server knows."""
_ABOUT = ("label", "name", "description", "tags", "capabilities", "protocols", "supported_params", "sort", "readonly")
"""Keys that Yao writes for its own use."""
_KNOWN = frozenset((*_HOST, *_KEY, *_OWN, *_FREE, *_ABOUT))
_OTHER_ENV = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}")
_ENV = re.compile(r"\$ENV\.([A-Za-z_][A-Za-z0-9_]*)")


def read_connector(
    name: str,
    raw: Any,
    where: str,
    env: Mapping[str, str],
    *,
    keyless: bool = False,
    locate: Callable[[DataPath], Place] | None = None,
) -> Connector:
    """The connector in `raw`, with its variables filled in. Raises `ConfigurationError`.

    With `keyless`, variables that are not set are left empty. `locate` finds the key of a path in the file `where`.
    """
    return _Reader(name, where, env, keyless, locate).read(raw)


class _Reader:
    """Reads one connector. Every error names the file, the place of the key in the file, and the connector."""

    def __init__(
        self,
        name: str,
        where: str,
        env: Mapping[str, str],
        keyless: bool,
        locate: Callable[[DataPath], Place] | None,
    ) -> None:
        self._name = name
        self._where = where
        self._env = env
        self._keyless = keyless
        self._locate = locate
        self._options: dict[str, Any] = {}
        self._secrets: set[str] = set()

    def read(self, raw: Any) -> Connector:
        if not isinstance(raw, dict):
            raise self._wrong("is not a table of settings")
        table = self._filled(self._flat(raw), ())
        self._secrets |= secret_settings(table)
        kind = self._type(table.get("type"))
        self._check_keys(table, kind, _KNOWN)
        return Connector(
            id=self._name,
            type=kind,
            model=self._model(table.get("model"), kind),
            key=self._key(table),
            host=self._text(table, *_HOST),
            auth_mode=self._auth_mode(table.get("auth_mode")),
            headers=self._headers(table, kind),
            settings=self._settings(table, kind),
            prices=self._prices(table.get("prices")),
            timeout=self._positive(table, "timeout", TIMEOUT),
            retries=self._retries(table),
            native_schema=self._flag(table, "native_schema"),
            where=self._where,
            places=self._places(table),
            secrets=frozenset(self._secrets),
        )

    def _wrong(self, what: str, *path: str | int, hint: str | None = None) -> ConfigurationError:
        """The error about the key of a path; about the connector as a whole without a path."""
        return ConfigurationError(f"{self._place(path)}: the connector `{self._name}` {what}", hint)

    def _place(self, path: DataPath) -> str:
        if self._locate is None:
            return self._where
        at = self._locate(("options", *path) if path and path[0] in self._options else path)
        return f"{self._where}:{at.line}:{at.column}"

    def _places(self, table: dict[str, Any]) -> dict[str, str]:
        """The places of the keys whose values only the model's class can check."""
        if self._locate is None:
            return {}
        host = next((name for name in _HOST if table.get(name)), "host")
        return {"type": self._place(("type",)), "model": self._place(("model",)), "host": self._place((host,))}

    def _flat(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The keys of Yao's `options` object beside all others."""
        options = raw.get("options", {})
        if not isinstance(options, dict):
            raise self._wrong("has `options` that are not an object", "options")
        beside = {key: value for key, value in raw.items() if key != "options"}
        if twice := sorted(beside.keys() & options.keys()):
            raise self._wrong(f"has `{twice[0]}` twice, also in its `options`", "options", twice[0])
        self._options = options
        return {**beside, **options}

    def _filled(self, value: Any, path: DataPath) -> Any:
        """The value with `$ENV.NAME` filled in."""
        if isinstance(value, dict):
            return {key: self._filled(item, (*path, str(key))) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, path) for item in value]
        if isinstance(value, float) and not isfinite(value):
            raise self._wrong(f"has a `{path[-1]}` that is {value}, which JSON can't carry", *path)
        if not isinstance(value, str):
            return value
        if other := _OTHER_ENV.search(value):
            # Sent literally, it would be a wrong key, and the server's error would mislead.
            hint = f"a variable is written $ENV.{other[1]} here"
            raise self._wrong(f"has {other[0]} in its `{path[-1]}`", *path, hint=hint)
        return _ENV.sub(lambda use: self._variable(use[1], path), value)

    def _variable(self, name: str, path: DataPath) -> str:
        value = self._env.get(name)
        if value is None and self._keyless:
            return ""
        if value is None:
            raise self._wrong(
                f"needs the variable {name} for its `{path[-1]}`, which is not set",
                *path,
                hint=f"set {name} in the environment or in .env",
            )
        if is_secret(name, value):
            self._secrets.add(value)
        return value

    def _type(self, value: Any) -> str:
        kind = value or self._name.partition(".")[0]
        if value is None and kind not in (OPENAI, ANTHROPIC, LOCAL):
            raise self._wrong("has no `type`", hint=f"it is one of `{OPENAI}`, `{ANTHROPIC}`, `{PROVIDER}`, `{LOCAL}`")
        if not isinstance(kind, str):
            raise self._wrong("has a `type` that is not text", "type")
        return kind

    def _check_keys(self, table: dict[str, Any], kind: str, known: frozenset[str], *above: str) -> None:
        known |= SETTINGS.get(kind, frozenset())
        for key in table:
            if key in known:
                continue
            meant = near_miss(key, sorted(known))
            if meant or kind in SETTINGS:
                hint = f"did you mean `{meant}`?" if meant else "what only the server knows goes into `extra_body`"
                what = f"has the key `{key}`, which connectors of type `{kind}` don't have"
                raise self._wrong(what, *above, key, hint=hint)

    def _model(self, value: Any, kind: str) -> str:
        if value is None and kind not in SETTINGS:
            return ""
        if not isinstance(value, str) or not value:
            hint = 'write model = "…", the name that the provider gives it'
            raise self._wrong("names no `model`", "model", hint=hint)
        return value

    def _text(self, table: dict[str, Any], *names: str) -> str | None:
        present = [name for name in names if table.get(name) not in (None, "")]
        if len(present) > 1:
            what = f"has both `{present[0]}` and `{present[1]}`, which are the same"
            raise self._wrong(what, present[1], hint="leave one out")
        if not present:
            return None
        value = table[present[0]]
        if not isinstance(value, str):
            raise self._wrong(f"has a `{present[0]}` that is not text", present[0])
        return value.strip()

    def _key(self, table: dict[str, Any]) -> str | None:
        key = self._text(table, *_KEY)
        if key is None:
            return None
        if not key.isascii() or not key.isprintable():
            what, name = "has a key with signs in it that no header can have", next(one for one in _KEY if one in table)
            raise self._wrong(what, name, hint="check the variable or the file")
        self._keep_secret(key)
        return key

    def _auth_mode(self, value: Any) -> AuthMode | None:
        if value is None or value in get_args(AuthMode):
            return cast("AuthMode | None", value)
        known = ", ".join(f"`{one}`" for one in get_args(AuthMode))
        raise self._wrong(f"has the `auth_mode` `{value}`", "auth_mode", hint=f"there are {known}")

    def _keep_secret(self, value: str) -> None:
        if len(value) >= SHORTEST_SECRET:
            self._secrets.add(value)

    def _headers(self, table: dict[str, Any], kind: str) -> dict[str, str]:
        raw = table.get("headers", {})
        if not isinstance(raw, dict) or not all(isinstance(value, str) for value in raw.values()):
            raise self._wrong("has `headers` that are not texts by name", "headers")
        for name, value in raw.items():
            if not value.isprintable() or not name.isprintable():
                raise self._wrong(f"has a line break in the header `{name}`", "headers", name)
            self._keep_secret(value)
            self._keep_secret(value.rpartition(" ")[2])
        version = self._text(table, "version")
        if kind == ANTHROPIC and version is not None:
            raw = {"anthropic-version": version, **raw}
        return dict(raw)

    def _settings(self, table: dict[str, Any], kind: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in _FREE:
            value = table.get(name, {})
            if not isinstance(value, dict):
                raise self._wrong(f"has `{name}` that are not an object", name)
            if name == "settings":
                self._check_keys(value, kind, frozenset(), name)
            found |= value
        return found | {key: value for key, value in table.items() if key not in _KNOWN}

    def _prices(self, raw: Any) -> Prices | None:
        if raw is None:
            return None
        names = Prices.__struct_fields__
        if not isinstance(raw, dict) or not {"input", "output"} <= raw.keys() <= set(names):
            raise self._wrong(
                "has `prices` that can't be read",
                "prices",
                hint="write prices = { input = 2.5, output = 10 }: dollars a million tokens",
            )
        if not all(is_number(value) and value >= 0 for value in raw.values()):
            raise self._wrong("has a price that is not a number from 0", "prices")
        return Prices(**raw)

    def _positive(self, table: dict[str, Any], name: str, default: float) -> float:
        value = table.get(name, default)
        if not is_number(value) or value <= 0:
            raise self._wrong(f"has a `{name}` that is not a number of seconds", name)
        return float(value)

    def _retries(self, table: dict[str, Any]) -> int:
        value = table.get("retries", RETRIES)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong("has `retries` that are not a whole number from 0", "retries")
        return value

    def _flag(self, table: dict[str, Any], name: str) -> bool | None:
        value = table.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(f"has a `{name}` that is neither true nor false", name)
        return value
