"""The body of a test file: its lines without HTML comments, and where everything stood before they were removed."""

from dataclasses import dataclass, field

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.markdown.comments import find_comments


@dataclass(slots=True)
class Page:
    """Lines and columns count from 0 here; only `place` speaks of the file's own, from 1."""

    lines: list[str]
    """Without comments."""
    written: list[str]
    """As they stand in the file."""
    first_line: int = 1
    """The file's number of the first line."""
    cuts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By line, the columns at which comments were taken out, and how much each took."""

    def place(self, line: int, column: int = 0) -> Place:
        """A place in the file."""
        return Place(line + self.first_line, self.written_column(line, column) + 1)

    def written_column(self, line: int, column: int) -> int:
        """The column that a character had before comments were taken out of its line."""
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
    """The page that a text makes."""
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
