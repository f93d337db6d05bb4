"""Undoes one layer of escapes in a text, and keeps where each character came from.

For the search for secrets: a text may be escaped as a whole and then again, so that every character of every escape is
escaped itself, and no pattern of a secret has all ways to write that.
"""

import re
from bisect import bisect_right
from collections.abc import Callable

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|U00([0-9a-fA-F]{6})|x([0-9a-fA-F]{2})|([0-3][0-7]{2})|([\"'\\/nrt]))"
    r"|%([0-9a-fA-F]{2})|&(?:#[xX]0*([0-9a-fA-F]{1,6})|#0*([0-9]{1,7})|(amp|quot|apos|lt|gt));"
)
"""Escapes of JSON, Python, C and JavaScript, of URLs, and of HTML."""
_BASES = (16, 16, 16, 16, 8, 0, 16, 16, 10, 0)
"""The base of the number in each group; 0 for a name."""
_NAMES = {"n": "\n", "r": "\r", "t": "\t", "amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}


def undo_escapes(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with one layer of escapes undone, and a function from a place in it to the place in the text.

    Takes time in proportion to the text.
    """
    pieces, origins, places = list[str](), [0], [0]
    position = place = 0
    for found in _ESCAPE.finditer(text):
        char = _char(found)
        if char is None:
            continue
        before = text[position : found.start()]
        pieces += (before, char)
        place += len(before)
        position = found.end()
        origins += (found.start(), position)
        places += (place, place + 1)
        place += 1
    pieces.append(text[position:])

    def origin(index: int) -> int:
        segment = bisect_right(places, index) - 1
        return origins[segment] + index - places[segment]

    return "".join(pieces), origin


def _char(found: "re.Match[str]") -> str | None:
    """The character that an escape stands for; none if there is no such character."""
    group = found.lastindex or 0
    if (base := _BASES[group - 1]) == 0:
        return _NAMES.get(found[group], found[group])
    number = int(found[group], base)
    return chr(number) if number <= 0x10FFFF else None
