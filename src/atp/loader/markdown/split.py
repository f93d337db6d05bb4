"""Splits paragraphs and items at labels.

`- warm` with `**Expectations:**` on the next line is one item to CommonMark, and an item and a label to its author.
"""

from dataclasses import dataclass, replace

from atp.loader.markdown.blocks import Block
from atp.loader.markdown.labels import Label, label_at_end, label_at_start
from atp.loader.markdown.page import Page, width

_ENDS_SENTENCE = tuple(".!?:;…)]\"'”’»`*_")


@dataclass(slots=True)
class LabelLine:
    """A label in a paragraph, and its value there."""

    label: Label
    line: int
    column: int
    value: Block | None
    """The rest of the paragraph, up to the next label."""
    beside: bool
    """Whether the value begins on the label's own line."""


def split_paragraph(block: Block, page: Page, before_list: bool = False) -> list[Block | LabelLine]:
    """Split a paragraph into prose and labels, in order."""
    pieces: list[Block | LabelLine] = []
    lines = block.text.split("\n")
    collected: list[str] = []
    collected_from = block.line
    opened: LabelLine | None = None
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
        opened = LabelLine(found, at, column + found.start, None, not found.alone)
        collected, collected_from = ([] if found.alone else [line[found.end :]]), at
    _add_piece(pieces, opened, collected, collected_from, block.end)
    return pieces


def _add_piece(
    pieces: list[Block | LabelLine], opened: LabelLine | None, collected: list[str], start: int, end: int
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


def cut_item(item: Block, page: Page) -> tuple[Block, list[Block]] | None:
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
