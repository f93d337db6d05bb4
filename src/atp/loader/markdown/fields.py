"""Sorts the blocks below a heading into fields and prose, and splits paragraphs and items at labels.

`- warm` with `**Expectations:**` on the next line is one item to CommonMark, and an item and a label to its author.
"""

import re
from dataclasses import dataclass, replace

from atp.base.diagnostics import Diagnostics
from atp.loader.markdown.blocks import Block, unboxed
from atp.loader.markdown.label_words import label_word
from atp.loader.markdown.labels import (
    FieldKind,
    Label,
    advice,
    is_like_field,
    is_set_elsewhere,
    label_at_end,
    label_at_start,
    label_kinds,
    unknown_label,
    unknown_label_with_value,
)
from atp.loader.markdown.outline import CASE_MAKERS, Field, Form, Outline, Section, Unread
from atp.loader.markdown.page import Page, width

_WORDY: set[FieldKind] = {"prompts", "chain", "expectations", "intent"}
"""Fields that may have several paragraphs, or a fence after a paragraph."""
_LISTED: set[FieldKind] = {"before", "tags"}
"""Fields whose entries may be the lines of a fence."""
_SAYS_NOTHING = re.compile(
    r"\s*(?:\[(?!\^)[^\]\n]+\]:\s*(?:<[^<>\n]*>|(?=\S*(?:[/#:]|\.\w))\S+)"
    r"(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*)?$"
)
"""Link definitions, and blanks that Markdown doesn't take for blanks. `[user]: hello` and `[^1]: note` are text."""
_LINKS = re.compile(r"\s*\[[^\]\n]+\]\(#")
"""A link to a section."""
_ENDS_SENTENCE = tuple(".!?:;…)]\"'”’»`*_")
PLACEHOLDER = re.compile(r"<insert\b", re.IGNORECASE)


@dataclass(slots=True)
class _LabelLine:
    """A label in a paragraph, and its value there."""

    label: Label
    line: int
    column: int
    value: Block | None
    """The rest of the paragraph, up to the next label."""
    beside: bool
    """Whether the value begins on the label's own line."""


class FieldReader:
    """Reads blocks into a section. A field stays open until its content ends or another label comes."""

    def __init__(self, section: Section, outline: Outline, page: Page, notes: Diagnostics) -> None:
        self._section = section
        self._outline = outline
        self._page = page
        self._notes = notes
        self._open: Field | None = None
        self._suspect: Unread | None = None
        """The diagnostic if the next block is a list or fence that belongs to no field."""

    def read(self, blocks: list[Block]) -> None:
        """Read blocks in order."""
        for number, block in enumerate(blocks, 1):
            match block.kind:
                case "paragraph":
                    self._read_paragraph(block, number < len(blocks) and blocks[number].kind == "list")
                case "list":
                    self._read_list(block)
                case _:
                    self._read_other(block)

    def open_heading(self, heading: Block, label: Label) -> None:
        """Open the field that a heading is the label of."""
        column = max(0, self._page.lines[heading.line].find(heading.text.partition("\n")[0]))
        opened = self._open_field(label, "heading", heading.line, column)
        opened.heading = heading
        if not label.alone:
            opened.beside = True
            value = " ".join(heading.text.split())[label.end :]
            opened.add(Block("paragraph", heading.line, heading.line + 1, value))

    def _open_field(self, label: Label, form: Form, line: int, column: int) -> Field:
        if label.meant:
            right = label.meant.title()
            at = self._page.place(line, column)
            self._notes.warn("misspelled-label", f"`{label.word}` is read as `{right}`", at, f"write `{right}`")
        self._open = opened = Field(label.kind, form, line, column, column + label.end - label.start, key=label.key)
        self._suspect = None
        self._add(opened)
        return opened

    def _add(self, part: Field | Block) -> None:
        self._section.add(part)
        self._outline.flow.append(part)

    def _read_paragraph(self, block: Block, before_list: bool) -> None:
        for piece in _split_paragraph(block, self._page, before_list):
            if isinstance(piece, _LabelLine):
                opened = self._open_field(piece.label, "line", piece.line, piece.column)
                opened.beside = piece.beside
                if piece.value is not None:
                    self._note_unknown_labels(piece.value, first=1 if piece.beside else 0)
                    opened.add(piece.value)
            elif all(_SAYS_NOTHING.match(line) and not label_word(line) for line in piece.text.split("\n")):
                self._outline.flow.append(piece)
            else:
                self._read_text(piece)

    def _note_unknown_labels(self, text: Block, first: int) -> None:
        """Note lines that look like a label with its value, but are read as text."""
        lines = text.text.split("\n")
        for number, line in enumerate(lines[first:], first):
            below = lines[number + 1] if number + 1 < len(lines) else ""
            links = _LINKS.match(below) is not None
            word = unknown_label_with_value(line) or (unknown_label(line) if links else None)
            if word is not None:
                at = self._page.place_of(text.line + number, line.strip())
                message = f"`{word}` is no label: it is read as text"
                names_field = is_set_elsewhere(word) or bool(label_kinds(word))
                is_likely = self._section.last is not None or names_field or links or "](#" in line
                self._section.unread.append(Unread("unknown-label", message, at, advice(word), in_others=is_likely))

    def _read_text(self, block: Block) -> None:
        self._note_unknown_labels(block, first=0)
        if self._open is not None and _takes_text(self._open):
            self._open.add(block)
            return
        self._suspect_list_below(block)
        self._open = None
        self._add(block)

    def _suspect_list_below(self, block: Block) -> None:
        """Prepare a diagnostic for a list below prose that looks like its label, because the list isn't read."""
        line = block.text.rpartition("\n")[2].strip()
        at = self._page.place_of(block.end - 1, line)
        self._suspect = None
        if (word := unknown_label(line)) is not None:
            message = f"`{word}` is no label: what stands below it is not read"
            self._suspect = Unread("unknown-label", message, at, advice(word), in_others=is_like_field(line))
        elif self._section.last is None and is_like_field(line) and len(line.split()) <= 3:
            message = f"`{line.rstrip(':')}` is no label: what stands below it is not read"
            self._suspect = Unread("unknown-label", message, at, advice(line), in_cases=False)

    def _read_other(self, block: Block) -> None:
        """Read a fence, code, a quote, HTML or a rule."""
        opened = self._open
        if opened is not None:
            if block.kind in ("fence", "code"):
                takes = opened.kind in _WORDY or not opened.contents or opened.kind in _LISTED
            elif block.kind == "html":
                # Tags around a list are no prompt, but a template's placeholder stands for one.
                if not opened.contents and not PLACEHOLDER.search(block.text):
                    self._section.add(block)
                    self._outline.flow.append(block)
                    return
                takes = not opened.contents
            else:
                takes = block.kind == "quote" and _takes_text(opened)
            if takes:
                opened.add(block)
                return
        self._open = None
        self._note_suspect(block)
        self._add(block)

    def _note_suspect(self, block: Block) -> None:
        if self._suspect is not None and block.kind in ("list", "fence"):
            self._section.unread.append(self._suspect)
        self._suspect = None

    def _read_list(self, block: Block) -> None:
        """Read a list: the items of the open field, labels with their values, or prose."""
        labels: set[int] = set()
        cuts: list[tuple[Block, list[Block]]] = [_cut_item(one, self._page) or (one, []) for one in block.children]
        if self._open is None or (self._open.contents and self._open.kind not in CASE_MAKERS):
            labels = _label_items([item for item, _ in cuts])
        if labels:
            self._open = None  # below `**Tags:** slow` a list of labels is no list of tags
        prose: list[Block] = []
        for number, (item, rest) in enumerate(cuts):
            if self._open is not None:
                self._open.add(item)
            elif number in labels:
                self._add_prose(block, prose)
                prose = []
                self._read_label_item(item)
            else:
                prose.append(item)
                self._note_beside_labels(item, labels)
            if rest:
                self._add_prose(block, prose)
                prose = []
                self.read(rest)
        self._add_prose(block, prose)

    def _note_beside_labels(self, item: Block, labels: set[int]) -> None:
        if labels:
            at = self._page.place(item.line, item.column)
            message = "this item stands in a list of labels, but is none: it is not read"
            self._section.unread.append(Unread("unread-item", message, at, "nest it below its label"))

    def _add_prose(self, block: Block, items: list[Block]) -> None:
        if items:
            part = replace(block, line=items[0].line, end=items[-1].end, children=items)
            self._note_suspect(part)
            self._add(part)

    def _read_label_item(self, item: Block) -> None:
        """Read an item that is a label, with the field's items nested below it."""
        first, *rest = unboxed(item)
        label = _item_label(item)
        assert label is not None
        line, *more = first.text.split("\n")
        column = max(0, self._page.lines[first.line].rfind(line.strip()))
        opened = self._open_field(label, "item", first.line, column)
        opened.beside = not label.alone
        if value := "\n".join([*([] if label.alone else [line[label.end :]]), *more]):
            at = first.line + (1 if label.alone else 0)
            opened.add(Block("paragraph", at, first.end, value))
        for child in rest:
            for content in child.children if child.kind == "list" else [child]:
                opened.add(content)
        self._open = None


def _takes_text(field: Field) -> bool:
    """Whether prose is still a field's content; after a list or a fence it ends the field."""
    if not field.contents:
        return True
    begins_with_text = field.contents[0].kind in ("paragraph", "quote")
    return begins_with_text and field.kind in _WORDY and not field.has_items


def _item_label(item: Block) -> Label | None:
    children = unboxed(item)
    if not children or children[0].kind != "paragraph":
        return None
    return label_at_start(children[0].text.partition("\n")[0])


def _label_items(items: list[Block]) -> set[int]:
    """Which items of a list are labels.

    If all of them are, or one with nothing beside it, or two in bold: then those that are. Else it is a list of prose.
    """
    labels = {number: label for number, item in enumerate(items) if (label := _item_label(item))}
    if len(labels) == len(items) and (len(items) > 1 or labels[0].marked):
        return set(labels)
    sure = [n for n, label in labels.items() if label.alone and (label.marked or len(items[n].children) > 1)]
    bold = [label for label in labels.values() if label.marked and not label.meant]
    return set(labels) if sure or (len(bold) > 1 and any(one.kind in CASE_MAKERS for one in bold)) else set()


def _split_paragraph(block: Block, page: Page, before_list: bool = False) -> list[Block | _LabelLine]:
    """Split a paragraph into prose and labels, in order."""
    pieces: list[Block | _LabelLine] = []
    lines = block.text.split("\n")
    collected: list[str] = []
    collected_from = block.line
    opened: _LabelLine | None = None
    for number, line in enumerate(lines):
        at = block.line + number
        label = _label_here(lines, number, block.lazy, opened is not None, opened is not None and opened.line == at - 1)
        last = label_at_end(line, before_list and number == len(lines) - 1) if label is None else None
        found = label or last
        if found is None:
            if collected or line.strip():
                collected_from = collected_from if collected else at
                collected.append(line)
            continue
        if last is not None:
            collected_from = collected_from if collected else at
            collected.append(line[: last.start])
        _add_piece(pieces, opened, collected, collected_from, at + 1 if last else at)
        column = max(0, page.lines[at].rfind(line.strip())) - (len(line) - len(line.lstrip()))
        opened = _LabelLine(found, at, column + found.start, None, not found.alone)
        collected, collected_from = ([] if found.alone else [line[found.end :]]), at
    _add_piece(pieces, opened, collected, collected_from, block.end)
    return pieces


def _add_piece(
    pieces: list[Block | _LabelLine], opened: _LabelLine | None, collected: list[str], start: int, end: int
) -> None:
    """Add the collected lines: as the value of the open label, or as prose."""
    text = Block("paragraph", start, end, "\n".join(collected)) if collected else None
    if opened is not None:
        opened.value = text
        pieces.append(opened)
    elif text is not None:
        pieces.append(text)


def _label_here(lines: list[str], number: int, lazy: bool, below: bool, right_below: bool) -> Label | None:
    """The label at the start of a line, if it isn't just a word there that prose was wrapped at.

    It isn't where a label stands further up (`below`), nor in a line that was cut off an item (`lazy`).
    """
    label = label_at_start(lines[number], loose=lazy or right_below)
    if label is None or number == 0 or right_below or lazy:
        return label
    ends_sentence = lines[number - 1].rstrip().endswith(_ENDS_SENTENCE)
    if not label.colon:
        return label if below or ends_sentence or lines[number].startswith("[", label.end) else None
    if label.marked or label.alone or label.word[0].isupper() or ends_sentence:
        return label
    return label if not label.meant and (below or _has_more_labels(lines)) else None


def _has_more_labels(lines: list[str]) -> bool:
    """Whether several lines begin with a label: prose isn't wrapped like that."""
    return sum(1 for line in lines if (label := label_at_start(line)) and not label.meant) > 1


def _cut_item(item: Block, page: Page) -> tuple[Block, list[Block]] | None:
    """Cut an item at the first label of its section: the item's own part, and the blocks from the label on."""
    if item.end - item.line < 2:
        return None
    return _cut(item, page, last=True)


def _cut(item: Block, page: Page, last: bool) -> tuple[Block, list[Block]] | None:
    for number, child in enumerate(item.children):
        is_last = last and number == len(item.children) - 1
        found: tuple[list[Block], list[Block]] | None = None
        if child.kind == "paragraph":
            ends = number + 1 == len(item.children) or item.children[number + 1].kind in ("list", "fence")
            found = _cut_paragraph(child, _label_line(child, item, page, number == 0, is_last, ends))
        elif child.kind == "list":
            found = _cut_list(child, page, is_last)
        if found is not None:
            kept = [*item.children[:number], *found[0]]
            end = kept[-1].end if kept else item.line + 1
            return replace(item, children=kept, end=end), [*found[1], *item.children[number + 1 :]]
    return None


def _cut_paragraph(paragraph: Block, line: int | None) -> tuple[list[Block], list[Block]] | None:
    if line is None:
        return None
    lines = paragraph.text.split("\n")
    cut = paragraph.line + line
    kept = [replace(paragraph, end=cut, text="\n".join(lines[:line]).rstrip())] if line else []
    return kept, [replace(paragraph, line=cut, text="\n".join(lines[line:]), lazy=True)]


def _cut_list(block: Block, page: Page, last: bool) -> tuple[list[Block], list[Block]] | None:
    for number, item in enumerate(block.children):
        if item.end - item.line < 2:
            continue
        found = _cut(item, page, last and number == len(block.children) - 1)
        if found is not None:
            head, rest = found
            kept = replace(block, children=[*block.children[:number], head], end=head.end)
            if after := block.children[number + 1 :]:
                rest = [*rest, replace(block, children=after, line=after[0].line)]
            return [kept], rest
    return None


def _label_line(paragraph: Block, item: Block, page: Page, first: bool, last: bool, ends: bool) -> int | None:
    """Which line of an item's paragraph is a label of the section and not the item's text.

    One that isn't indented like the item's content was never meant as part of it. One that is belongs to the item,
    unless it is indented no more than a label may be, and either begins a paragraph that `ends` the item's text, but
    for a list or fence of its own, or stands at the very end with nothing behind it.
    """
    if first and paragraph.end - paragraph.line < 2:
        return None
    lines = paragraph.text.split("\n")
    if not first and ends and width(page.lines[paragraph.line]) <= 3:
        label = label_at_start(lines[0])
        if label and label.marked and (label.colon or not label.meant):
            return 0
    for number in range(1, len(lines)):
        indent = width(page.lines[paragraph.line + number])
        if (
            indent < item.indent
            and (label := label_at_start(lines[number], loose=True))
            and _is_cut(label, lines[number])
        ):
            return number
    number = len(lines) - 1
    if last and (number or not first) and width(page.lines[paragraph.line + number]) <= 3:
        label = label_at_start(lines[number])
        if label and label.alone and (label.marked or not label.meant):
            return number
    return None


def _is_cut(label: Label, line: str) -> bool:
    """Whether a label in a wrapped line of an item is surely one: a bold word may be a word of the item's text."""
    return label.colon or label.word[0].isupper() or line.startswith("[", label.end)
