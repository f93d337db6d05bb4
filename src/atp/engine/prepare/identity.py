"""The user, team and locale that a trial runs with, and the rest of the test environment of the JSONL format."""

from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from atp.base.diagnostics import Diagnostics, LoadError
from atp.engine.prepare.options import Options
from atp.loader.source import read_source
from atp.loader.validate import validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.case import Case
from atp.suite.record import JsonObject, Record, Text


class Identity(Record):
    """The user and team that the agent under test is told it works for, and the rest of its environment."""

    user: Text = Field(default="test-user", validation_alias=AliasChoices("user", "user_id"))
    """User."""
    team: Text = Field(default="test-team", validation_alias=AliasChoices("team", "team_id"))
    """Team."""
    locale: Text = "en-us"
    """Locale."""
    client_type: Text = "test"
    """Kind of client."""
    client_ip: Text = "127.0.0.1"
    """Address of the client."""
    referer: Text = "test"
    """Where the request comes from."""
    accept: Text = "standard"
    """Format of the answer."""
    metadata: JsonObject = Field(default_factory=dict)
    """Free data."""

    @model_validator(mode="before")
    @classmethod
    def _take_authorized(cls, raw: Any) -> Any:
        # Yao keeps the user and the team in `authorized`, beside more that ATP has no use for.
        if type(raw) is not dict or not isinstance(raw.get("authorized"), dict):
            return raw
        rest = {key: value for key, value in raw.items() if key != "authorized"}
        for name in ("user", "team"):
            given = raw["authorized"].get(f"{name}_id", raw["authorized"].get(name))
            if given is not None and name not in rest and f"{name}_id" not in rest:
                rest[name] = given
        return rest


class Identities:
    """Resolves the identity that each case runs with: flag, case, `--ctx`, environment or `atp.toml`, default."""

    def __init__(self, options: Options) -> None:
        from_file = _read_ctx(Path(options.ctx)) if options.ctx else Identity()
        self._base = {name: getattr(from_file, name) for name in Identity.model_fields}
        self._flags: dict[str, str] = {}
        for name in ("user", "team", "locale"):
            value = getattr(options, name)
            if value is None:
                continue
            if options.given(name):
                self._flags[name] = value
            elif name not in from_file.model_fields_set:
                self._base[name] = value

    def of(self, case: Case) -> dict[str, Any]:
        """Return the identity of a case."""
        found = dict(self._base)
        if case.user is not None:
            found["user"] = case.user
        if case.team is not None:
            found["team"] = case.team
        if case.locale is not None:
            found["locale"] = case.locale
        return found | self._flags if self._flags else found


def _read_ctx(path: Path) -> Identity:
    notes = Diagnostics(str(path))
    source = read_source(path, notes)
    parsed = parse_yaml(source.text, notes) if source else None
    if parsed is not None and not isinstance(parsed.data, dict):
        notes.error("wrong-type", "the test environment must be a mapping", hint="write user: …")
    identity = (
        validate(Identity, parsed.data, notes, parsed.locator) if parsed and isinstance(parsed.data, dict) else None
    )
    if notes or identity is None:
        raise LoadError(notes)
    return identity
