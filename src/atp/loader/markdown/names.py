"""Names and anchors of headings: names without Markdown, and slugs as GitHub makes them."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from urllib.parse import unquote

from markdown_it.token import Token

from atp.loader.markdown.blocks import Block, parser
from atp.loader.markdown.outline import Outline, Section

_MARKDOWN = re.compile(r"[*_`\[\]<>&\\!]")
_NO_SLUG = re.compile(r"[^\w\- ]")
_PREFIX = re.compile(r"test(?:\s+case)?(?:\s+#?\d+)?\s*:\s*(?=\S)", re.IGNORECASE)
_MOST = 1_000
"""A longer heading is not parsed for inline Markdown, to bound the cost."""


def plain(text: str) -> str:
    """Inline Markdown as people read it."""
    text = " ".join(text.split())
    if len(text) > _MOST or not _MARKDOWN.search(text):
        return text
    return " ".join("".join(_words(parser().parseInline(text))).split())


def _words(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _words(token.children)
        elif token.type in ("text", "code_inline", "image"):
            yield token.content
        elif token.type in ("softbreak", "hardbreak"):
            yield " "


def links(text: str) -> list[tuple[str, str | None]]:
    """An inline text in pieces: what its links say and where they lead, and the words around them, which lead nowhere.

    A text without links has no pieces.
    """
    found: list[tuple[str, str | None]] = []
    if "](" not in text or len(text) > _MOST:
        return found
    for inline in parser().parseInline(text):
        inside: list[Token] = []
        target: str | None = None
        for token in inline.children or ():
            if token.type in ("link_open", "link_close"):
                found.append(("".join(_words(inside)).strip(), target))
                inside = []
                target = unquote(str(token.attrs.get("href", ""))) if token.type == "link_open" else None
            else:
                inside.append(token)
        found.append(("".join(_words(inside)).strip(), None))
    return found if any(target is not None for _, target in found) else []


def case_name(heading: str) -> str:
    """The name that a heading gives its case: `Test Case 3: X` is X."""
    return _PREFIX.sub("", heading, count=1) if _PREFIX.match(heading) else heading


def slug(text: str) -> str:
    """The anchor of a heading."""
    return _NO_SLUG.sub("", text.lower()).replace(" ", "-")


def stem(path: str | None) -> str:
    """A file's name without `.test.md`."""
    name = PurePath(path).name if path else ""
    for ending in (".test.md", ".md"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name or "suite"


class Uniques:
    """Makes words unique by counting them up, as GitHub does with anchors."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, word: str) -> str:
        """The word itself, or the word with the first free number."""
        result = word
        while result in self._taken:
            number = self._next.get(word, 1)
            self._next[word] = number + 1
            result = f"{word}-{number}"
        self._taken.add(result)
        return result


class Titles:
    """The headings of a file as people read them, and the anchors that GitHub gives them."""

    def __init__(self, outline: Outline) -> None:
        self._texts: dict[int, str] = {}
        self._anchors: dict[int, str] = {}
        uniques = Uniques()
        for part in outline.flow:
            heading = None if isinstance(part, Block) else part.heading
            if heading is not None:
                text = plain(heading.text)
                self._texts[heading.line] = text
                self._anchors[heading.line] = uniques.take(slug(text))

    def of(self, section: Section) -> str:
        """The text of a section's heading; empty if it has none."""
        return self._texts[section.heading.line] if section.heading else ""

    def anchor(self, section: Section) -> str:
        """The anchor of a section's heading."""
        return self._anchors[section.heading.line] if section.heading else ""

    def path(self, section: Section) -> list[str]:
        """The headings that a section stands under, outermost first, its own last."""
        path: list[str] = []
        here: Section | None = section
        while here is not None and here.heading is not None:
            path.append(self.of(here))
            here = here.around
        return path[::-1]
