"""Which values are secret: those of variables, headers and settings that are named so, and passwords in URLs.

A value of fewer than `SHORTEST_SECRET` characters or one of a few ordinary words is never masked: it protects nothing,
and a report would be full of masks. Nor is the path of an existing file, and a number only if the name ends with the
word (`API_KEY`, not `MAX_TOKENS` or `TOKEN_LIMIT`).
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from atp.base.secrets import SHORTEST_SECRET

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The words of a name: `OPENAI_API_KEY`, `apiKey`, `X-Api-Key`."""
_SECRET_WORDS = frozenset(("key", "token", "secret", "password", "passwd", "passphrase", "pass", "credential"))
_SECRET_ENDS = ("password", "passwd", "secret", "token", "apikey", "accesskey", "secretkey", "privatekey")
"""How a word may end that is written together: `PGPASSWORD`, `authtoken`."""
_HEADERS = frozenset(("authorization", "cookie", "auth"))
_KINDS_OF_KEYS = frozenset(
    ("api", "access", "secret", "private", "auth", "signing", "encryption", "master", "account", "subscription")
)
# fmt: off
_ORDINARY = frozenset((
    "basic", "bearer", "changeme", "default", "development", "disabled", "enabled", "example", "localhost", "optional",
    "passwd", "password", "placeholder", "postgres", "private", "production", "public", "required", "secret", "staging",
    "string", "testing", "undefined", "unknown", "username",
))
# fmt: on
_SCHEMES = frozenset(("apikey", "basic", "bearer", "digest", "negotiate", "token"))
_NUMBER = re.compile(r"[+-]?[0-9][0-9_.,]*")
_URL = re.compile(r"\b[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s\"'<>]+")
_USER = re.compile(r"://([^/?#@:]*):([^/?#]*)@")
_QUERY = re.compile(r"[?&;]([^=&;#]+)=([^&;#]*)")
_ASSIGNED = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)=(.+)", re.DOTALL)
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w-]*")
_HEADER = re.compile(r"([A-Za-z][\w-]*):\s*(\S.*)")
_WRITTEN_NAME = re.compile(r"""(?<![\w.-])([A-Za-z_][\w.-]{0,99})["']?\s*[:=]\s*(?:[&!][\w.-]+\s+)?""")
_SCHEME = r"(?:(?:Bearer|Basic|Token)\s+)?"
_WRITTEN_VALUE = re.compile(
    rf"""(?:"{_SCHEME}((?:[^"\\]|\\.)*+)|'{_SCHEME}((?:[^']|'')*+)"""
    rf"""|{_SCHEME}([^\s"'$,}}\[\]](?:[^\s,}}\]]|[,}}\]](?![\s,}}\]]|$)|\s(?!\s*(?:\#|$)))*+))"""
)
"""A value after its name: in quotes, or up to what ends a value in YAML or JSON. A value may have megabytes."""


def is_secret_name(name: str) -> bool:
    """Whether the variable or the header of this name has a secret: `API_KEY`, `apikey`, but not `KEYBOARD`."""
    return _has_secret_word(_words(name))


def _is_secret_header(name: str) -> bool:
    return is_secret_name(name) or not _HEADERS.isdisjoint(_words(name))


def is_secret_setting(name: str) -> bool:
    """Whether the setting of this name has a secret: `api_key`, `password`, but not `sort_key`."""
    words = _words(name)
    if _KINDS_OF_KEYS.isdisjoint(words):
        words.discard("key")
    return _has_secret_word(words) or not words.isdisjoint(("authorization", "cookie"))


def _has_secret_word(words: set[str]) -> bool:
    if words >= {"pass", "rate"}:  # what a case asks for, or a report says; any other pass is a password
        words = words - {"pass"}
    return not _SECRET_WORDS.isdisjoint(words) or any(word.endswith(_SECRET_ENDS) for word in words)


def _words(name: str) -> set[str]:
    """The words of a name, in small letters and the singular."""
    words = (word.lower() for word in _WORDS.findall(name))
    return {word if word.endswith("ss") else word.removesuffix("s") for word in words}


def is_secret(name: str, value: str, used_as: Any = None) -> bool:
    """Whether the value of a variable is a secret, by its name or the key that uses it."""
    named = is_secret_name(name) or (isinstance(used_as, str) and is_secret_setting(used_as))
    return named and _is_worth_masking(value, name)


def _is_worth_masking(value: str, name: str = "") -> bool:
    if len(value) < SHORTEST_SECRET or value.lower() in _ORDINARY:
        return False
    if _NUMBER.fullmatch(value):
        last = (_WORDS.findall(name) or ["key"])[-1].lower()
        return not last.endswith("s") and is_secret_name(last)
    return True


def _is_path(value: str) -> bool:
    try:
        return os.path.exists(value)
    except ValueError:  # a NUL, say
        return False


def secret_variables(environment: Mapping[str, str]) -> set[str]:
    """The secrets among environment variables: those that are named so, and the passwords in addresses."""
    found: set[str] = set()
    for name, value in environment.items():
        if is_secret(name, value) and not _is_path(value):
            found.update({value, *_of_header(value, name)})
        if "://" in value:
            found.update(_of_addresses(value))
        if value[:1] in ("{", "[") and is_secret_name(name):  # the file of a service account, say
            import json  # rarely needed

            with suppress(ValueError):
                found.update(secret_settings(json.loads(value)))
    return found


def secret_settings(settings: Any) -> set[str]:
    """The secrets in a configuration: in settings, headers, variables, options of commands and addresses."""
    found: set[str] = set()
    _collect(settings, is_secret_setting, found)
    return {value for value in found if not _is_path(value)}


_BELOW = {"environment": is_secret_name, "env": is_secret_name}


def _collect(value: Any, is_named: Callable[[str], bool], found: set[str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            name = str(key)
            if is_named(name):
                for one in item if isinstance(item, list | tuple) else (item,):
                    if isinstance(one, str | int) and not isinstance(one, bool):
                        found.update(_of_header(str(one), name))
            below = _is_secret_header if name.lower().endswith("headers") else _BELOW.get(name, is_secret_setting)
            _collect(_arguments(item) if name == "command" and isinstance(item, str) else item, below, found)
    elif isinstance(value, list | tuple):
        for option, item in zip((None, *value), value, strict=False):
            if isinstance(option, str) and isinstance(item, str) and _OPTION.fullmatch(option):
                found.update((item,) if is_secret(option, item) else ())
            _collect(item, is_secret_setting, found)
    elif isinstance(value, str):
        if (assigned := _ASSIGNED.fullmatch(value)) and is_secret(assigned[1], assigned[2]):
            found.add(assigned[2])
        if (header := _HEADER.fullmatch(value)) and _is_secret_header(header[1]):  # `curl -H "Authorization: …"`
            found.update(_of_header(header[2], header[1]))
        found.update(_of_addresses(value))


def _arguments(command: str) -> list[str]:
    """The arguments of a command that is written as one text."""
    try:
        return shlex.split(command)
    except ValueError:  # a quote that is never closed
        return command.split()


def _of_header(value: str, name: str) -> Iterator[str]:
    """The value without the scheme before it; also each cookie's, and the password that `Basic` hides."""
    scheme, _, rest = value.strip().partition(" ")
    secret = rest.strip() if scheme.lower() in _SCHEMES and rest else value.strip()
    pieces = {secret, value.strip()}
    if "cookie" in _words(name):
        pieces.update(pair.partition("=")[2].strip() for pair in value.split(";"))
    if scheme.lower() == "basic":
        import base64  # rarely needed

        with suppress(ValueError):  # not base64, or not text
            pieces.add(base64.b64decode(secret, validate=True).decode().partition(":")[2])
    yield from (one for one in pieces if _is_worth_masking(one, name))


def _of_addresses(text: str) -> Iterator[str]:
    """The passwords, and the secrets in the query, of the addresses in a text."""
    for found in _URL.finditer(text) if "://" in text else ():
        pairs = [(user, secret) for user, secret in _USER.findall(found[0]) if secret != user]
        pairs += [(name, secret) for name, secret in _QUERY.findall(found[0]) if is_secret_name(name)]
        for _, secret in pairs:
            for one in {secret, unquote(secret)}:
                if _is_worth_masking(one):
                    yield one


def blot_out_written(line: str) -> str:
    """A line of a file with asterisks for the values of keys that are named like a secret."""
    for name in _WRITTEN_NAME.finditer(line):
        value = _WRITTEN_VALUE.match(line, name.end())
        if value and value.lastindex and is_secret(name[1], value[value.lastindex], name[1]):
            begin, end = value.span(value.lastindex)
            line = line[:begin] + "*" * (end - begin) + line[end:]
    for secret in _of_addresses(line):
        line = line.replace(secret, "*" * len(secret))
    return line
