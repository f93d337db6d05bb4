"""Reads the text of a file that may be anything: huge, a folder, a pipe, not text. Has the context of a load, too."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss

MOST_BYTES = 64 * 1024 * 1024
"""The longest YAML or Markdown file."""
MOST_VALUES = 1_000_000
"""How many values a file may hold, or a record of a JSONL file; each takes some 100 to 600 bytes while it is read."""
DEEPEST = 100
"""How deep values may be nested."""

HALF_CHARACTER = "half of a surrogate pair, which is no character"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadContext:
    """What the caller supplies, so that a file need not: the environment, and the parts that the command line names."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Where variables are looked up."""
    agent: bool = False
    """An agent is named (`-n`): a file needs none of its own."""
    spare_agent: bool = False
    """The environment or the project's settings name an agent for files that have none of their own."""
    simulator: bool = False
    """A simulator is named (`--simulator`)."""
    assessor: bool = False
    """An assessor is named (`--assessor`)."""
    pass_rate: bool = False
    """A pass rate is given for cases that have none (`--pass-rate`, a setting)."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file with line ends unified, and its path."""

    text: str
    path: str | None = None

    def line(self, number: int) -> str:
        """A line by its number from 1; empty if there is none."""
        lines = self.text.split("\n", number)
        return lines[number - 1] if 0 < number <= len(lines) else ""


def check_regular(path: Path, notes: Diagnostics) -> bool:
    """Whether `path` is a regular file. Reading a pipe or a device might never end."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        why = "there is no such file" if missing else f"cannot be read: {getattr(error, 'strerror', None) or error}"
        hint = _missing_file_hint(path) if missing else "check the path"
        notes.error("no-such-file" if missing else "unreadable", f"{path}: {why}", hint=hint)
        return False
    if stat.S_ISREG(mode):
        return True
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
    notes.error("not-a-file", f"{path} is {kind}, not a file", hint="name a regular file")
    return False


def _missing_file_hint(path: Path) -> str:
    """How to find the file that was meant."""
    if path.is_symlink():
        return f"it is a link to {os.readlink(path)}, which is not there"
    if not path.parent.is_dir():
        return f"check the path: there is no folder {path.parent}"
    try:
        meant = near_miss(path.name, os.listdir(path.parent))
    except OSError:
        meant = None
    return f"did you mean `{path.with_name(meant)}`?" if meant else "check the path"


def read_source(path: Path, notes: Diagnostics) -> Source | None:
    """The text of a file, or None with the reason noted."""
    if not check_regular(path, notes):
        return None
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        notes.error("unreadable", f"{path} cannot be read: {error.strerror}", hint="check its permissions")
        return None
    text = decode(data, notes)
    return None if text is None else Source(text, str(path))


def decode(data: bytes, notes: Diagnostics) -> str | None:
    """Decode UTF-8 and unify line ends. None, with the reason noted, if the text is too long or not valid."""
    if len(data) > MOST_BYTES:
        notes.error("too-large", f"the file is longer than {MOST_BYTES // 2**20} MB", hint="split it")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        at = Place(1 + before.count(b"\n"), error.start - before.rfind(b"\n"))
        notes.error("not-utf8", f"not UTF-8: byte 0x{data[error.start]:02x}", at, hint="save the file as UTF-8")
        return None
    return check_text(text, notes)


def check_text(text: str, notes: Diagnostics) -> str | None:
    """The text with line ends unified. None, with the reason noted, if it has NUL characters or half characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    if (start := text.find("\0")) >= 0:
        at = place_of(text, start)
        notes.error("nul-byte", "the file holds a NUL character", at, hint="it may be a binary file, or damaged")
        return None
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        at = place_of(text, error.start)
        notes.error("not-utf8", HALF_CHARACTER, at, hint="save the text as UTF-8")
        return None
    return text


def place_of(text: str, offset: int, first_line: int = 1) -> Place:
    """The line and column of an offset in a text."""
    return Place(first_line + text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset))
