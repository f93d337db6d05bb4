"""The files that agents and cases name, and what is in them: edited, they decide a trial anew."""

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from atp.base.errors import ConfigurationError
from atp.suite.case import Case
from atp.usercode.code_path import find_script, named_scripts

LARGEST = 64 * 2**20
"""Bytes; of a larger file its stamp has to do."""


def named_in(value: Any, base: Path) -> list[Path]:
    """Every file that a text in a configuration names: a program, a script, a prompt, `file.py:function`."""
    if isinstance(value, dict):
        return [path for item in value.values() for path in named_in(item, base)]
    if isinstance(value, list):
        return [path for item in value for path in named_in(item, base)]
    if not isinstance(value, str) or not value or len(value) > 1024 or "\0" in value:
        return []
    texts = {value, value.rpartition(":")[0], *value.split()}
    modules = {f"{text.replace('.', '/')}.py" for text in texts if text and "/" not in text}
    places = [folder / text for text in sorted(texts | modules) if text for folder in (base, Path.cwd())]
    return [path for path in places if path.is_file()]


def content(path: Path) -> list[Any]:
    """What tells a file's content from another."""
    about = path.stat()
    if about.st_size > LARGEST:
        return [str(path), about.st_size, about.st_mtime_ns]
    return [str(path), blake2b(path.read_bytes(), digest_size=16).hexdigest()]


class CaseFiles:
    """The files that the cases of a suite hang on, each read once."""

    def __init__(self, folder: Path, fixtures: Path | None, root: Path) -> None:
        """`folder` is the suite's, where its paths start."""
        self._folder = folder
        self._root = root
        self._known: dict[Path, Any] = {}
        self._fixtures = [self._read(fixtures)] if fixtures is not None else []

    def of(self, case: Case, base: Path) -> list[Any]:
        """What tells the content of a case's files from another; `base` is the agent's folder."""
        found = list(self._fixtures)
        if case.workspace is not None:
            found.append(self._read(self._folder / case.workspace))
        for hook in (case.before_hook, case.after_hook):
            if hook is not None:
                found += [self._read(path) for path in named_in(hook, self._folder)]
        for script in named_scripts(case.asserted):
            with suppress(ConfigurationError):  # the check will say so
                found.append(self._read(find_script(script, (base, self._folder, self._root))[0]))
        for message in case.messages:
            if isinstance(message.content, list):
                found += [self._read(path) for path in self._attached(message.content)]
        return found

    def _attached(self, parts: list[Any]) -> Iterator[Path]:
        for part in parts:
            source = getattr(part, "source", None)
            if isinstance(source, str) and source.startswith("file://"):
                yield self._folder / unquote(source.removeprefix("file://"))

    def _read(self, path: Path) -> Any:
        if path not in self._known:
            self._known[path] = _tree(path) if path.is_dir() else content(path) if path.is_file() else str(path)
        return self._known[path]


def _tree(folder: Path) -> list[Any]:
    files = [Path(here, name) for here, _, names in os.walk(folder) for name in names]
    return [content(path) for path in sorted(files) if path.is_file()]
