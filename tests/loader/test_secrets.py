"""Secrets come in by variables and go out nowhere."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from atp.loader import Loaded, LoadError, TestLoader
from atp.loader.load import load_text
from atp.loader.outline import outline, text
from atp.loader.source import LoadContext

Atp = Callable[..., CompletedProcess[str]]

SUITE = """\
test_suite: shop ${%(name)s}
description: about ${%(name)s}
agents: [{name: clerk, type: custom, config: {deep: ["${%(name)s}"]}}]
tests:
  - id: one
    name: One
    input: say ${%(name)s}
    metadata: {"k": "${%(name)s}"}
    assertions: [{type: contains, value: "${%(name)s}"}]
"""


def everything(loaded: Loaded) -> str:
    """All that `atp show` could print."""
    return json.dumps(outline(loaded)) + "\n".join(text(loaded))


def load(source: str, **env: str) -> Loaded:
    return load_text(source, "yaml", LoadContext(env=env))


@pytest.mark.parametrize(
    "name", ["API_KEY", "api_key", "GITHUB_TOKEN", "Secret", "DB_PASSWORD", "GOOGLE_CREDENTIALS", "openaiKey"]
)
def test_values_of_variables_named_like_secrets_are_masked(name: str) -> None:
    shown = everything(load(SUITE % {"name": name}, **{name: "s3cr3t-value"}))
    assert "s3cr3t-value" not in shown
    assert "***" in shown


def test_other_values_are_shown() -> None:
    assert "plain-value" in everything(load(SUITE % {"name": "ENDPOINT"}, ENDPOINT="plain-value"))


def test_short_values_are_not_masked() -> None:
    assert "12345" in everything(load(SUITE % {"name": "API_KEY"}, API_KEY="12345"))
    assert "123456" not in everything(load(SUITE % {"name": "API_KEY"}, API_KEY="123456"))


def test_defaults_of_secrets_are_masked() -> None:
    source = (SUITE % {"name": "API_KEY"}).replace("say ${API_KEY}", "say ${API_KEY:default-secret}")
    assert "default-secret" not in everything(load(source))


@pytest.mark.parametrize(
    "config", ["api_key: '${X}'", "headers: {Authorization: 'Bearer ${X}'}", "headers: {authorization: '${X}'}"]
)
def test_a_variable_used_as_a_key_is_a_secret_everywhere(config: str) -> None:
    loaded = load(
        f"""\
test_suite: shop
agents: [{{name: clerk, type: http, config: {{endpoint: "http://x", {config}}}}}]
tests: [{{id: one, name: One, input: "tell nobody ${{X}}"}}]
""",
        X="hush-hush",
    )
    assert "hush-hush" not in everything(loaded)
    assert "tell nobody ***" in everything(loaded)


def test_a_key_written_into_the_file_is_not_shown_either() -> None:
    loaded = load(
        'test_suite: s\nagents: [{name: a, type: http, config: {endpoint: "http://x", api_key: sk-written}}]\n'
        "tests: [{id: t, name: T, input: Hello}]\n"
    )
    assert "sk-written" not in everything(loaded)


def test_the_suite_itself_holds_the_value() -> None:
    loaded = load(SUITE % {"name": "API_KEY"}, API_KEY="s3cr3t-value")
    assert loaded.suite is not None
    assert loaded.suite.cases[0].input == "say s3cr3t-value"
    assert "s3cr3t-value" not in repr(loaded.suite.secrets - loaded.suite.secrets)


@pytest.mark.parametrize(
    "line",
    [
        "runs: ${API_KEY}",
        "tags: ${API_KEY}",
        "skip: ${API_KEY}",
        "assertions: [{type: '${API_KEY}'}]",
        "assertions: [{type: agent, use: '${API_KEY}'}]",
        "assertions: [{type: behavior, check: '${API_KEY}'}]",
        "assertions: [{type: regex, pattern: '(${API_KEY}'}]",
        "assertions: [{type: equals, value: {$regex: '(${API_KEY}'}}]",
        "agents: ['${API_KEY}']",
        "simulator: {use: 'agents:${API_KEY}'}",
    ],
)
@pytest.mark.parametrize("secret", ["s3cr3t-value", "s3cr3t-" + "v" * 60])
def test_no_message_shows_a_secret(line: str, secret: str) -> None:
    source = (
        "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n"
        f"tests:\n  - id: one\n    name: One\n    input: Hello\n    {line}\n"
    )
    with pytest.raises(LoadError) as caught:
        TestLoader(env={"API_KEY": secret}).load_string(source)
    assert secret[:12] not in str(caught.value)
    assert all(secret[:12] not in f"{one.message}{one.hint}" for one in caught.value.diagnostics)


def test_conflicting_defaults_of_a_secret_are_masked() -> None:
    loaded = load(
        (SUITE % {"name": "API_KEY:first-secret"}).replace("say ${API_KEY:first-secret}", "${API_KEY:second-one}")
    )
    (one, *_) = loaded.diagnostics
    assert one.message == "`API_KEY` has two different defaults: `***` and `***`"


def test_neither_validate_nor_show_prints_a_secret(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(
        "test_suite: s ${API_KEY}\nagents: [{name: a, type: custom, config: {}}]\n"
        "tests:\n  - {id: one, name: '${API_KEY}', input: '${API_KEY}', runs: '${API_KEY}',\n"
        "     tags: '${OTHER_KEY:by-default}'}\n"
    )
    env = {**os.environ, "API_KEY": "s3cr3t-value"}
    for arguments in (["validate"], ["show"], ["show", "--json"]):
        done = atp(*arguments, str(file), env=env)
        assert done.returncode == 2
        assert "s3cr3t-value" not in done.stdout + done.stderr
        assert "by-default" not in done.stdout + done.stderr


def test_the_caret_stays_true_below_a_masked_line(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(
        "test_suite: s\nagents: [{name: a, type: http, config: {api_key: sk-written, endpoint: nowhere}}]\n"
        "tests: [{id: t, name: T, input: '${MY_KEY:by-default} ${GONE}'}]\n"
    )
    lines = atp("validate", str(file)).stdout.splitlines()
    shown = next(number for number, line in enumerate(lines) if "tests:" in line)
    assert "by-default" not in lines[shown]
    assert lines[shown][lines[shown + 1].index("^") :].startswith("${GONE}")


NUMBERS = """\
test_suite: shop
agents: [{name: clerk, type: custom, config: {}}]
tests:
  - {id: one, name: One, input: Hello, metadata: {tok: "${N_TOKEN:1234567}", far: 71234567, run: 3}}
  - {id: two, name: Two, input: Hello, metadata: {tok: ["${F_TOKEN:0.5555}", "${Z_TOKEN:0654321}"], is: true}}
"""


def test_secrets_that_are_read_as_numbers_are_masked() -> None:
    loaded = load(NUMBERS)
    assert loaded.suite is not None
    assert loaded.suite.cases[0].metadata == {"tok": 1234567, "far": 71234567, "run": 3}
    assert loaded.suite.cases[1].metadata == {"tok": [0.5555, 654321], "is": True}
    one, two = outline(loaded)["cases"]
    assert one["metadata"] == {"tok": "***", "far": 71234567, "run": 3}
    assert two["metadata"] == {"tok": ["***", "***"], "is": True}


def test_convert_writes_no_secret_number(atp: Atp, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(NUMBERS)
    for dialect in ("yaml", "jsonl"):
        written = atp("convert", str(file), "--to", dialect, "-o", "-").stdout
        assert "${TOK" in written
        assert "71234567" in written
        for number in ("1234567,", "1234567\n", "1234567}", "0.5555", "654321"):
            assert number not in written.replace("71234567", "far")


def test_the_parts_of_a_secret_list_are_masked() -> None:
    source = (
        "test_suite: s\nagents: [{name: a, type: custom, config: {}}]\n"
        "tests: [{id: t, name: T, input: x, tags: '${KEYS}', metadata: {k: '${MORE_KEYS:[abcdefg, {a: hijklmn}]}'}}]\n"
    )
    shown = everything(load(source, KEYS="[first-key, second-key]"))
    for secret in ("first-key", "second-key", "abcdefg", "hijklmn"):
        assert secret not in shown
