"""Text of tests and agents inside Markdown: shown as it is, it can be neither a table, a fence, a link nor HTML."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from atp.base.json.text import encode, whole_text
from atp.base.text import harmless, one_line

LONGEST = 2_000
"""How much of a text is shown in a block of its own."""
_MARKUP = re.compile(r"([\\`*_\[\]<>&|~$#:@])")
_TICKS = re.compile("`+")


def plain(text: str, longest: int = 300) -> str:
    """A text of the test files, on one line, with what could be markup escaped."""
    return _MARKUP.sub(r"\\\1", one_line(whole_text(text), longest))


def code(text: str, longest: int = 300) -> str:
    """A text as a code span, also within a table: nothing in the text is markup, a link or a mention."""
    shown = one_line(whole_text(text), longest).replace("|", "\\|")
    if not shown.strip():
        return "(empty)"
    ticks = "`" * (_longest_run(shown) + 1)
    blank = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{ticks}{blank}{shown}{blank}{ticks}"


def block(value: Any) -> list[str]:
    """A value in a fence longer than any in the value: a text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else encode(value).decode()
    shown = text[:LONGEST] + ("\n…" if len(text) > LONGEST else "")
    fence = "`" * max(3, _longest_run(shown) + 1)
    return [fence if isinstance(value, str) else f"{fence}json", *whole_text(harmless(shown)).split("\n"), fence, ""]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table with aligned columns, so that its source can be read, too."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    lines = [f"| {' | '.join(text.ljust(width) for text, width in zip(row, widths, strict=True))} |" for row in cells]
    return [lines[0], f"| {' | '.join('-' * width for width in widths)} |", *lines[1:], ""]


def _longest_run(text: str) -> int:
    return max((len(one) for one in _TICKS.findall(text)), default=0)
