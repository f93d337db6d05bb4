"""JSONL test files, and JSON files with a list of the same cases.

A JSONL file of any length is read record by record in constant memory.
"""

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.cases import JSONL_KEYS, CaseReader
from atp.loader.jsonl.nodes import JsonLocator, parse_json, parse_line
from atp.loader.source import LoadContext, Source, check_regular, place_of
from atp.suite.case import Case
from atp.suite.suite import Suite

MOST_RECORD_BYTES = 16 * 1024 * 1024
"""The longest record that is read."""
MOST_SKIPPED_BYTES = 256 * 1024 * 1024
"""How far the end of a line that is too long is searched for."""
_BRACKETS = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+([{}\[\]]*+)', re.DOTALL)
_BOM = b"\xef\xbb\xbf"


class _Record:
    """Lines that together make one JSON value."""

    def __init__(self, first_line: int) -> None:
        self.first_line = first_line
        self.lines: list[bytes] = []
        self.size = 0
        self.depth = 0
        self.last = b""
        """The last character that isn't blank, which decides whether a value may follow."""

    def add(self, line: bytes) -> None:
        """Add a line. Lines beyond the longest record are only searched for its end, and not kept."""
        self.size += len(line)
        if self.size <= MOST_RECORD_BYTES:
            self.lines.append(line)
        elif not self.lines:
            return  # a record on one line, of which only the beginning is here
        for found in _BRACKETS.finditer(line):
            run = found.group(1)
            self.depth += run.count(b"{") + run.count(b"[") - run.count(b"}") - run.count(b"]")
        self.last = line.rstrip()[-1:] or self.last

    def broken_before(self, line: bytes) -> bool:
        """Whether a line begins a new record although this record isn't closed."""
        return line[:1] == b"{" and self.last not in (b",", b":", b"[")

    @property
    def closed(self) -> bool:
        return self.depth <= 0

    def value(self, notes: Diagnostics) -> Iterator[tuple[Any, JsonLocator]]:
        """The record's value, if it has one."""
        text = self._text(notes)
        parsed = None if text is None else parse_json(text, notes, self.first_line)
        if parsed is not None:
            yield parsed

    def _text(self, notes: Diagnostics) -> str | None:
        if self.size > MOST_RECORD_BYTES:
            message = f"this record is longer than {MOST_RECORD_BYTES // 2**20} MB"
            notes.error("too-large", message, Place(self.first_line, 1), "put large data into files of its own")
            return None
        data = b"".join(self.lines)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start]
            at = Place(self.first_line + before.count(b"\n"), error.start - before.rfind(b"\n"))
            notes.error("not-utf8", f"not UTF-8: byte 0x{data[error.start]:02x}", at, "save the file as UTF-8")
            return None
        if (nul := text.find("\0")) >= 0:
            at = place_of(text, nul, self.first_line)
            notes.error("nul-byte", "the file holds a NUL character", at, "it may be a binary file, or damaged")
            return None
        return text


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers. A line longer than a record may be is cut."""
    number = 0
    while line := file.readline(MOST_RECORD_BYTES + 2):
        number += 1
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        yield number, line
        if len(line) > MOST_RECORD_BYTES and not line.endswith(b"\n") and not _skip_line(file):
            return


def _skip_line(file: BinaryIO) -> bool:
    """Skip to the end of a line. False if the file, or `MOST_SKIPPED_BYTES`, ended before."""
    left = MOST_SKIPPED_BYTES
    while left > 0 and (rest := file.readline(1 << 20)):
        if rest.endswith(b"\n"):
            return True
        left -= len(rest)
    return False


def _values(file: BinaryIO, notes: Diagnostics) -> Iterator[tuple[Any, JsonLocator]]:
    """The JSON values of a file: a line each, or spread over lines, with comments and blank lines between."""
    record: _Record | None = None
    for number, line in _lines(file):
        bare = line.strip()
        if not bare or bare[:2] == b"//" or bare[:1] == b"#":
            if record is not None:
                record.add(b"\n" if line.endswith(b"\n") else b"")
            continue
        if record is not None and record.broken_before(line):
            yield from record.value(notes)
            record = None
        if record is None:
            value = parse_line(line) if len(line) <= MOST_RECORD_BYTES else None
            if value is not None:
                yield value, JsonLocator(line, number)
                continue
            record = _Record(number)
        record.add(line)
        if record.closed:
            yield from record.value(notes)
            record = None
    if record is not None:
        yield from record.value(notes)


def stream_cases(file: BinaryIO, context: LoadContext, notes: Diagnostics) -> Iterator[Case]:
    """The cases of a JSONL file, one after the other."""
    reader = CaseReader(notes, context, JSONL_KEYS)
    index = 0
    for data, locate in _values(file, notes):
        if not isinstance(data, dict):
            hint = "a list of cases goes into a .json file" if isinstance(data, list) else "write it as an object"
            notes.error("wrong-type", "each record must be an object", locate.value(()), hint)
            continue
        case = reader.read(data, index, locate)
        index += 1
        if case is not None:
            yield case


def load_jsonl(source: Source, context: LoadContext, notes: Diagnostics) -> Suite:
    """The suite in a JSONL text."""
    return _suite(source.path, stream_cases(io.BytesIO(source.text.encode()), context, notes), notes)


def load_jsonl_file(path: Path, context: LoadContext, notes: Diagnostics) -> Suite | None:
    """The suite in a JSONL file of any length."""
    if not check_regular(path, notes):
        return None
    try:
        with path.open("rb") as file:
            return _suite(str(path), stream_cases(file, context, notes), notes)
    except OSError as error:
        notes.error("unreadable", f"{path} cannot be read: {error.strerror}", hint="check its permissions")
        return None


def check_jsonl_file(path: Path, context: LoadContext, notes: Diagnostics, see: Callable[[Case], object]) -> bool:
    """Validate a JSONL file and call `see` with each case, keeping none. False if there are no cases."""
    if not check_regular(path, notes):
        return False
    count = 0
    try:
        with path.open("rb") as file:
            for case in stream_cases(file, context, notes):
                see(case)
                count += 1
    except OSError as error:
        notes.error("unreadable", f"{path} cannot be read: {error.strerror}", hint="check its permissions")
        return False
    if not count:
        _no_cases(notes)
    return bool(count)


def stream_file(path: Path, context: LoadContext) -> Iterator[Case]:
    """The cases of a JSONL file that was checked before."""
    with path.open("rb") as file:
        yield from stream_cases(file, context, Diagnostics(str(path)))


def load_json(source: Source, context: LoadContext, notes: Diagnostics) -> Suite | None:
    """The suite in a JSON file: a list of cases, or one case."""
    parsed = parse_json(source.text, notes)
    if parsed is None:
        return None
    data, locate = parsed
    reader = CaseReader(notes, context, JSONL_KEYS)
    if isinstance(data, dict):
        one = reader.read(data, 0, locate)
        return _suite(source.path, iter([one] if one else []), notes)
    if not isinstance(data, list):
        notes.error("wrong-type", "a JSON file must hold a list of cases", locate.value(()), "write [{…}, {…}]")
        return None
    cases = (reader.read(raw, index, locate, (index,)) for index, raw in enumerate(data))
    return _suite(source.path, (case for case in cases if case is not None), notes)


def _suite(path: str | None, cases: Iterator[Case], notes: Diagnostics) -> Suite:
    name = Path(path).stem if path else "cases"
    suite = Suite.model_construct(name=name, dialect="jsonl", path=path, cases=list(cases), agents=[])
    if not suite.cases:
        _no_cases(notes)
    return suite


def _no_cases(notes: Diagnostics) -> None:
    if not notes:
        notes.error("no-case", "there is no test case in this file", Place(1, 1), 'add {"id": "…", "input": "…"}')
