"""Loads a suite from a path, a text or a message, in any dialect."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, has_errors
from atp.base.errors import Error
from atp.base.text import cut
from atp.loader.source import LoadContext, Source, check_text, read_source
from atp.suite.case import Case
from atp.suite.message import Message
from atp.suite.suite import Suite

if TYPE_CHECKING:
    from atp.loader.markdown.lines import Line

FileDialect = Literal["yaml", "markdown", "jsonl", "json"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded file: the suite, as far as it could be read, and the diagnostics."""

    path: str | None
    suite: Suite | None
    diagnostics: list[Diagnostic]
    markdown: str | None = field(default=None, repr=False, compare=False)
    """The text of a Markdown file, for `lines`."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Values that no output may show, also those of a file whose suite can't be read."""

    def lines(self) -> "list[Line] | None":
        """What became of each line of a Markdown file, which is read again for that; None in other dialects."""
        if self.markdown is None:
            return None
        from atp.loader.markdown.lines import classify_lines

        return classify_lines(self.markdown, self.diagnostics)

    @property
    def ok(self) -> bool:
        """Whether there is a suite, and no errors."""
        return self.suite is not None and not has_errors(self.diagnostics)


def dialect_of(path: Path) -> FileDialect | None:
    """The dialect of a file, by its name."""
    name = path.name.lower()
    if name.endswith(".test.md"):
        return "markdown"
    endings: dict[str, FileDialect] = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".json": "json"}
    return endings.get(path.suffix.lower())


def load_path(path: Path, context: LoadContext | None = None) -> Loaded:
    """Load a file, in the dialect of its name."""
    context = context or LoadContext()
    notes = Diagnostics(str(path))
    dialect = dialect_of(path)
    if dialect is None and os.path.isfile(path):
        notes.error("unknown-format", f"{path}: no test file by its name", hint="use .yaml, .test.md, .jsonl or .json")
        return Loaded(str(path), None, list(notes))
    markdown: str | None = None
    with no_collection():
        if dialect == "jsonl":
            from atp.loader.jsonl.records import load_jsonl_file

            suite = load_jsonl_file(path, context, notes)
        else:
            source = read_source(path, notes)
            suite = _load_source(source, dialect or "yaml", context, notes) if source else None
            markdown = source.text if source and dialect == "markdown" else None
    return Loaded(str(path), suite, notes.in_order(), markdown, frozenset(notes.secrets))


def load_text(
    text: str, dialect: FileDialect | None = None, context: LoadContext | None = None, path: str | None = None
) -> Loaded:
    """Load a text, in `dialect` or in the dialect that the text looks like."""
    notes = Diagnostics(path)
    checked = check_text(text, notes)
    with no_collection():
        source = None if checked is None else Source(checked.removeprefix("\ufeff"), path)
        dialect = dialect or (sniff(source.text) if source else None)
        suite = _load_source(source, dialect, context or LoadContext(), notes) if source and dialect else None
    markdown = source.text if source and dialect == "markdown" else None
    return Loaded(path, suite, notes.in_order(), markdown, frozenset(notes.secrets))


def load_message(text: str) -> Suite:
    """A suite of one case that says `text`."""
    name = " ".join(text.split())
    case = Case(id="message", name=cut(name, 60), messages=[Message(role="user", content=text)])
    return Suite(name="message", dialect="message", cases=[case])


def sniff(text: str) -> FileDialect:
    """The dialect a text looks like."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith(("//", "#"))]
    first = lines[0].lstrip() if lines else ""
    if first.startswith("["):
        return "json"
    if first.startswith("{"):
        return "jsonl"
    return "markdown" if first.rstrip() == "---" and "---" in (line.rstrip() for line in lines[1:]) else "yaml"


def _load_source(source: Source, dialect: FileDialect, context: LoadContext, notes: Diagnostics) -> Suite | None:
    match dialect:
        case "yaml":
            from atp.loader.yaml.suite import load_yaml

            return load_yaml(source, context, notes)
        case "markdown":
            from atp.loader.markdown import load_markdown

            return load_markdown(source, context, notes)
        case "jsonl":
            from atp.loader.jsonl.records import load_jsonl

            return load_jsonl(source, context, notes)
        case "json":
            from atp.loader.jsonl.records import load_json

            return load_json(source, context, notes)


@contextmanager
def no_collection() -> Iterator[None]:
    """Don't collect garbage inside; afterwards as before. Loading makes many objects and hardly any garbage."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class TestLoader:
    """Loads suites, and raises `LoadError` for a file that can't be used: the interface of the YAML suite format."""

    __test__ = False  # pytest takes every class called Test… for a test

    def __init__(self, env: Mapping[str, str] | None = None, *, strict: bool = False) -> None:
        """`env` replaces the process environment; `strict` makes warnings errors."""
        self._given = LoadContext() if env is None else LoadContext(env=env)
        self._strict = strict

    def load_file(self, path: str | Path) -> Suite:
        """Load a file of any dialect. Raises `LoadError`."""
        return self._usable(lambda: load_path(Path(path), self._given))

    def load_string(self, text: str, dialect: FileDialect | None = None) -> Suite:
        """Load a text, in `dialect` or in the dialect that the text looks like. Raises `LoadError`."""
        return self._usable(lambda: load_text(text, dialect, self._given))

    def _usable(self, load: Callable[[], Loaded]) -> Suite:
        try:
            loaded = load()
        except SystemExit as left:  # of a module that stands in for one of ours, in a program that would end with 0
            raise Error(
                f"a module that ATP has imported would end the program: {type(left).__name__}: {left}",
                "look for a file on `sys.path` that has the name of an installed package",
            ) from left
        if loaded.suite is None or not loaded.ok or (self._strict and loaded.diagnostics):
            raise LoadError(loaded.diagnostics)
        return loaded.suite
