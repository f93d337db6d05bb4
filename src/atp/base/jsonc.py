"""Reads JSON with comments (Yao's files): `//`, `/* */`, and a comma after the last item."""

import json
import re
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*|/\*|[^\s"/]|\s+|.', re.DOTALL)
_NOT_A_BREAK = re.compile(r"[^\n]")


class NotJson(ValueError):
    """The text is not JSON. The message says why, and where."""


def read_jsonc(text: str) -> Any:
    """The value of a text. Raises `NotJson`, also for a key that an object has twice."""
    try:
        return json.loads(
            without_comments(text.removeprefix("\ufeff")), object_pairs_hook=no_key_twice, parse_constant=_refuse
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except NotJson:
        raise
    except ValueError as error:  # Python reads no number of thousands of digits
        raise NotJson(str(error).partition(";")[0]) from error
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error


def without_comments(text: str) -> str:
    """The text with blanks for comments and trailing commas, so that all else keeps its place."""
    kept: list[str] = []
    comma: int | None = None  # where the last comma stands, if nothing came after it
    before = ""  # what came last, but for commas
    position = 0
    while token := _TOKEN.match(text, position):
        piece, position = token[0], token.end()
        if piece == "/*" and (end := text.find("*/", position)) >= 0:
            piece, position = text[token.start() : end + 2], end + 2
        elif piece == "/*":
            return "".join(kept) + text[token.start() :]  # not closed, so it is no JSON
        if piece.startswith(("//", "/*")):
            piece = _NOT_A_BREAK.sub(" ", piece)
        elif piece == "," and comma is None and before not in ("", "{", "["):
            comma = len(kept)
        elif not piece.isspace():
            if piece in ("}", "]") and comma is not None:
                kept[comma] = " "
            comma, before = None, piece
        kept.append(piece)
    return "".join(kept)


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object from its pairs. Raises `NotJson` for a key that comes twice."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotJson(f"the key `{key}` stands twice in one object")
        found[key] = value
    return found


def _refuse(constant: str) -> Any:
    raise NotJson(f"{constant} is not JSON")
