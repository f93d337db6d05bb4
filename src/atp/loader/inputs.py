"""Finds the test files that a path, a folder or a pattern stands for."""

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from atp.base.diagnostics import Diagnostics, has_errors
from atp.base.near import near_miss
from atp.loader.source import MOST_BYTES

_OWN_OUTPUT = re.compile(r"output-\d{14}.*|.*\.variations\.jsonl", re.IGNORECASE)
_RECORDED = re.compile(rb'\{"key":"[0-9a-f]{32}","boundary":"\w+",')
"""The beginning of a cassette's first line. Cassettes may lie among the tests."""
_FIRST = re.compile(rb"^(?:---(?=[ \t\r\n])[ \t\r]*)?(?!---[ \t\r\n])( *)([^\s#%])", re.MULTILINE)
"""The first character of a YAML file that is in no comment or directive, and its indentation."""
_FLOW_TOKEN = re.compile(
    rb"""[{}\[\]]|("[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^']*+'|[^\s{}\[\],:"'#]++)(\s*+:)?|#[^\n]*+""", re.DOTALL
)
_KEY = rb"(?:test_suite|'test_suite'|\"test_suite\")"
_FIRST_KEYS = re.compile(rb"^['\"]?(test[\w-]{2,12})['\"]?[ \t]*:", re.MULTILINE | re.IGNORECASE)
"""Keys at the beginning of a line that may be a misspelt `test_suite`."""
_NOT_OURS = {"node_modules", "__pycache__", "site-packages", "__snapshots__"}


def find_files(paths: Iterable[str], notes: Diagnostics) -> list[Path]:
    """The test files that paths, folders and patterns stand for, each once, in order."""
    found: dict[Path, None] = {}
    for argument in paths:
        for path in _expand(argument, notes):
            found.setdefault(path)
    return list(found)


def _expand(argument: str, notes: Diagnostics) -> Iterator[Path]:
    path = Path(argument)
    if not argument.strip():
        hint = "a variable may be unset; leave the argument out, or write . for this folder"
        notes.error("no-such-file", "an empty path was given to test", hint=hint)
    elif os.path.isdir(argument):
        noted = len(notes)
        inside = list(_in_folder(path, notes))
        if not inside and not has_errors(list(notes)[noted:]):
            hint = "test files are *.test.md, *.jsonl, and *.yaml with a `test_suite`"
            notes.error("no-test-files", f"no test files in {argument}", hint=hint)
        yield from inside
    elif not os.path.lexists(argument) and glob.has_magic(argument):
        matches = sorted(one for one in glob.glob(argument, recursive=True) if "__snapshots__" not in Path(one).parts)
        if not matches:
            notes.error(
                "no-test-files", f"nothing matches {argument}", hint="check the pattern, and quote it for the shell"
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
            if is_test_file(path):
                yield path
            elif slip := _misspelt_suite(path):
                message = f"{path} is left out: it has `{slip}`, and no `test_suite`"
                notes.warn("near-suite", message, hint="did you mean `test_suite`?")


def is_test_file(path: Path) -> bool:
    """Whether a file found in a folder is a test file."""
    name = path.name.lower()
    if name.endswith(".test.md"):
        return True
    if name.endswith(".jsonl"):
        return not _OWN_OUTPUT.fullmatch(name) and not _is_recorded(path)
    return name.endswith((".yaml", ".yml")) and path.is_file() and _has_suite(path)


def _misspelt_suite(path: Path) -> str | None:
    """The key that a YAML file which is no suite probably has in place of `test_suite`."""
    if not path.name.lower().endswith((".yaml", ".yml")) or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            keys = _FIRST_KEYS.findall(file.read(10_000))
    except OSError:
        return None
    return next((key for key in (one.decode() for one in keys) if near_miss(key, ["test_suite"])), None)


def _is_recorded(path: Path) -> bool:
    if not path.is_file():  # a pipe would never open
        return False
    try:
        with path.open("rb") as file:
            return _RECORDED.match(file.read(100)) is not None
    except OSError:
        return False  # loading will report that the file can't be read


def _has_suite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError:
        return True  # loading will report that the file can't be read
    if b"\0" in data[:4]:  # UTF-16 or 32, which loading refuses with a reason
        data = data.replace(b"\0", b"")
    return _names_suite(data.removeprefix(b"\xef\xbb\xbf").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff"))


def _names_suite(data: bytes) -> bool:
    """Whether `test_suite` is a key of the outermost mapping."""
    first = _FIRST.search(data)
    if first is None:
        return False
    if first.group(2) == b"{":
        return _in_flow_mapping(data, first.start(2))
    return bool(re.search(rb"^(?:---[ \t]+)?" + first.group(1) + _KEY + rb"[ \t]*:(?:\s|\Z)", data, re.MULTILINE))


def _in_flow_mapping(data: bytes, start: int) -> bool:
    depth = 0
    for token in _FLOW_TOKEN.finditer(data, start):
        depth += (token.group() in (b"{", b"[")) - (token.group() in (b"}", b"]"))
        if depth == 1 and token.group(2) and re.fullmatch(_KEY, token.group(1)):
            return True
    return False
