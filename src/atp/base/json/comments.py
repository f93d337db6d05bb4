"""JSON with comments (Yao's files): `//`, `/* */`, and a comma after the last item."""

import re

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*|/\*|[^\s"/]|\s+|.', re.DOTALL)
_NOT_A_BREAK = re.compile(r"[^\n]")


class NotJson(ValueError):
    """The text is not JSON. The message says why, and where."""


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
