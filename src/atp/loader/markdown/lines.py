"""What became of each line of a test file: which field of which case it was read into, or why not."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from atp.base.diagnostics import Diagnostic, Diagnostics
from atp.loader.markdown import MOST_LINES, ParsedFile, parse_file
from atp.loader.markdown.blocks import Block
from atp.loader.markdown.frontmatter import Head, key_of
from atp.loader.markdown.items import chain_entries, entry_text, grouped
from atp.loader.markdown.outline import Field, Section
from atp.loader.markdown.unread import is_remark_block, says_something, unread_runs

LineKind = Literal[
    "frontmatter", "heading", "label", "value", "intent", "prose", "remark", "unread", "markup", "comment", "blank"
]


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one line."""

    number: int
    """From 1."""
    text: str
    """As it stands in the file."""
    kind: LineKind
    """`value` is a part of a field, `prose` is text for people, `unread` is text of a case that is in no field."""
    role: str
    """The part it plays, for people: `prompt 2 of chain 1`."""
    case: int | None = None
    """The index of the case that it belongs to."""
    codes: tuple[str, ...] = ()
    """The codes of the diagnostics on this line."""
    reported: int | None = None
    """The line of the diagnostic that says that this line is not read."""


def classify_lines(text: str, diagnostics: list[Diagnostic]) -> list[Line]:
    """What became of each line of a file that was loaded with these diagnostics."""
    if text.count("\n") > MOST_LINES:
        return []
    parsed = parse_file(text, Diagnostics())
    return _LineClassifier(text, parsed, diagnostics).classify()


class _LineClassifier:
    def __init__(self, text: str, parsed: ParsedFile, diagnostics: list[Diagnostic]) -> None:
        self._texts = text.removeprefix("\ufeff").split("\n")
        self._parsed = parsed
        self._lines: dict[int, Line] = {}
        """The lines that are known, by their numbers from 1."""
        self._codes: dict[int, list[str]] = {}
        for one in diagnostics:
            self._codes.setdefault(one.line, []).append(one.code)

    def classify(self) -> list[Line]:
        self._set_frontmatter(self._parsed.head)
        index = 0
        for section in self._parsed.outline.sections:
            self._set_section(section, index if section.is_case else None)
            index += section.is_case
        for part in self._parsed.outline.flow:
            if isinstance(part, Block):  # link definitions, and tags around a list
                self._set(part.line, part.end, "markup", "")
        return [self._line(number) for number in range(1, len(self._texts) + 1)]

    def _line(self, number: int) -> Line:
        text = self._texts[number - 1]
        body = number - self._parsed.page.first_line
        line = self._lines.get(number)
        if line is None and not text.strip():
            line = Line(number, text, "blank", "")
        elif line is None and body >= 0 and not self._parsed.page.lines[body].strip():
            line = Line(number, text, "comment", "comment")
        elif line is None and not any(map(str.isalnum, text)):
            line = Line(number, text, "markup", "")
        elif line is None:  # below the place where reading stopped
            reported = max((one for one in self._codes if one <= number), default=None)
            line = Line(number, text, "unread", "not read", reported=reported)
        return replace(line, codes=tuple(self._codes.get(number, ())))

    def _set(
        self, start: int, end: int, kind: LineKind, role: str, case: int | None = None, reported: int | None = None
    ) -> None:
        """Set lines of the body that aren't set yet. Blank lines and comments stay what they are."""
        page = self._parsed.page
        for at in range(start, min(end, len(page.lines))):
            number = at + page.first_line
            if number not in self._lines and page.lines[at].strip():
                self._lines[number] = Line(number, self._texts[number - 1], kind, role, case, reported=reported)

    def _set_frontmatter(self, head: Head) -> None:
        if head.yaml is None:
            return
        role = "frontmatter"
        for number in range(1, head.body_line):
            text = self._texts[number - 1]
            inside = head.yaml_line <= number < head.yaml_line + head.yaml.count("\n")
            role = (key_of(text) or role) if inside else "frontmatter"
            if text.strip():
                self._lines[number] = Line(number, text, "frontmatter", role)

    def _set_section(self, section: Section, case: int | None) -> None:
        if section.heading is not None:
            role = "heading" if case is None else f"case {case}"
            self._set(section.heading.line, section.heading.end, "heading", role, case)
        self._set_fields(section, case)
        if case is None:
            self._set_prose(section)
            return
        for run in unread_runs(section):
            self._set_unread(run, case)
        for part in section.parts:
            if isinstance(part, Block):
                self._set(part.line, part.end, "intent", "intent", case)

    def _set_prose(self, section: Section) -> None:
        """Prose for people. Below a label that was not read, its diagnostic stands for what follows."""
        heading = section.heading.line + self._parsed.page.first_line if section.heading else 0
        reported = heading if "label-not-read" in self._codes.get(heading, ()) else None
        for part in section.parts:
            if isinstance(part, Field):
                reported = None
                continue
            for at in range(part.line, part.end):
                number = at + self._parsed.page.first_line
                reported = number if number in self._codes else reported
                self._set(at, at + 1, "unread" if reported else "prose", "prose", None, reported)

    def _set_unread(self, run: list[Block], case: int) -> None:
        first = self._parsed.page.first_line
        reported: int | None = None
        for block in run:
            reported = max(
                (n for n in range(block.line + first, block.end + first) if n in self._codes), default=reported
            )
            if not says_something(block):
                self._set(block.line, block.end, "markup", "", case)
            elif is_remark_block(block) and block.line + first not in self._codes:
                self._set(block.line, block.end, "remark", "remark", case)
            else:
                self._set(block.line, block.end, "unread", "not read", case, reported)

    def _set_fields(self, section: Section, case: int | None) -> None:
        counts: dict[str, int] = {}
        roles = [(field, dict(_roles(field, counts))) for field in section.fields]
        for field, parts in roles:
            beside = parts.get(field.line, field.kind)
            name = field.title if beside in (field.kind, field.key) else f"{field.title}: {beside}"
            end = field.heading.end if field.heading else field.line + 1
            self._set(field.line, end, "label", name if case is not None else f"{field.title}, in no case", case)
        for _, parts in roles:
            for at, role in parts.items():
                self._set(at, at + 1, "value", role, case)


def _roles(field: Field, counts: dict[str, int]) -> Iterator[tuple[int, str]]:
    """The lines of a field's contents, counted from 0, and what each is. `counts` goes on from field to field."""
    if field.kind not in ("prompts", "chain"):
        for group in grouped(field.contents):
            role = field.key or {"expectations": "expectation"}.get(field.kind, field.kind)
            if field.kind in ("expectations", "before") and entry_text(group):
                counts[role] = counts.get(role, 0) + 1
                role = f"{role} {counts[role]}"
            yield from ((line, role) for line in _lines(group))
        return
    for chain in chain_entries(field):
        said = [group for group in chain.prompts if entry_text(group)]
        counts["chain"] = counts.get("chain", 0) + bool(said)
        number = counts["chain"]
        if chain.item is not None:
            yield from ((line, f"chain {number}") for line in range(chain.item.line, chain.item.end))
        for group in chain.prompts:
            yield from ((line, "empty prompt") for line in _lines(group))
        for prompt, group in enumerate(said, 1):
            yield from ((line, f"prompt {prompt} of chain {number}") for line in _lines(group))


def _lines(blocks: list[Block]) -> Iterator[int]:
    """The lines of blocks. Between them may stand link definitions and comments."""
    return (line for block in blocks for line in range(block.line, block.end))
