"""Text for people: cut to a readable length, without the run's secrets, on one line, unable to steer a terminal."""

import os
import re
import unicodedata
from typing import Any

from atp.base.diagnostics_text import printable
from atp.base.json.text import encode, whole_text
from atp.base.secrets import current_secrets

LONGEST = 300
"""How much of a text is shown."""
MOST_LINES = 12
"""How many lines of a text are shown."""

Line = tuple[str, str]
"""A line, and how it looks: `title`, `rule`, `info`, `passed`, `failed`, `error`, `other`, `detail`, `removed`, `added`
or just text."""
_CI = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
_COMMAND = re.compile(r"^\s*::|##(?=\w*\[)", re.MULTILINE)  # `::error::`, `##[group]`, `##vso[…]`, `##teamcity[…]`
INFO = "ℹ"  # noqa: RUF001  (the sign of the JSONL format's console)


def cut(value: Any, longest: int = LONGEST) -> str:
    """The beginning of a value as text: at most `longest` characters, a `…` for the rest.

    Text stays as it is, bytes are decoded, any other value is written as JSON. The current secrets are masked before
    the cut: half a secret would not be recognised afterwards.
    """
    text = masked_beginning(value, longest + 1)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_start(value: str | bytes, longest: int = LONGEST) -> str:
    """The end of a text: at most `longest` characters, a `…` for what is before. Secrets are masked first."""
    text = masked_beginning(value, len(value))
    return text if len(text) <= longest else f"…{text[len(text) - longest + 1 :]}"


def masked_beginning(value: Any, longest: int) -> str:
    """A value as text with the current secrets masked: at least its first `longest` characters, or all of it."""
    secrets = current_secrets()
    if isinstance(value, bytes | bytearray | memoryview):
        beginning = bytes(value[: 4 * (longest + secrets.reach)])  # no character has more than four bytes
        value = (bytes(value) if secrets.may_be_in(beginning) else beginning).decode(errors="replace")
    text: str = value if isinstance(value, str) else encode(value).decode()
    return secrets.mask_beginning(text, longest) if secrets else text


def words(text: str) -> str:
    """The text on one line, with a blank for any blanks and line breaks. Secrets that are wrapped are masked first."""
    return " ".join(masked_beginning(text, len(text)).split())


def comparable(text: str) -> str:
    """The text as it is compared with others: a model may get and write the same letters in another encoding."""
    return " ".join(unicodedata.normalize("NFC", whole_text(text)).split())


def one_line(text: str, longest: int = LONGEST) -> str:
    """The text, cut, with blanks for line breaks and U+FFFD for what could steer a terminal."""
    text = cut(text, longest)  # first of all: the text may have millions of characters
    return text if text.isprintable() else printable(text)


def some_lines(text: str, indent: str, look: str = "detail") -> list[Line]:
    """The first lines of a text, each cut, at most `MOST_LINES`."""
    most = LONGEST * MOST_LINES
    lines = masked_beginning(text, most)[:most].splitlines()
    found = [(indent + one_line(line), look) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES or len(text) > most:
        found.append((f"{indent}…", look))
    return found


def value_text(value: Any, longest: int = LONGEST) -> str:
    """A value in JSON's notation, in which nothing is invisible. A long text is cut inside its quotes."""
    if isinstance(value, str) and len(value) > longest:
        value = masked_beginning(value, longest)[: longest - 1]
        return one_line(encode(value).decode()[:-1], 2 * longest) + '…"'
    return one_line(encode(value).decode(), longest)


def harmless(text: str) -> str:
    """The whole text, line breaks and tabs included, with U+FFFD for what could steer a terminal."""
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    odd = {one for one in set(text) if not one.isprintable() and one not in "\n\t"}
    return text.translate({ord(one): printable(one) for one in odd})


def without_commands(text: str) -> str:
    """The text without the commands that the CI system around us would obey: no agent may give it any."""
    if not any(name in os.environ for name in _CI):
        return text
    return _COMMAND.sub(lambda found: f"{found[0][:-1]} {found[0][-1]}", text)
