"""An expectation as a sentence of plain words and pieces: quoted text, code, names, JSON, regular expressions.

The forms in `forms.py` are written for the plain words, in which a piece is a mark such as `<code1>`. A text with
anything else in it (a colon, a bracket, a letter that isn't ASCII) has no exact form.
"""

import json
import re
from typing import Any, Literal, NamedTuple

from atp.base.json.found import MISSING, SearchCutShort, read_whole

LONGEST = 1_000
"""Characters of the longest text that is compiled. A sentence with an exact meaning is short."""

Kind = Literal["quoted", "code", "bold", "word", "json", "regex"]


class Piece(NamedTuple):
    """A part of a sentence that is data, not grammar."""

    kind: Kind
    """How the piece is written. A `word` looks like no English word: `warm_ocean`, `out/x.json`."""
    text: str
    """The text without its quotation marks."""


class Sentence(NamedTuple):
    """An expectation as words and pieces."""

    words: str
    """The words in lower case, one blank between them, `<kind number>` for each piece, without the full stop."""
    pieces: tuple[Piece, ...]
    """The pieces that the marks stand for, by number."""
    capitals: frozenset[str]
    """Words that have a capital letter somewhere in the text. In lower case they are not the name of a tool."""
    tools: frozenset[str] = frozenset()
    """The tools that are known to exist. A word that is one of them names it."""


_BEGIN_OF_PATTERN = frozenset({"match", "matches", "matched", "regex", "expression", "pattern"})
_TOKEN = re.compile(
    r"""
      `(?P<code>[^`\n]+)`(?!`)
    | "(?P<quoted>[^"\\\n]+)"
    | “(?P<curly>[^“”\n]+)”
    | '(?P<single>[^'\n]+)'
    | \*\*(?P<bold>[^*\s]+)\*\*
    | (?P<comma>,)
    | (?P<number>\d{1,4})(?![\w./-])
    | (?P<plain>[A-Za-z]+(?:['’][A-Za-z]+)?)(?![\w./'’-])
    | (?P<word>[A-Za-z0-9_./\\-]+(?:\(\))?)
    """,
    re.VERBOSE,
)
_PATTERN = re.compile(r"/(?P<pattern>(?:[^/\\\n]|\\[^\n])+)/(?P<flags>[a-z]*)")
_ENDS = re.compile(r"(?=[\s,]|$)")
_HUMP = re.compile(r"[a-z]{2,}(?:[A-Z][a-z0-9]+)+")
"""`getWeather`; neither `iPhone` nor `macOS` nor `GitHub`."""
_SHORT = {"n't": " not", "n’t": " not"}
_ODDLY_SHORT = {"won't": "will not", "won’t": "will not", "can't": "can not", "can’t": "can not"}


def read_sentence(text: str, tools: frozenset[str] = frozenset()) -> Sentence | None:
    """The sentence in a text; None if it has anything in it that no exact form has."""
    if len(text) > LONGEST:
        return None
    text = text.strip()
    if text.endswith((".", "!")):
        text = text[:-1].rstrip()
    words: list[str] = []
    pieces: list[Piece] = []
    capitals: set[str] = set()
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        found = _read_data(text, place, words[-1] if words else "") or _read_token(text, place)
        if found is None:
            return None
        token, place = found
        if isinstance(token, Piece):
            words.append(f"<{token.kind}{len(pieces)}>")
            pieces.append(token)
        else:
            words.append(_long_form(token.lower()))
            capitals.update({token.lower()} if token != token.lower() else ())
    return Sentence(" ".join(words), tuple(pieces), frozenset(capitals), tools)


def _read_data(text: str, place: int, before: str) -> tuple[Piece, int] | None:
    """JSON, or a regular expression between slashes, if one begins at this place."""
    if text[place] == "{":
        try:
            _, end = json.JSONDecoder().raw_decode(text, place)
        except (ValueError, RecursionError):
            return None
        return (Piece("json", text[place:end]), end) if _ENDS.match(text, end) else None
    if text[place] == "/" and before in _BEGIN_OF_PATTERN and (found := _PATTERN.match(text, place)):
        flags = found["flags"]
        if not _ENDS.match(text, found.end()) or set(flags) - set("ims"):
            return None
        return Piece(
            "regex", f"(?{''.join(sorted(flags))}){found['pattern']}" if flags else found["pattern"]
        ), found.end()
    return None


def _read_token(text: str, place: int) -> tuple[Piece | str, int] | None:
    found = _TOKEN.match(text, place)
    if found is None or (found["comma"] is None and not _ENDS.match(text, found.end())):
        return None
    kind, content = str(found.lastgroup), found[str(found.lastgroup)]
    if kind in ("comma", "number") or (kind == "plain" and not _HUMP.fullmatch(content)):
        return content, found.end()
    return Piece(_KINDS[kind], content), found.end()


_KINDS: dict[str, Kind] = {
    "code": "code",
    "quoted": "quoted",
    "curly": "quoted",
    "single": "quoted",
    "bold": "bold",
    "plain": "word",
    "word": "word",
}


def _long_form(word: str) -> str:
    """`isn't` is `is not`."""
    if word in _ODDLY_SHORT:
        return _ODDLY_SHORT[word]
    return word[:-3] + _SHORT[word[-3:]] if word[-3:] in _SHORT else word.replace("’", "'")


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a piece, if it has at least one key."""
    try:
        value = read_whole(text)
    except SearchCutShort:
        return None
    return value if value is not MISSING and isinstance(value, dict) and value else None
