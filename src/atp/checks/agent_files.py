"""A safe way to read the files and artifacts that an agent made.

Their names and contents come from an agent: a file may be a link that leads out of the workspace, a pipe, or endless.
"""

import base64
import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atp.base.errors import Error
from atp.base.files import open_untrusted
from atp.base.json.canonical import canonical
from atp.base.json.found import SearchCutShort, read_whole, unread_json
from atp.checks.evidence import NotKept, NotKeptFile, Subject
from atp.roles.record import Unshown
from atp.suite.result import Artifact

LARGEST = 64 * 1024 * 1024
"""Bytes; a larger file is not read."""
LARGEST_SHOWN = 1024 * 1024
"""Bytes; of a larger file, a judge is told only the size."""


class Unreadable(Error):
    """The file can't be read, so what is in it is unknown."""


NOT_TEXT = "it is not UTF-8 text"


class NoFile(Error):
    """The path is not a regular file in the workspace."""


class NotShown(Error):
    """A judge can't be shown the file. The reason is in words of ATP's, without any that the agent chose."""

    def __init__(self, why: str, *, is_too_large: bool = False) -> None:
        super().__init__(why)
        self.unshown = Unshown(why, is_too_large)


class AgentFile:
    """A file or artifact that the agent made."""

    def __init__(self, name: str, source: Path | Artifact | NotKeptFile) -> None:
        self.name = name
        self._source = source

    def must_be_a_file(self) -> None:
        """Raise `NoFile` if the path is not a regular file in the workspace."""
        if isinstance(self._source, Path):
            _real_file(self._source, self.name)
        elif isinstance(self._source, NotKeptFile) and self._source.is_link:
            raise NotKept(f"what the link `{self.name}` led to")

    def size(self) -> int:
        """The size in bytes."""
        if isinstance(self._source, Path):
            return _real_file(self._source, self.name).stat().st_size
        return self._source.size if isinstance(self._source, NotKeptFile) else len(self.content())

    def sha256(self) -> str:
        """The digest of the content."""
        known = self._source.sha256 if isinstance(self._source, NotKeptFile) else None
        return known or hashlib.sha256(self.content()).hexdigest()

    def content(self) -> bytes:
        """The content. Raises `Unreadable`, and `NotKept` for a file of an earlier run that has not kept it."""
        source = self._source
        if isinstance(source, NotKeptFile):
            raise NotKept(f"the content of `{self.name}`")
        if isinstance(source, Path):
            return _read(_real_file(source, self.name))
        if source.kind == "structured":
            return canonical(source.data).encode(errors="surrogatepass")
        if source.text is not None:
            return source.text.encode(errors="surrogatepass")
        try:
            # Without `validate`, letters that are not base64 would be skipped, and the rest taken for the content.
            return base64.b64decode("".join((source.base64 or "").split()), validate=True)
        except ValueError as error:
            raise Unreadable(f"its base64 can't be decoded: {error}") from error

    def data(self) -> Any:
        """The content as a JSON value, or `MISSING`. Raises `Unreadable`."""
        if isinstance(self._source, Artifact) and self._source.kind == "structured":
            return self._source.data
        with _search():
            return read_whole(_as_text(self.content()))

    def unread_json(self) -> str | None:
        """Says that the content has JSON in it, but is not JSON as a whole, if it is so. Raises `Unreadable`."""
        with _search():
            return unread_json(_as_text(self.content()), as_a_whole=True)

    def subject(self) -> Subject:
        """The content as text, or as data if it is structured. Raises `Unreadable`."""
        name, where = f"`{self.name}`", f"artifact {self.name}"
        if isinstance(self._source, Artifact) and self._source.kind == "structured":
            return Subject(self._source.data, name, where)
        return Subject(_as_text(self.content()), name, where)

    def text_to_show(self, most: int = LARGEST_SHOWN) -> str:
        """The text for a judge. Raises `NotShown` if there is none, or if it has more than `most` bytes."""
        if isinstance(self._source, NotKeptFile) and self._source.is_link:
            raise NotShown("it is not a regular file in the workspace")
        try:
            size = self.size()
            if size > most:
                raise NotShown(f"its {size} bytes are too many to be shown", is_too_large=True)
            return _as_text(self.content())
        except NoFile:
            raise NotShown("it is not a regular file in the workspace") from None
        except Unreadable:
            raise NotShown("it is not text that can be read") from None


@contextmanager
def _search() -> Iterator[None]:
    try:
        yield
    except SearchCutShort as error:
        raise Unreadable(str(error)) from error


def _as_text(content: bytes) -> str:
    """Decode a file's content. Raises `Unreadable`."""
    if b"\0" in content:  # UTF-16 of English text is valid UTF-8, too, in which nobody would find a word
        raise Unreadable(NOT_TEXT)
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Unreadable(NOT_TEXT) from None


def _real_file(path: Path, name: str) -> Path:
    root = path.parents[name.count("/")]
    try:
        real = path.resolve(strict=True)
        regular = stat.S_ISREG(real.stat().st_mode)
        inside = real.is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:
        raise NoFile(f"it leads nowhere ({error})") from error
    if not inside:
        raise NoFile("it is a link that leads out of the workspace")
    if not regular:
        raise NoFile("it is not a regular file")
    return real


def _read(path: Path) -> bytes:
    try:
        # The path has no links in it any more: one that is there now was put there since.
        with open_untrusted(path) as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise Unreadable(f"it can't be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST >> 20} MB")
    return content
