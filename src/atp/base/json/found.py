"""Finds the JSON in an agent's answer: all of it, a fenced block, or an object or list in the midst of prose.

The text is hostile: megabytes of `{`, of nested brackets, of things that only look like JSON. So each piece of it is
read a bounded number of times. Where a limit ends the search, `SearchCutShort` is raised: whether the text has JSON in
it is unknown then, which is not the same as no JSON. The same goes for JSON that readers understand differently: an
object with a key twice, of which Python would keep the last, and numbers beyond all floats.
"""

import json
import math
import re
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NoReturn

DEEPEST = 200
"""Levels of nesting. Code that walks through a value may use recursion."""
MOST_TRIES = 50_000
"""How many places in prose that look like the beginning of JSON are tried."""
MOST_BLOCKS = 1_000
"""How many fenced blocks are tried."""
_FIRST_WINDOW = 256
"""Characters; see `_read_at`."""


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = Missing.MISSING
"""No value, unlike null."""


class SearchCutShort(ValueError):
    """A text that was not read to its end. The message says why, in no words of the text."""


_TOO_DEEP = f"it is nested deeper than {DEEPEST} levels"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SearchCutShort("an object in it has the same key twice")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise SearchCutShort("it has a number that is too large to be represented")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite)
_STRICT = json.JSONDecoder(parse_constant=_refuse)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_BEGINS = re.compile(r'\{\s*["}]|\[\s*[\]\[{"\-0-9tfn]')
_FIRST_TEXT = re.compile(r'[{\[]\s*"[^"\\]*(?:\\.[^"\\]*)*"\s*', re.DOTALL)
_BEGINS_ANY = frozenset('{["-0123456789tfn')
_TEXT = (
    r'[bu]?"(?:[^"\\]|\\.)*+"'
    r"|[bu]?'[^'\n]*+'"
    # Escaped by what was around it, or set by a word processor.
    r'|\\++"[^"\n]*+"|[“„][^“”„\n]*+[“”]|[‘‚][^‘’‚\n]*+[‘’]'  # noqa: RUF001
)
_BLANK = r"(?:\s|(?://|#)[^\n{\[]*+\n|/\*(?:[^*{\[]|\*(?!/))*+\*/)*+"
"""White space, and comments as other languages have them. None goes beyond the next bracket."""
_NUMBER = r"-?\d[\d.eE+-]*+"
_WORD = r"(?:true|false|null|True|False|None|NaN|-?Infinity)\b"
_FIRST_MEMBER = re.compile(
    rf"\{{{_BLANK}(?:{_TEXT}){_BLANK}(?::|\Z)"  # a key
    rf'|\{{{_BLANK}"(?:[^"\\]|\\.)*+\Z'  # a key that is cut off
    rf"|\{{{_BLANK}[\w$-]++{_BLANK}:{_BLANK}(?:[\"'\[{{\0]|{_NUMBER}|{_WORD})"  # a key without quotes, and a value
    rf"|\[{_BLANK}(?:{_TEXT}|{_NUMBER}|{_WORD}){_BLANK},"  # an element, and there are more
    rf"|(?<![\w)\]])\[\s*+(?:{_TEXT})\s*+(?:\]|\Z)",  # a text as the only element, but no index in a program
    re.DOTALL,
)
"""Where an object or list begins, as JSON, Python or JavaScript writes it; `\\0` stands for one that could be read.

Each text in it ends at the next quotation mark, so that searching takes time in proportion to the text."""


def find_json(text: str) -> Any:
    """The JSON value in a text, or `MISSING`. Raises `SearchCutShort`.

    Looked for in this order: the whole text; the first fenced block that is JSON, blocks marked `json` before others;
    the longest object or list in the text, of equally long ones the first.
    """
    whole = read_whole(text)
    if whole is not MISSING:
        return whole
    others = []
    for mark, block in _blocks(text):
        value = read_whole(block)
        if value is MISSING:
            continue
        if mark.startswith("json"):
            return value
        if isinstance(value, dict | list):
            others.append(value)
    return others[0] if others else _in_prose(text)


def read_whole(text: str) -> Any:
    """The value, if the whole text is JSON; else `MISSING`. Raises `SearchCutShort`."""
    text = text.strip("\ufeff \t\r\n")
    if text[:1] not in _BEGINS_ANY or not text:
        return MISSING
    try:
        value, end = _decode(text)
    except json.JSONDecodeError:
        return MISSING
    return value if end == len(text) and _sound(value, text, 0, end) else MISSING


def unread_json(text: str, *, as_a_whole: bool = False) -> str | None:
    """Say that a text has JSON in it which `find_json` does not give, if it has. Raises `SearchCutShort`.

    That is JSON beside the value that is given, JSON that was written as JSON twice, and JSON that is broken: cut off,
    with a comma too many, a comment or `NaN`, or written as in Python or JavaScript. What such a text does not say is
    not known. `as_a_whole` is for texts that are
    read by `read_whole`: JSON in the midst of other text is unread, too.
    """
    whole = read_whole(text)
    if whole is not MISSING:
        is_within = isinstance(whole, str) and (
            isinstance(find_json(whole), dict | list) or unread_json(whole) is not None
        )
        return "JSON in it that was written as JSON twice, and is read once" if is_within else None
    count = sum(
        mark.startswith("json") and not isinstance(read_whole(block), dict | list | Missing)
        for mark, block in _blocks(text)
    )
    rest, position = [], 0
    for _, begin, end in _all_in_prose(text):
        rest.append(text[position:begin])
        position = end
        count += 1
    rest.append(text[position:])
    if _FIRST_MEMBER.search("\0".join(rest)):
        return "broken JSON in it, so what it says is not known"
    if as_a_whole and count:
        return "JSON in the midst of other text, which is not looked at"
    return "several JSON values in it, of which only one is looked at" if count > 1 else None


def _decode(text: str) -> tuple[Any, int]:
    """The value that a text begins with, and its end. Raises `JSONDecodeError`, or `SearchCutShort` at a limit."""
    try:
        return _DECODER.raw_decode(text)
    except (json.JSONDecodeError, SearchCutShort):
        raise
    except RecursionError:
        raise SearchCutShort(_TOO_DEEP) from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise SearchCutShort(f"it has a number of more than {sys.get_int_max_str_digits()} digits") from None


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks, each with what it is marked as. One that isn't closed goes on to the end of the text."""
    if "```" not in text and "~~~" not in text:
        return
    fence, mark, begin = "", "", 0
    count = 0
    for line in _FENCE.finditer(text):
        marker, rest = line[1], line[2].strip()
        if not fence:
            if "`" not in rest:
                fence, mark, begin = marker, rest.lower(), line.end()
        elif marker.startswith(fence) and not rest:
            if count == MOST_BLOCKS:
                raise SearchCutShort(f"it has more than {MOST_BLOCKS} fenced blocks")
            yield mark, text[begin : line.start()]
            fence = ""
            count += 1
    if fence:
        yield mark, text[begin:]


def _in_prose(text: str) -> Any:
    """The longest object or list in a text, of equally long ones the first; or `MISSING`."""
    best: Any = MISSING
    longest = 0
    for value, begin, end in _all_in_prose(text):
        if end - begin > longest:
            best, longest = value, end - begin
    return best


def _all_in_prose(text: str) -> Iterator[tuple[Any, int, int]]:
    """The objects and lists in a text that are in none of the others, each with its beginning and end."""
    position = 0
    for _ in range(MOST_TRIES):
        begin = _BEGINS.search(text, position)
        if begin is None:
            return
        value, end = _read_at(text, begin.start())
        if value is not MISSING and _sound(value, text, begin.start(), end):
            yield value, begin.start(), end
        # What was read is not read again: a part of something that is broken as a whole is no answer, and megabytes
        # of broken JSON must not be read once for each bracket.
        position = max(end, begin.start() + 1)
    raise SearchCutShort(f"it has more than {MOST_TRIES} places where JSON might begin")


def _read_at(text: str, begin: int) -> tuple[Any, int]:
    """The value that begins there and its end, or `MISSING` and how far it could be read.

    The decoder counts the lines of all the text it was given when it fails, so it is given little, and more only if
    that was not enough.
    """
    size = _FIRST_WINDOW
    while True:
        window = text[begin : begin + size]
        try:
            value, end = _decode(window)
        except json.JSONDecodeError as error:
            cut_off = error.pos > len(window) - 16 or error.msg.startswith("Unterminated")
            if cut_off and begin + size < len(text):
                size *= 4
                continue
            return MISSING, begin + (0 if _never_began(window, error.pos) else error.pos)
        return value, begin + end


def _never_began(window: str, failed_at: int) -> bool:
    """Whether the text that failed was prose: a bracket, then a quotation."""
    first = _FIRST_TEXT.match(window)
    return first is not None and first.end() == failed_at


def _sound(value: Any, text: str, begin: int, end: int) -> bool:
    """Whether a value that Python could read is valid JSON. Raises `SearchCutShort` if it is nested too deep."""
    if text.count("{", begin, end) + text.count("[", begin, end) > DEEPEST and not _shallow(value):
        raise SearchCutShort(_TOO_DEEP)
    if text.find("NaN", begin, end) < 0 and text.find("Infinity", begin, end) < 0:
        return True
    try:
        _STRICT.raw_decode(text[begin:end])
    except ValueError:
        return False
    return True


def _shallow(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return True
    return False
