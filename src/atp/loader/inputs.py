"""Which files are meant: a file, a folder of files, a pattern."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from atp.loader.diagnostics import Diagnostics
from atp.loader.source import MOST_BYTES

_OWN_OUTPUT = re.compile(r"output-\d{14}.*", re.IGNORECASE)
_HAS_SUITE = re.compile(rb"^(?:\xef\xbb\xbf)?[ \t]*(?:[\"']?test_suite[\"']?[ \t]*:|\{[^\n]*test_suite)", re.MULTILINE)
_NOT_OURS = {"node_modules", "__pycache__", "site-packages"}


def find_files(paths: Iterable[str], notes: Diagnostics) -> list[Path]:
    """The test files that paths, folders and patterns stand for, each once, in order."""
    found: dict[Path, None] = {}
    for given in paths:
        for path in _expand(given, notes):
            found.setdefault(path)
    return list(found)


def _expand(given: str, notes: Diagnostics) -> Iterator[Path]:
    path = Path(given)
    if os.path.isdir(given):
        told = len(notes)
        inside = list(_in_folder(path, notes))
        if not inside and len(notes) == told:
            hint = "test files are *.test.md, *.jsonl, and *.yaml with a `test_suite`"
            notes.error("no-test-files", f"no test files in {given}", hint=hint)
        yield from inside
    elif not os.path.lexists(given) and glob.has_magic(given):
        matches = sorted(glob.glob(given, recursive=True))
        if not matches:
            notes.error(
                "no-test-files", f"nothing matches {given}", hint="check the pattern, and quote it for the shell"
            )
        for match in matches:
            yield from _in_folder(Path(match), notes) if os.path.isdir(match) else [Path(match)]
    else:
        yield path


def _in_folder(folder: Path, notes: Diagnostics) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        notes.error("unreadable", f"{error.filename} cannot be read: {error.strerror}", hint="check its permissions")

    for here, below, names in os.walk(folder, onerror=unreadable):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _NOT_OURS)
        for name in sorted(names):
            path = Path(here, name)
            if _is_test_file(path):
                yield path


def _is_test_file(path: Path) -> bool:
    name = path.name.lower()
    if name.endswith(".test.md"):
        return True
    if name.endswith(".jsonl"):
        return not _OWN_OUTPUT.fullmatch(name)
    return name.endswith((".yaml", ".yml")) and path.is_file() and _has_suite(path)


def _has_suite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(_HAS_SUITE.search(file.read(MOST_BYTES)))
    except OSError:
        return True  # that it can't be read should be said, not passed over
