"""Finding HTML comments, which are no part of what a file says.

They are looked for before Markdown is parsed, because a comment may hold what looks like Markdown. What stands in a
fence or a code span is text, so both have to be told from the rest here.
"""

import re
from collections.abc import Iterator

_OPEN_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+|>[ \t]?)*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})")
_CLOSED_FENCE = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t]*$")
_NEW_PARAGRAPH = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]|$)|>|$)")
_MARK = re.compile(r"`+|<!--")


def find_comments(text: str) -> Iterator[tuple[int, int]]:
    """Where the comments of a text begin and end; the end of one that isn't closed is -1, and it is the last."""
    position = 0
    ahead = text.find("<!--")
    while ahead >= 0 and position < len(text):
        line_end = _line_end(text, position)
        if fence := _OPEN_FENCE.match(text[position:line_end]):
            position = _after_fence(text, line_end + 1, fence["fence"])
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


def _after_fence(text: str, position: int, fence: str) -> int:
    while position < len(text):
        end = _line_end(text, position)
        line = text[position:end]
        position = end + 1
        if fence[0] in line and (close := _CLOSED_FENCE.match(line)) and close["fence"].startswith(fence):
            break
    return position


def _paragraph_end(text: str, line_end: int) -> int:
    """A code span may run over lines, but not out of its paragraph."""
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
