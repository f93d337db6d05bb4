"""The canonical form of a test file: `atp fmt`.

Only the frame is rewritten: labels, markers, indentation, blank lines. Prompts and expectations are copied from the
file, comments included. The result is parsed and compared with the file before it is returned: if they differ, the file
stays as it is.
"""

import re

from atp.base.diagnostics import Diagnostics, has_errors
from atp.loader.markdown import ParsedFile, build_suite, parse_file
from atp.loader.markdown.blocks import Block, render, text_of
from atp.loader.markdown.frontmatter import Frontmatter, Head, cut, key_of
from atp.loader.markdown.items import chain_of, grouped
from atp.loader.markdown.outline import Field, Outline, Section
from atp.loader.markdown.page import Page, find_comments
from atp.loader.source import LoadContext, check_text
from atp.suite.suite import Suite

_COMMENT = re.compile(r"<!--.*?-->")
_ONLY_ITEMS = re.compile(r"""[;\[\]"']""")
"""Characters that a tag may have as an item, but not on the label's line."""
_DASHES = re.compile(r" {0,3}-{2,}[ \t]*")
_AT_WILL = 1_000_000


def try_format(text: str) -> str | None:
    """The text in canonical form; None if it has errors, or the canonical form would not mean the same."""
    unified = check_text(text.removeprefix("\ufeff"), Diagnostics())
    before = None if unified is None else _read(unified)
    if unified is None or before is None:
        return None
    suite, result = before
    same = _read(result) == (suite, result) and _comments(result) == _comments(unified)
    if not same:
        return None
    return result.replace("\n", "\r\n") if "\r\n" in text else result


def _read(text: str) -> tuple[Suite, str] | None:
    """The suite in a text, and the text's canonical form. None if the text has errors."""
    notes = Diagnostics()
    parsed = parse_file(text, notes)
    suite = build_suite(parsed, None, LoadContext(env={}, agent=True, assessor=True), notes)
    return None if has_errors(notes) else (suite, _written(parsed))


def _comments(text: str) -> list[str]:
    body = cut(text, Diagnostics()).body
    return [" ".join(body[start:stop].split()) for start, stop in find_comments(body)]


def _written(parsed: ParsedFile) -> str:
    chunks = _Writer(parsed.page, parsed.blocks).write(parsed.outline)
    lines = ["---", *_frontmatter(parsed.head), "---", *(line for chunk in chunks for line in ("", *chunk))]
    return "\n".join(lines) + "\n"


def _frontmatter(head: Head) -> list[str]:
    """The frontmatter's lines, known keys in lower case."""
    lines = (head.yaml or "").removesuffix("\n").split("\n")
    for number, line in enumerate(lines):
        key = key_of(line)
        if key and key.lower() in Frontmatter.model_fields:
            lines[number] = key.lower() + line[len(key) :]
    return lines if any(lines) else []


class _Writer:
    """Writes an outline as chunks of lines with an empty line between them."""

    def __init__(self, page: Page, blocks: list[Block]) -> None:
        self._page = page
        self._chunks: list[list[str]] = []
        self._next = 0
        """The first line that isn't written yet."""
        self._verbatim = set(_verbatim(blocks, page))
        self._cut_at: dict[int, int] = {}
        """The columns at which a label ends a line of text."""

    def write(self, outline: Outline) -> list[list[str]]:
        """The chunks of the outline's parts and of the comments between them."""
        owners = {id(field): section for section in outline.sections for field in section.fields}
        here = outline.sections[0]
        prose_end = -1
        for field in (part for part in outline.flow if isinstance(part, Field) and part.form == "line"):
            if self._page.lines[field.line][: field.column].strip():
                self._cut_at[field.line] = field.column
        for part in outline.flow:
            if isinstance(part, Section):
                here = part
                assert part.heading is not None
                self._catch_up(part.heading.line)
                self._chunks.append(self._heading(part.heading))
                self._next = part.heading.end
            elif isinstance(part, Field):
                self._catch_up(part.line)
                self._field(part, bold=part.heading is None or owners[id(part)] is here)
            elif part.line >= self._next:  # else it stands between the items of a field, and was written with them
                self._catch_up(part.line)
                lines = [self._line(line) for line in range(part.line, part.end)]
                if part.line == prose_end:
                    self._chunks[-1].extend(lines)
                else:
                    self._chunks.append(lines)
                self._next = prose_end = part.end
        self._catch_up(len(self._page.written))
        return self._chunks

    def _catch_up(self, line: int) -> None:
        """Write the comments that stand between the last part and the next."""
        if lines := self._comments_before(line):
            self._chunks.append(lines)

    def _comments_before(self, line: int) -> list[str]:
        lines = [self._page.written[number].rstrip(" \t") for number in range(self._next, line)]
        self._next = max(self._next, line)
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _heading(self, heading: Block) -> list[str]:
        if "\n" in heading.text or heading.line in self._page.cuts:
            return [line.rstrip() for line in self._page.written[heading.line : heading.end]]
        return [f"{'#' * heading.level} {heading.text}".rstrip()]

    def _line(self, number: int) -> str:
        line = self._page.written[number]
        if number in self._cut_at:
            line = line[: self._page.written_column(number, self._cut_at[number])].rstrip()
        return line if number in self._verbatim else line.rstrip(" \t")

    def _field(self, field: Field, bold: bool) -> None:
        if comments := self._before(field.line, field.column):
            self._chunks.append(comments)
        beside = ""
        if not field.beside and not field.heading:
            beside = self._page.written[field.line][self._behind(field.line, field.end) :].strip()
        title = field.title
        label = f"**{title}:**" if bold or field.heading is None else f"{'#' * field.heading.level} {title}"
        self._next = max(self._next, self._label_end(field))
        groups = list(grouped(field.contents))
        if field.kind in ("id", "actor", "tags", "setting") and len(groups) == 1 and bold:
            value = self._item(groups[0])
            in_line = field.kind != "tags" or groups[0][0].kind != "item" or not _ONLY_ITEMS.search(value[0])
            if len(value) == 1 and in_line:
                self._chunks.append([" ".join(part for part in (label, value[0], beside) if part)])
                return
            beside = ""
        self._chunks.append([f"{label} {beside}".rstrip()])
        kinds = {block.kind for block in field.contents}
        if (field.kind in ("intent", "setting") and "item" not in kinds) or (
            field.kind in ("before", "tags") and kinds <= {"fence", "code"}
        ):
            for group in groups:
                self._chunks.append(self._item(group))
        elif groups:
            self._chunks.append(self._items(groups))

    def _label_end(self, field: Field) -> int:
        """The line below a label, and below the line of dashes that may be drawn under it."""
        if field.heading is not None:
            return field.heading.end
        end = field.line + 1
        drawn = field.form == "line" and not field.beside and end < len(self._page.lines)
        return end + 1 if drawn and _DASHES.fullmatch(self._page.lines[end]) else end

    def _before(self, line: int, column: int) -> list[str]:
        """The comments on a line before a label or a marker."""
        return _COMMENT.findall(self._page.written[line][: self._page.written_column(line, column)])

    def _behind(self, line: int, column: int) -> int:
        """The column in the file's line, comments included, of the text behind a column of the page."""
        return self._page.written_column(line, column - 1) + 1 if column else 0

    def _items(self, groups: list[list[Block]]) -> list[str]:
        """A list, with empty lines between its items if there are some in them."""
        written: list[list[str]] = []
        apart: set[int] = set()
        for group in groups:
            start = self._next
            if between := self._comments_before(group[0].line):
                if any(self._page.lines[start : group[0].line]):  # more than comments: it must not run into an item
                    apart.update((len(written), len(written) + 1))
                written.append(between)
            if group[0].kind == "item" and (before := self._before(group[0].line, group[0].column)):
                written.append(before)
            lines = self._item(group)
            written.append([f"- {lines[0]}" if lines[0] else "-", *(f"  {line}" if line else "" for line in lines[1:])])
        loose = any("" in lines for number, lines in enumerate(written) if number not in apart)
        joined: list[str] = []
        for number, lines in enumerate(written):
            if joined and (loose or number in apart):
                joined.append("")
            joined.extend(lines)
        return joined

    def _item(self, group: list[Block]) -> list[str]:
        """The lines of an item, without its marker."""
        block = group[0]
        end = group[-1].end
        if block.kind == "item":
            chain = chain_of(block)
            if chain is not None and chain.contents and not chain.beside:
                return self._chain(block, chain.contents)
            if len(block.children) == 1 and block.children[0].kind == "fence" and self._is_bare(block):
                block = block.children[0]
        self._next = max(self._next, end)
        if len(group) == 1 and block.kind in ("fence", "code"):
            return _fence(block)
        if len(group) == 1 and block.kind == "quote":
            return render(block.children).split("\n")
        if block.kind == "item":
            return self._cut_out(block.line, self._behind(block.line, block.offset), end, block.indent)
        column = self._page.lines[block.line].rfind(block.text.partition("\n")[0].strip())
        # The lines of a paragraph may be indented at will; those of a fence behind it may not.
        indent = _AT_WILL if len(group) == 1 else 0
        return self._cut_out(block.line, self._behind(block.line, max(0, column)), end, indent)

    def _is_bare(self, item: Block) -> bool:
        """Whether no comment stands around the only block of an item."""
        block = item.children[0]
        return item.line not in self._page.cuts and not any(self._page.written[item.line + 1 : block.line])

    def _chain(self, item: Block, contents: list[Block]) -> list[str]:
        first = item.children[0]
        comments = _COMMENT.findall(self._page.written[first.line])
        self._next = max(self._next, first.end)
        return [" ".join(["**Chain:**", *comments]), *self._items(list(grouped(contents)))]

    def _cut_out(self, line: int, column: int, end: int, indent: int) -> list[str]:
        """Lines of the file from a column on, without the indentation that the rest has."""
        first = self._line(line)[column:].lstrip()
        rest = [_dedent(self._line(number), indent) for number in range(line + 1, end)]
        lines = [first, *rest] if first or not rest else [rest[0].lstrip(), *rest[1:]]
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
        return [*lines[:-1], lines[-1].rstrip()]


def _verbatim(blocks: list[Block], page: Page) -> list[int]:
    """The lines whose trailing blanks matter: hard line breaks, and the content of fences."""
    lines: list[int] = []
    for block in blocks:
        if block.kind in ("fence", "code", "html"):
            lines.extend(range(block.line + (block.kind == "fence"), block.end - (block.kind == "fence")))
        elif block.kind == "paragraph":
            lines.extend(n for n in range(block.line, block.end - 1) if page.lines[n].endswith("  "))
        lines.extend(_verbatim(block.children, page))
    return lines


def _dedent(line: str, columns: int) -> str:
    """A line without up to `columns` columns of leading blanks."""
    done = at = 0
    while at < len(line) and done < columns and line[at] in " \t":
        done += 4 - done % 4 if line[at] == "\t" else 1
        at += 1
    return " " * max(0, done - columns) + line[at:]


def _fence(block: Block) -> list[str]:
    """A fence of backticks, just long enough for its content."""
    info = block.info.strip()
    inside = text_of([block]).split("\n") if block.text else []
    runs = [len(line) - len(line.lstrip("`")) for line in (one.lstrip() for one in inside)]
    mark = "~" * len(block.markup) if "`" in info else "`" * max([3, *(run + 1 for run in runs if run > 2)])
    return [f"{mark}{info}", *inside, mark]
