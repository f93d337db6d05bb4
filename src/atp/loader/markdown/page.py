"""The body of a test file: its lines without HTML comments, and where everything stood before they were removed.

Comments are found before Markdown is parsed, because a comment may hold what looks like Markdown. Text in a fence or a
code span is no comment, so both are recognised here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from atp.base.diagnostics import Diagnostics, Place

_OPEN_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|>[ \t]?)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})")
_CLOSED_FENCE = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*$")
_NEW_PARAGRAPH = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]|$)|>|$)")
_MARK = re.compile(r"`+|<!--")


@dataclass(slots=True)
class Page:
    """The lines of a body. Lines and columns count from 0 here, and from 1 in a `Place`."""

    lines: list[str]
    """The lines without comments."""
    written: list[str]
    """The lines as they stand in the file."""
    first_line: int = 1
    """The file's number of the first line."""
    cuts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By line, the columns at which comments were removed, and the length of each."""

    def place(self, line: int, column: int = 0) -> Place:
        """The place in the file of a line and column."""
        return Place(line + self.first_line, self.written_column(line, column) + 1)

    def written_column(self, line: int, column: int) -> int:
        """The column of a character before comments were removed from its line."""
        return column + sum(taken for at, taken in self.cuts.get(line, ()) if at <= column)

    def place_of(self, line: int, text: str) -> Place:
        """The place of a text that ends its line, but for blanks."""
        return self.place(line, max(0, self.lines[line].rfind(text)))

    def start_of(self, line: int) -> Place:
        """The place of the first character of a line that isn't blank."""
        text = self.lines[line]
        return self.place(line, len(text) - len(text.lstrip()))


def width(line: str) -> int:
    """How many columns a line is indented by; a tab reaches to the next multiple of four."""
    columns = 0
    for character in line:
        if character == " ":
            columns += 1
        elif character == "\t":
            columns += 4 - columns % 4
        else:
            break
    return columns


def read_page(text: str, first_line: int, notes: Diagnostics) -> Page:
    """The page of a body that begins at `first_line` of its file."""
    written = text.split("\n")
    if "<!--" not in text:
        return Page(written, written, first_line)
    page = Page([], written, first_line)
    _remove_comments(text, page, notes)
    return page


def _remove_comments(text: str, page: Page, notes: Diagnostics) -> None:
    """Take the comments out and keep the line breaks in them, so that lines keep their numbers.

    A comment leaves no blanks behind either: what follows one at the start of a line must not look indented.
    """
    line = ""
    done = 0
    for start, stop in find_comments(text):
        first, *more = text[done:start].split("\n")
        line += first
        for one in more:
            page.lines.append(line)
            line = one
        if stop < 0:
            at = page.place(len(page.lines), len(line))
            notes.error("unclosed-comment", "this comment is not closed", at, "close it with `-->`")
            page.lines.append(line.rstrip(" \t"))
            page.lines.extend([""] * (len(page.written) - len(page.lines)))
            return
        done = stop
        taken_from = start
        breaks = text.count("\n", start, stop)
        if breaks:
            page.lines.append(line.rstrip(" \t"))
            page.lines.extend([""] * (breaks - 1))
            line = ""
            taken_from = text.rfind("\n", 0, stop) + 1
        if not line or line[-1] in " \t":
            while done < len(text) and text[done] in " \t":
                done += 1
        if done == len(text) or text[done] == "\n":
            line = line.rstrip(" \t")
        page.cuts.setdefault(len(page.lines), []).append((len(line), done - taken_from))
    page.lines.append(line + text[done:])
    page.lines[-1:] = page.lines[-1].split("\n")


def find_comments(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each comment of a text. The end of an unclosed comment, which is the last, is -1."""
    position = 0
    ahead = text.find("<!--")
    while ahead >= 0 and position < len(text):
        line_end = _line_end(text, position)
        if fence := _OPEN_FENCE.match(text[position:line_end]):
            position = _after_fence(text, line_end + 1, fence["fence"], _column(fence))
        elif text.find("<!--", position, line_end) < 0 and text.find("`", position, line_end) < 0:
            position = line_end + 1
        else:
            end = _paragraph_end(text, line_end)
            for start, stop in _in_paragraph(text, position, end):
                yield start, stop
                if stop < 0:
                    return
                end = max(end, stop)
            # After a comment that ran on beyond its paragraph, the rest of that line is still to be read.
            position = end
        if ahead < position:
            ahead = text.find("<!--", position)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _column(fence: re.Match[str]) -> int:
    """The column of a fence in its line; a tab reaches to the next multiple of four."""
    return len(fence.string[: fence.start("fence")].expandtabs(4))


def _after_fence(text: str, position: int, fence: str, column: int) -> int:
    """The position behind the line that closes a fence which was opened at `column`."""
    while position < len(text):
        end = _line_end(text, position)
        line = text[position:end]
        position = end + 1
        if fence[0] in line and (close := _CLOSED_FENCE.match(line)) and close["fence"].startswith(fence):
            if _column(close) > column + 3:  # indented so far, the line is a part of the text in the fence
                continue
            break
    return position


def _paragraph_end(text: str, line_end: int) -> int:
    """The end of the paragraph: a code span may run over lines, but not beyond its paragraph."""
    while line_end < len(text):
        start = line_end + 1
        line_end = _line_end(text, start)
        line = text[start:line_end]
        if _NEW_PARAGRAPH.match(line) or _OPEN_FENCE.match(line):
            return start
    return line_end


def _in_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    marks = list(_MARK.finditer(text, start, end))
    last_run = {len(mark[0]): mark.start() for mark in marks if mark[0] != "<!--"}
    done = start
    span = 0
    for mark in marks:
        if span:  # in a code span: only a run of the same length ends it
            if mark[0] == "`" * span:
                span = 0
                done = mark.end()
            continue
        if mark.start() < done or _escaped(text, mark.start()):
            continue
        if mark[0] != "<!--":
            if last_run[len(mark[0])] > mark.start():
                span = len(mark[0])
            continue
        # `<!-->` and `<!--->` are whole comments.
        close = text.find("-->", mark.start() + 2)
        yield mark.start(), -1 if close < 0 else close + 3
        done = close + 3
        if close < 0 or done > end:
            return


def _escaped(text: str, position: int) -> bool:
    before = position
    while before and text[before - 1] == "\\":
        before -= 1
    return (position - before) % 2 == 1
