"""JSON that still knows where everything stands.

The standard library reads it; only when there is something to say is the text scanned again for places.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.source import DEEPEST, HALF_CHARACTER, MOST_VALUES, place_of
from atp.loader.validate import DataPath

_TOKEN = re.compile(r'[ \t\n\r]*(?:([{}\[\]:,])|("[^"\\]*+(?:\\.[^"\\]*+)*+")|([^\s{}\[\]:,"]+))')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rf"{_PAIR}|(\\u[dD][89a-fA-F])|\\.")
_BLANKS = b" \t\n\r"


class _Twice(Exception):
    """An object has the same key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Twice
    return result


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if number in (math.inf, -math.inf):
        raise ValueError("too large")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_LENIENT = json.JSONDecoder(parse_constant=_constant, parse_float=_float)


@dataclass(slots=True)
class _Spot:
    """The offset of a value in the text, with the offsets of its members or items."""

    start: int
    members: list[tuple[str, int, "_Spot"]] = field(default_factory=list)
    items: list["_Spot"] = field(default_factory=list)


class JsonLocator:
    """Places in a JSON text, by path. The text must be valid JSON."""

    def __init__(self, text: str | bytes, first_line: int = 1) -> None:
        self._source = text
        self._first_line = first_line
        self._root: _Spot | None = None

    @property
    def _text(self) -> str:
        if isinstance(self._source, bytes):
            self._source = self._source.decode()
        return self._source

    def key(self, path: DataPath) -> Place:
        """The place of the last key of the path; for a missing key, of the object that should have it."""
        parent = self._find(path[:-1])
        for name, start, _ in reversed(parent.members):
            if path and name == path[-1]:
                return self.place(start)
        return self.place(parent.start)

    def value(self, path: DataPath) -> Place:
        """The place of the value; for a missing value, of the nearest value around it."""
        if not path:  # asked for every record, so it must not cost a scan
            begin = len(self._source) - len(self._source.lstrip())
            return self.place(begin) if begin else Place(self._first_line, 1)
        return self.place(self._find(path).start)

    def place(self, offset: int) -> Place:
        """The line and column of an offset."""
        return place_of(self._text, offset, self._first_line)

    def duplicates(self) -> Iterator[tuple[str, Place]]:
        """The keys that an object has twice, with the place of the second."""
        todo = [self._spots()]
        while todo:
            spot = todo.pop()
            seen: set[str] = set()
            for name, start, below in spot.members:
                if name in seen:
                    yield name, self.place(start)
                seen.add(name)
                todo.append(below)
            todo.extend(spot.items)

    def _find(self, path: DataPath) -> _Spot:
        spot = self._spots()
        for step in path:
            below = (
                [one for name, _, one in spot.members if name == step] if isinstance(step, str) else spot.items[step:]
            )
            if not below:
                break
            spot = below[-1] if isinstance(step, str) else below[0]
        return spot

    def _spots(self) -> _Spot:
        if self._root is None:
            self._root = _scan(self._text)
        return self._root


def _scan(text: str) -> _Spot:
    """The offsets of all values. Without recursion, because a file may be nested to any depth."""
    root = _Spot(0)
    root_seen = False
    open_spots: list[_Spot] = []
    key: tuple[str, int] | None = None
    expects_key = False
    for token in _TOKEN.finditer(text):
        mark, start = token.group(1), token.start(token.lastindex or 0)
        if mark in ("]", "}"):
            open_spots.pop()
            expects_key = False
            continue
        if mark in (":", ","):
            expects_key = (
                mark == "," and bool(open_spots) and open_spots[-1].start >= 0 and text[open_spots[-1].start] == "{"
            )
            continue
        if expects_key and token.group(2):
            key, expects_key = (json.loads(token.group(2)), start), False
            continue
        spot = _Spot(start)
        if not root_seen:
            root, root_seen = spot, True
        elif key is not None:
            open_spots[-1].members.append((*key, spot))
            key = None
        else:
            open_spots[-1].items.append(spot)
        if mark in ("[", "{"):
            open_spots.append(spot)
            expects_key = mark == "{"
    return root


def parse_line(line: bytes) -> Any:
    """The value of a line without mistakes, as fast as possible. None if `parse_json` must look at the line."""
    if line.count(b",") >= MOST_VALUES:
        return None
    try:
        text = line.strip(_BLANKS).decode()
        value, end = _STRICT.raw_decode(text)
    except (ValueError, RecursionError, _Twice):
        return None
    if end < len(text) or (line.count(b"[") + line.count(b"{") > DEEPEST and _is_too_deep(value)):
        return None
    return value if _half_character(text) is None else None


def parse_json(text: str, notes: Diagnostics, first_line: int = 1) -> tuple[Any, JsonLocator] | None:
    """The JSON value of a text, or None with the reason noted. `first_line` is the text's first line in its file."""
    locate = JsonLocator(text, first_line)
    if (most := _too_many(text)) is not None:
        notes.error("too-large", f"more than {MOST_VALUES:,} values", locate.place(most), "split the file")
        return None
    try:
        try:
            data = _STRICT.decode(text)
        except _Twice:
            data = _LENIENT.decode(text)
            for name, at in locate.duplicates():
                notes.error("duplicate-key", f"`{name}` is given twice in one object", at, "remove one of them")
    except json.JSONDecodeError as error:
        offset = _offset(text, error)
        if (cut := _unclosed(text, offset)) is not None:
            opens = locate.place(cut)
            message, hint = "it ends too early", f"close the `{text[cut]}` that opens at {opens.line}:{opens.column}"
        else:
            message, hint = _plain(error.msg), _hint(error.msg, text, offset)
        notes.error("syntax", f"not JSON: {message}", locate.place(offset), hint)
        return None
    except RecursionError:
        data = None
    except ValueError:
        offset, word = _bad_number(text)
        message = f"`{word}` is not a number that JSON can hold" if len(word) <= 40 else "this number is too long"
        notes.error("bad-number", message, locate.place(offset), "put it in quotes")
        return None
    if (data is None or _is_too_deep(data)) and (deep := _first_too_deep(text)) is not None:
        notes.error("too-deep", f"nested deeper than {DEEPEST} levels", locate.place(deep), "write it flatter")
        return None
    half = _half_character(text)
    if half is not None:
        notes.error("not-utf8", HALF_CHARACTER, locate.place(half), "write the character itself")
        return None
    return data, locate


def _too_many(text: str) -> int | None:
    """The offset of the first value beyond `MOST_VALUES`, if there is one."""
    if text.count(",") < MOST_VALUES:
        return None
    commas = (token.start(1) for token in _TOKEN.finditer(text) if token.group(1) == ",")
    return next(islice(commas, MOST_VALUES - 1, None), None)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            below
            for one in level
            for below in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(below, dict | list)
        ]
        if not level:
            return False
    return True


def _first_too_deep(text: str) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(text):
        mark = token.group(1)
        depth += mark in ("[", "{")
        depth -= mark in ("]", "}")
        if depth > DEEPEST:
            return token.start(1)
    return None


def _unclosed(text: str, offset: int) -> int | None:
    """The offset of the innermost open bracket, if the text is valid JSON up to `offset` and ends there."""
    if text[offset:].strip() or text[:offset].count('"') % 2:
        return None
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token.group(1) in ("[", "{"):
            opened.append(token.start(1))
        elif token.group(1) in ("]", "}") and opened:
            opened.pop()
    return opened[-1] if opened else None


def _bad_number(text: str) -> tuple[int, str]:
    """The first number that Python can't represent, with its offset."""
    for token in _TOKEN.finditer(text):
        if word := token.group(3):
            try:
                _STRICT.decode(word)
            except json.JSONDecodeError:
                continue
            except ValueError:
                return token.start(3), word
    return 0, text


def _half_character(text: str) -> int | None:
    """The offset of an escape that is half of a surrogate pair, if there is one."""
    if not _SURROGATE.search(text):
        return None
    return next((one.start() for one in _ESCAPE.finditer(text) if one.group(1)), None)


def _plain(message: str) -> str:
    return message[:1].lower() + message.removesuffix(" at").removesuffix(" starting")[1:]


def _offset(text: str, error: json.JSONDecodeError) -> int:
    """The offset of the error. For a trailing comma, Python 3.13 gives the comma, earlier versions the next token."""
    if not error.msg.startswith("Illegal trailing comma"):
        return error.pos
    rest = text[error.pos + 1 :]
    return error.pos + 1 + len(rest) - len(rest.lstrip())


def _hint(message: str, text: str, offset: int) -> str:
    """A hint at the most likely cause of a JSON error."""
    before, after = text[:offset].rstrip(), text[offset : offset + 1]
    if before.endswith(",") and after in ("}", "]"):
        return "remove the comma before this"
    if after == "\n" and before.count('"') % 2:
        return "close the text before the line ends; a line break in it is written \\n"
    if message.startswith("Unterminated string"):
        return "close the text that begins here"
    if after == "'":
        return "JSON takes double quotes only"
    if text[offset : offset + 4] in ("True", "None", "Fals"):
        return "JSON writes true, false and null in small letters"
    if "escape" in message and after == "\\":
        letter = text[offset + 1 : offset + 2]
        return f"a backslash is written twice in JSON: `\\\\{letter}`"
    return "check the commas and quotes before this"
