"""Which values are secret, by the names of variables, headers and settings, and in addresses."""

from pathlib import Path
from typing import Any

import pytest

from atp.base.secret_values import (
    blot_out_written,
    is_secret_name,
    is_secret_setting,
    secret_settings,
    secret_variables,
)

SECRET_NAMES = (
    *("API_KEY", "apikey", "apiKey", "OPENAI_API_KEY", "KEY", "KEYS", "GITHUB_TOKEN", "authToken", "DB_PASSWORD"),
    *(
        "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "GOOGLE_CREDENTIALS",
        "credential",
        "CLIENT_SECRET",
        "X-Api-Key",
        "DB_PASS",
    ),
)
PLAIN_NAMES = (
    "PASS_RATE",
    "overall_pass_rate",
    "KEYBOARD",
    "KEYRING",
    "MONKEY",
    "TOKENIZER",
    "SECRETARY",
    "PASSWORDLESS",
    "PASSAGE",
    "HOME",
    "",
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_with_a_secret_word_by_itself(name: str) -> None:
    assert is_secret_name(name)
    assert secret_variables({name: "a-b-c-d-e"}) == {"a-b-c-d-e"}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_word_that_only_begins_or_ends_like_one_is_no_secret(name: str) -> None:
    assert not is_secret_name(name)
    assert secret_variables({name: "a-b-c-d-e"}) == set()


@pytest.mark.parametrize("name", ["sort_key", "primary_key", "cache_key", "key", "keyboard"])
def test_a_setting_called_key_is_a_secret_only_if_its_name_says_what_it_opens(name: str) -> None:
    assert not is_secret_setting(name)
    assert is_secret_setting(f"api_{name}") == (name != "keyboard")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short"),
        ("API_KEY", "Password"),
        ("TOKEN", "disabled"),
        ("MAX_TOKENS", "128000"),
        ("TOKEN_LIMIT", "1000000"),
        ("DATABASE_URL", "postgres://postgres:postgres@localhost/x"),
        ("DATABASE_URL", "postgres://someone:someone@localhost/x"),
    ],
)
def test_values_that_protect_nothing_are_not_masked(name: str, value: str) -> None:
    assert secret_variables({name: value}) == set()


def test_the_path_of_a_file_is_no_secret(tmp_path: Path) -> None:
    there, gone = tmp_path / "key.json", tmp_path / "gone.json"
    there.write_text("{}")
    assert secret_variables({"A_KEY": str(there), "B_KEY": str(gone), "C_KEY": "x\0yyyyy"}) == {str(gone), "x\0yyyyy"}


def test_what_is_before_or_around_a_secret_in_a_variable_is_not_needed_to_find_it() -> None:
    found = secret_variables({"A_KEY": "Bearer abc-def", "B_KEY": " ghi-jkl\n", "C_KEYS": '[{"token": "mno-pqr"}]'})
    assert {"abc-def", "ghi-jkl", "mno-pqr"} <= found


@pytest.mark.parametrize(
    ("settings", "secrets"),
    [
        ({"api_key": "sk-12345"}, {"sk-12345"}),
        ({"api_key": 12345678}, {"12345678"}),
        ({"headers": {"Authorization": "Bearer abc-def"}}, {"abc-def", "Bearer abc-def"}),
        ({"headers": {"proxy-authorization": "Token abc-def"}}, {"abc-def", "Token abc-def"}),
        (
            {"headers": {"AUTHORIZATION": "Basic bWU6aHVudGVyMg=="}},
            {"hunter2", "bWU6aHVudGVyMg==", "Basic bWU6aHVudGVyMg=="},
        ),
        ({"headers": {"Cookie": "id=abcdef12; lang=en"}}, {"abcdef12", "id=abcdef12; lang=en"}),
        ({"headers": {"X-Api-Key": "abcdef", "X-Functions-Key": "fghijk"}}, {"abcdef", "fghijk"}),
        ({"headers": {"User-Agent": "abcdef", "Accept": "text/html"}}, set()),
        ({"environment": {"LIT_TOKEN": "abcdef", "SORT_KEY": "fghijk", "MODE": "abcdef1"}}, {"abcdef", "fghijk"}),
        ({"servers": [{"env": {"A_SECRET": "abcdef"}}]}, {"abcdef"}),
        ({"args": ["--api-key", "abcdef", "--token=fghijk", "--mode", "lmnopq"]}, {"abcdef", "fghijk"}),
        ({"command": ["KEY=abcdef", "MODE=fghijk"]}, {"abcdef"}),
        ({"endpoint": "https://me:p%40ssword@host/x"}, {"p%40ssword", "p@ssword"}),
        ({"endpoint": "https://host/x?a=abcdef&key=fghijk&access_token=lmnopq"}, {"fghijk", "lmnopq"}),
        ({"password": {"min_length": "eight-at-least"}, "sort_key": "created_at"}, set()),
        ({"token": None, "secret": True, "max_tokens": [128000]}, set()),
        (
            {"api_key": ["abcdef", 12345678], "headers": {"Cookie": ["a=fghijk"]}},
            {"abcdef", "12345678", "a=fghijk", "fghijk"},
        ),
        ({"default_headers": {"X-Key": "abcdef"}, "Headers": {"X-Auth": "fghijk"}}, {"abcdef", "fghijk"}),
        ({"args": ["-H", "Authorization: Bearer abcdef", "Accept: text/html"]}, {"abcdef", "Bearer abcdef"}),
        ({"command": "KEY=abcdef run --token 'fgh ijk' --mode lmnopq"}, {"abcdef", "fgh ijk"}),
        ({"command": "run --token=abcdef it's"}, {"abcdef"}),
    ],
)  # fmt: skip
def test_secrets_in_settings(settings: Any, secrets: set[str]) -> None:
    assert secret_settings(settings) == secrets


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('  api_key: "sk-12345678"  # mine', '  api_key: "***********"  # mine'),
        ("Authorization: Bearer abcdefgh", "Authorization: Bearer ********"),
        ("api_key: ${API_KEY}", "api_key: ${API_KEY}"),
        ("api_key: ${API_KEY:sk-default}", "api_key: ${API_KEY:**********}"),
        ('{"token": "abcdefgh", "mode": "abcdefgh"}', '{"token": "********", "mode": "abcdefgh"}'),
        ("sort_keyboard: abcdefgh", "sort_keyboard: abcdefgh"),
        ("password: p@ss;w'ord  # mine", "password: **********  # mine"),
        ('- {password: "a;b c, d}, mode: x}', '- {password: "*******************'),
        ("{name: x, password: 'a,b;c''d', mode: x}", "{name: x, password: '********', mode: x}"),
        ("{password: a,b;cd, mode: x}", "{password: ******, mode: x}"),
        ("password: &a abcdefgh", "password: &a ********"),
        ("endpoint: http://me:abcdefgh@host/ : x", "endpoint: http://me:********@host/ : x"),
    ],
)
def test_a_source_line_stays_as_wide_as_it_was(line: str, shown: str) -> None:
    assert blot_out_written(line) == shown
