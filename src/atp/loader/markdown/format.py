"""The canonical form of a test file: `atp fmt`.

Only the frame is rewritten: labels, markers, indentation, blank lines. What prompts and expectations say is copied
from the file, comments included. Whatever the rules below may get wrong, the result is parsed and compared before it
is given out, so the worst that can happen is that a file stays as it is.
"""

import re

from atp.base.diagnostics import Diagnostics, has_errors
from atp.loader.markdown import load_markdown
from atp.loader.markdown.blocks import read_blocks
from atp.loader.markdown.canonical import Writer
from atp.loader.markdown.comments import find_comments
from atp.loader.markdown.frontmatter import Frontmatter, Head, cut
from atp.loader.markdown.page import read_page
from atp.loader.markdown.sections import read_outline
from atp.loader.source import LoadContext, Source, check_text
from atp.suite.suite import Suite

_KEY = re.compile(r"[A-Za-z_]+(?=\s*:(?:\s|$))")


def format_markdown(text: str) -> str:
    """The text in canonical form; as it is, if it has errors or can't be brought into it."""
    formatted = try_format(text)
    return text if formatted is None else formatted


def try_format(text: str) -> str | None:
    """The text in canonical form; None if it has errors, or would not mean the same any more."""
    unified = check_text(text.removeprefix("\ufeff"), Diagnostics())
    before = None if unified is None else _parsed(unified)
    if unified is None or before is None:
        return None
    result = _written(unified)
    same = _parsed(result) == before and _comments(result) == _comments(unified) and _written(result) == result
    if not same:
        return None
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def _parsed(text: str) -> Suite | None:
    notes = Diagnostics()
    suite = load_markdown(Source(text), LoadContext(env={}, agent=True, assessor=True), notes)
    return None if has_errors(notes) else suite


def _comments(text: str) -> list[str]:
    body = cut(text, Diagnostics()).body
    return [" ".join(body[start:stop].split()) for start, stop in find_comments(body)]


def _written(text: str) -> str:
    notes = Diagnostics()
    head = cut(text, notes)
    page = read_page(head.body, head.body_line, notes)
    blocks = read_blocks(page, notes)
    chunks = Writer(page, blocks).write(read_outline(blocks, page, notes))
    lines = ["---", *_frontmatter(head), "---", *(line for chunk in chunks for line in ("", *chunk))]
    return "\n".join(lines) + "\n"


def _frontmatter(head: Head) -> list[str]:
    """The keys we know in lower case, all else as it is."""
    lines = (head.yaml or "").removesuffix("\n").split("\n")
    for number, line in enumerate(lines):
        key = _KEY.match(line)
        if key and key[0].lower() in Frontmatter.model_fields:
            lines[number] = key[0].lower() + line[key.end() :]
    return lines if any(lines) else []
