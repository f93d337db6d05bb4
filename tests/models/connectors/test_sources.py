"""Finding connectors, and what is wrong with them."""

import json
from pathlib import Path
from typing import Any

import pytest

from atp.base.errors import ConfigurationError
from atp.models.connectors.connector import Connector, Prices
from atp.models.connectors.registry import Models
from atp.models.connectors.sources import Sources

YAO = """{
  // As Yao writes them
  "label": "GPT-4", "type": "openai",
  "options": {
    "model": "gpt-4o", /* the big one */
    "key": "$ENV.MY_KEY",
    "host": "https://$ENV.PLACE/v1",
    "temperature": 0.2,
    "capabilities": { "vision": true, "tool_calls": true },
  }
}
"""
ENV = {"MY_KEY": "sk-very-secret", "PLACE": "example.org"}


def find(
    name: str, root: Path = Path("/nowhere"), env: dict[str, str] | None = None, tables: dict[str, Any] | None = None
) -> Connector:
    return Sources(root, env or {}, tables or {}).find(name)


def wrong(raw: Any, env: dict[str, str] | None = None, name: str = "openai.gpt4") -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        find(name, env={"OPENAI_API_KEY": "sk-0123456"} if env is None else env, tables={name: raw})
    return caught.value


def write(root: Path, place: str, text: str) -> None:
    path = root / "connectors" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "place", ["openai/gpt4.conn.yao", "openai.gpt4.conn.yao", "openai/gpt4.conn.json", "openai/gpt4.conn.jsonc"]
)
def test_files_of_yao(tmp_path: Path, place: str) -> None:
    write(tmp_path, place, YAO)
    found = find("openai.gpt4", tmp_path, ENV)
    assert (found.type, found.model, found.key) == ("openai", "gpt-4o", "sk-very-secret")
    assert (found.host, found.settings) == ("https://example.org/v1", {"temperature": 0.2})
    assert (found.where, found.secrets) == (f"connectors/{place}", frozenset({"sk-very-secret"}))


def test_names_with_dots_in_files(tmp_path: Path) -> None:
    write(tmp_path, "openai/gpt-4.1.conn.yao", YAO)
    assert find("openai.gpt-4.1", tmp_path, ENV).model == "gpt-4o"


def test_tables_of_the_project() -> None:
    table = {
        "type": "anthropic",
        "model": "claude",
        "key": "k-123456",
        "settings": {"top_p": 0.5},
        "max_tokens": 9,
        "extra_body": {"anything": 1},
        "prices": {"input": 3, "output": 15},
        "timeout": 9,
        "retries": 0,
        "version": "2023-06-01",
        "headers": {"X-Auth": "Token abcdefgh"},
    }
    found = find("mine", tables={"mine": table})
    assert found.settings == {"top_p": 0.5, "max_tokens": 9, "anything": 1}
    assert (found.prices, found.timeout, found.retries) == (Prices(input=3, output=15), 9.0, 0)
    assert found.headers == {"anthropic-version": "2023-06-01", "X-Auth": "Token abcdefgh"}
    assert found.secrets == {"k-123456", "abcdefgh", "Token abcdefgh"}
    assert found.where == "atp.toml"


def test_dots_in_tables_with_and_without_quotes() -> None:
    table = {"model": "gpt-4o", "host": "http://127.0.0.1:1/v1"}
    assert find("openai.gpt4", tables={"openai.gpt4": table}) == find("openai.gpt4", tables={"openai": {"gpt4": table}})
    assert find("openai.gpt4", tables={"openai": {"gpt4": table}}).type == "openai"


def test_the_same_id_twice_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "openai/gpt4.conn.yao", YAO)
    with pytest.raises(ConfigurationError, match=r"twice: in atp.toml and in connectors/openai/gpt4.conn.yao"):
        find("openai.gpt4", tmp_path, ENV, tables={"openai.gpt4": {"model": "x"}})
    write(tmp_path, "openai.gpt4.conn.yao", YAO)
    with pytest.raises(
        ConfigurationError, match=r"twice: in connectors/openai/gpt4.conn.yao and in connectors/openai.gpt4"
    ):
        find("openai.gpt4", tmp_path, ENV)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_without_configuration_the_environment_serves(kind: str) -> None:
    name = f"{kind.upper()}_API_KEY"
    found = find(f"{kind}.some-model-4.1", env={name: " sk-0123456\n"})
    assert (found.type, found.model, found.key, found.host) == (kind, "some-model-4.1", "sk-0123456", None)
    address = {f"{kind.upper()}_BASE_URL": "http://127.0.0.1:9/v1"}
    assert find(f"{kind}.m", env={name: "sk-0123456", **address}).host == "http://127.0.0.1:9/v1"
    with pytest.raises(ConfigurationError, match=rf"`{kind}.m` is not configured, and {name} is not set") as caught:
        find(f"{kind}.m")
    assert caught.value.hint == f'set {name}, or configure it as [connectors."{kind}.m"] in atp.toml'


def test_a_table_goes_before_the_environment() -> None:
    assert (
        find("openai.m", env={"OPENAI_API_KEY": "sk-0123456"}, tables={"openai.m": {"model": "other"}}).model == "other"
    )


def test_the_environments_key_goes_to_the_providers_own_host_only() -> None:
    env = {"OPENAI_API_KEY": "sk-0123456"}
    assert find("openai.m", env=env, tables={"openai.m": {"model": "m"}}).key == "sk-0123456"
    assert find("openai.m", env=env, tables={"openai.m": {"model": "m", "host": "http://10.0.0.1"}}).key is None
    assert "has no key" in str(wrong({"model": "m"}, env={}))


def test_other_ids() -> None:
    assert (find("local").type, find("local").model, find("local.smollm2").model) == ("local", "", "smollm2")
    found = find("google-gla:gemini-2.0", env={"GEMINI_API_KEY": "g-0123456", "HOME": "/root/somewhere"})
    assert (found.type, found.model, found.secrets) == ("provider", "google-gla:gemini-2.0", frozenset({"g-0123456"}))


def test_an_unknown_id() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no connector `depseek\.v3`") as caught:
        find("depseek.v3", tables={"deepseek.v3": {"type": "openai"}})
    assert caught.value.hint == "did you mean `deepseek.v3`?"
    with pytest.raises(ConfigurationError) as caught:
        find("nonsense")
    for word in ("-c openai", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "atp.toml", "atp models install smollm2", "local"):
        assert word in str(caught.value.hint)


def test_a_missing_variable_names_the_file_and_the_variable(tmp_path: Path) -> None:
    write(tmp_path, "openai/gpt4.conn.yao", YAO)
    with pytest.raises(ConfigurationError) as caught:
        find("openai.gpt4", tmp_path, {"PLACE": "x"})
    assert str(caught.value) == (
        "connectors/openai/gpt4.conn.yao:6:5: the connector `openai.gpt4` needs the variable MY_KEY for its `key`, "
        "which is not set"
    )
    assert caught.value.hint == "set MY_KEY in the environment or in .env"


def test_a_replay_needs_no_variables(tmp_path: Path) -> None:
    write(tmp_path, "openai/gpt4.conn.yao", YAO)
    found = Sources(tmp_path, {}, {}).find("openai.gpt4", keyless=True)
    assert (found.model, found.settings, found.key) == ("gpt-4o", {"temperature": 0.2}, None)
    assert Sources(tmp_path, {}, {}).find("anthropic.m", keyless=True).model == "m"


@pytest.mark.parametrize(
    ("raw", "message", "hint"),
    [
        ({"model": "m", "temprature": 1}, "has the key `temprature`", "did you mean `temperature`?"),
        ({"model": "m", "zzz": 1}, "has the key `zzz`", "what only the server knows goes into `extra_body`"),
        ({"model": "m", "settings": {"model": "x"}}, "has the key `model`", None),
        ({"model": "m", "settings": {"max_token": 1}}, "has the key `max_token`", "did you mean `max_tokens`?"),
        ({"model": "m", "type": "anthropic", "seed": 1}, "has the key `seed`", None),
        ({}, "names no `model`", None),
        ({"model": 3}, "names no `model`", None),
        ("gpt-4o", "is not a table", None),
        ({"model": "m", "options": []}, "`options` that are not an object", None),
        ({"model": "m", "options": {"model": "n"}}, "has `model` twice", None),
        ({"model": "m", "host": "a", "proxy": "b"}, "has both `host` and `proxy`", "leave one out"),
        ({"model": "m", "key": "schlüssel-123"}, "has a key with signs in it", None),
        ({"model": "m", "key": "two\nlines"}, "has a key with signs in it", None),
        ({"model": "m", "key": 5}, "has a `key` that is not text", None),
        ({"model": "m", "headers": {"A": 1}}, "has `headers` that are not texts", None),
        ({"model": "m", "headers": {"A": "b\r\nc"}}, "has a line break in the header `A`", None),
        ({"model": "m", "prices": {"input": 1}}, "has `prices` that can't be read", None),
        ({"model": "m", "prices": {"input": 1, "output": -1}}, "a price that is not a number", None),
        ({"model": "m", "timeout": 0}, "has a `timeout` that is not a number of seconds", None),
        ({"model": "m", "retries": 1.5}, "has `retries` that are not a whole number", None),
        ({"model": "m", "native_schema": "yes"}, "has a `native_schema` that is neither", None),
        ({"model": "m", "auth_mode": "magic"}, "has the `auth_mode` `magic`", None),
        ({"model": "m", "extra_body": 1}, "has `extra_body` that are not an object", None),
        ({"model": "m", "type": 3}, "has a `type` that is not text", None),
        ({"model": "m", "key": "${MY_KEY}"}, "has ${MY_KEY} in its `key`", "a variable is written $ENV.MY_KEY here"),
        ({"model": "m", "headers": {"A": "x ${B:c}"}}, "has ${B:c} in its `A`", "a variable is written $ENV.B here"),
        ({"model": "m", "temperature": float("nan")}, "has a `temperature` that is nan", None),
    ],
)
def test_what_is_wrong_with_a_connector(raw: Any, message: str, hint: str | None) -> None:
    error = wrong(raw)
    assert str(error).startswith("atp.toml: the connector `openai.gpt4` ")
    assert message in str(error)
    if hint is not None:
        assert error.hint == hint


def test_a_connector_without_a_type() -> None:
    assert "has no `type`" in str(wrong({"model": "m"}, name="deepseek.v3"))


def test_types_of_plugins_take_any_setting_but_no_slips() -> None:
    found = find("x", tables={"x": {"type": "theirs", "voltage": 3}})
    assert (found.model, found.settings) == ("", {"voltage": 3})
    with pytest.raises(ConfigurationError, match="`timeuot`") as caught:
        find("x", tables={"x": {"type": "theirs", "timeuot": 3}})
    assert caught.value.hint == "did you mean `timeout`?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("// note\n{", "2:2: the connector `bad` can't be read: not JSON: it ends too early"),
        ('{\n  "model": }', "2:12: the connector `bad` can't be read: not JSON: expecting value"),
        ('\ufeff{"a": 1,\n "a": 2}', "2:2: the connector `bad` can't be read: `a` is given twice in one object"),
        ('{"a":\n NaN}', "2:2: the connector `bad` can't be read: `NaN` is not a number that JSON can hold"),
        ("[1]", "1:1: the connector `bad` is not a table of settings"),
        (json.dumps("text"), "1:1: the connector `bad` is not a table of settings"),
        ('{"a": "\0"}', "1:8: the connector `bad` can't be read: the file holds a NUL character"),
    ],
)
def test_a_broken_file_concerns_only_who_uses_it(tmp_path: Path, content: str, message: str) -> None:
    write(tmp_path, "bad.conn.yao", content)
    write(tmp_path, "openai/gpt4.conn.yao", YAO)
    assert find("openai.gpt4", tmp_path, ENV).model == "gpt-4o"
    with pytest.raises(ConfigurationError) as caught:
        find("bad", tmp_path, ENV)
    assert str(caught.value) == f"connectors/bad.conn.yao:{message}"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{\n  // a comment\n  "model": "m", "temprature": 1}', "3:17"),
        ('{"model": "m",\n "options": {"temprature": 1}}', "2:14"),
        ('{"model": "m",\n "settings": {\n  "max_token": 1}}', "3:3"),
        ('{"model": "m", "options": {"settings":\n {"max_token": 1}}}', "2:3"),
        ('{"model": "m",\n "options": {"model": "n"}}', "2:14"),
        ('\n {"type": "openai"}', "2:2"),
        ('{"model": "m", "host": "a",\n "proxy": "b"}', "2:2"),
        ('{"model": "m",\n "headers": {"A": "b",\n "C": "${D}"}}', "3:2"),
        ('{"model": "m", "key": "k",\n "stop": ["a",\n "$ENV.NOT_SET"]}', "2:2"),
        ('{"model": "m", "options": {\n"retries": -1}}', "2:1"),
    ],
)
def test_what_is_wrong_in_a_file_has_its_line_and_column(tmp_path: Path, content: str, place: str) -> None:
    write(tmp_path, "openai/gpt4.conn.yao", content)
    with pytest.raises(ConfigurationError) as caught:
        find("openai.gpt4", tmp_path, ENV)
    assert str(caught.value).startswith(f"connectors/openai/gpt4.conn.yao:{place}: the connector `openai.gpt4` ")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"model": "m",\n "type": "unheard-of"}', "2:2"),
        ('{"model": "m", "type": "openai", "key": "k",\n "options": {"proxy": "ftp://x"}}', "2:14"),
    ],
)
def test_what_only_the_models_class_can_check_has_its_line_and_column(tmp_path: Path, content: str, place: str) -> None:
    write(tmp_path, "mine.conn.yao", content)
    with pytest.raises(ConfigurationError, match=rf"connectors/mine\.conn\.yao:{place}: the connector `mine` has the "):
        Models(tmp_path, {}, {}).get("mine", "the judge")
