"""Reads the contents of a field: prompts, chains of prompts, expectations, names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.markdown.blocks import Block, text_of, unboxed, unquoted
from atp.loader.markdown.fields import PLACEHOLDER
from atp.loader.markdown.labels import (
    advice,
    is_blank,
    is_keyword,
    label_at_start,
    unknown_label,
    unknown_label_with_value,
)
from atp.loader.markdown.outline import Field
from atp.loader.markdown.page import Page, width

_MARKER = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")
_OTHER_BULLET = re.compile(
    r"\s*(?:(?P<bullet>[•‣◦▪▫●○■□∙])|[–—→➢➤✓✔✗✘✅❌☐☑☒]\ufe0f?|\(?[A-Za-z0-9]{1,2}\)|[A-Za-z]\.)\s*\S"
)
"""The beginning of an item as other programs write it. Only `bullet` stands in no sentence."""
_TABLE_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?")
"""The line below the head of a table."""
_UNDERLINE = re.compile(r"[ \t]*=+[ \t]*")
_BULLET = re.compile(r"^\s*[-*+]\s+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a field."""

    text: str
    at: Place
    is_item: bool = False
    """Whether it is an item of a list."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Prompts that are sent one after the other."""

    prompts: list[str]
    at: Place


class ItemReader:
    """Reads the contents of fields, and notes what may not be meant as it is read."""

    def __init__(self, page: Page, notes: Diagnostics) -> None:
        self._page = page
        self._notes = notes

    def chains(self, field: Field) -> list[Chain]:
        """The prompt chains of a field. A chain without prompts is left out."""
        self._check_mixture(field)
        chains: list[Chain] = []
        for entries in chain_entries(field):
            first = [entries.item] if entries.item else entries.prompts[0]
            at = (
                self._place(first)
                if field.kind != "chain" or entries.item
                else self._page.place(field.line, field.column)
            )
            if entries.found is not None:
                self._check_chain(entries.found, at)
            chains.append(Chain([prompt for group in entries.prompts if (prompt := self._prompt(group))], at))
        return [chain for chain in chains if chain.prompts]

    def expectations(self, field: Field) -> list[str]:
        """The expectations of a field."""
        self._check_mixture(field)
        texts: list[str] = []
        for group in grouped(field.contents):
            text = self._text(group)
            if text:
                texts.append(text)
            else:
                self._notes.error("empty-expectation", "this expectation is empty", self._place(group), "say it")
        return texts

    def entries(self, field: Field) -> list[Entry]:
        """The entries of a field of names or values."""
        entries: list[Entry] = []
        for group in grouped(field.contents):
            if group[0].kind in ("fence", "code") and field.kind in ("before", "tags"):
                entries.extend(self._lines(group[0]))
            elif text := text_of(_inside(group)):
                self._check_name(group, field)
                self._check_underlines(group, text)
                entries.append(Entry(text, self._place(group), group[0].kind == "item"))
        return entries

    def _lines(self, block: Block) -> Iterator[Entry]:
        """The lines of a fence that is no item, each an entry."""
        first = block.line + (block.kind == "fence")
        for number, line in enumerate(block.text.split("\n"), first):
            if text := unquoted(_BULLET.sub("", line)):
                yield Entry(text, self._page.place_of(number, line.strip()))

    def _check_name(self, group: list[Block], field: Field) -> None:
        """Note an id, a tag or an actor of several lines: what stands below it was hardly meant as a part of it."""
        if field.kind not in ("id", "tags", "actor"):
            return
        for number, block in enumerate(_inside(group)):
            if block.kind == "list":
                at = self._page.place(block.line, block.children[0].column)
                message = f"this list is read as a part of an entry of {field.title}"
                self._notes.warn("nested-list", message, at, "indent it less, or remove it")
            elif (more := _second_line(block) if number == 0 else block.line) is not None:
                message = f"this line is read as a part of an entry of {field.title}"
                hint = "write an entry on one line, and put an empty line before prose"
                self._notes.warn("several-lines", message, self._page.start_of(more), hint)

    def intent(self, field: Field) -> str:
        """The text of an intent."""
        for group in grouped(field.contents):
            self.check_placeholders(group)
        return "\n".join(entry.text for entry in self.entries(field))

    def _prompt(self, group: list[Block]) -> str:
        text = self._text(group)
        if not text:
            hint = "say something, or remove it"
            self._notes.error("empty-prompt", "this prompt is empty", self._place(group), hint)
        return text

    def _text(self, group: list[Block]) -> str:
        text = entry_text(group)
        if is_blank(text):
            return ""
        if PLACEHOLDER.search(text):
            self.check_placeholders(group)
        if group[0].kind == "item":
            self._check_item(group[0], _inside(group))
        self._check_underlines(group, text)
        return text

    def _place(self, group: list[Block]) -> Place:
        """The place where the text begins; of an empty item, of its marker."""
        block = group[0]
        if block.kind == "item":
            if not block.children:
                return self._page.place(block.line, block.column)
            if block.children[0].line == block.line:
                return self._page.place(block.line, block.offset)
            block = block.children[0]
        if block.kind == "paragraph":
            return self._page.place_of(block.line, block.text.partition("\n")[0].strip())
        return self._page.start_of(block.line)

    def _check_chain(self, found: "ChainItem", at: Place) -> None:
        """Note what may not be meant in an item that the word `chain` makes a chain."""
        if found.misspelled:
            self._notes.warn("misspelled-label", f"`{found.misspelled}` is read as `Chain`", at, "write `Chain`")
        if found.beside:
            message = "the text beside `Chain` is read as its first prompt"
            self._notes.warn("text-beside-chain", message, at, "make it an item")
        if not found.contents:
            self._notes.error("empty-chain", "this chain has no prompts", at, "list them below it, indented")

    def _check_mixture(self, field: Field) -> None:
        """Note contents of several kinds below one label, which may be meant in more than one way."""
        fences = 0
        groups = list(grouped(field.contents))
        for number, group in enumerate(groups):
            at = self._place(group)
            title = field.title
            match group[0].kind:
                case "fence" if number and groups[number - 1][0].kind == "item":
                    message = "this block is read as an item of its own"
                    self._notes.warn("fence-after-list", message, at, "indent it to make it a part of the item above")
                case "fence":
                    fences += 1
                    if fences > 1 and field.kind != "chain":
                        message = f"several blocks below one label are read as several {title}"
                        self._notes.warn("several-fences", message, at, "make each an item of a list")
                case "code":
                    message = "Markdown takes this for code, because it is indented by four or more"
                    self._notes.warn("indented-code", message, at, "indent it less, or put it in a fence")
                case "quote" | "paragraph" | "html":
                    self._check_bare(group, field, followed=len(groups) > number + 1, first=number == 0)

    def _check_bare(self, group: list[Block], field: Field, followed: bool, first: bool) -> None:
        paragraphs = [block for block in group if block.kind == "paragraph"]
        if len(paragraphs) > 1:
            at = self._page.place_of(paragraphs[1].line, paragraphs[1].text.partition("\n")[0].strip())
            message = f"these paragraphs are read as one of the {field.title}"
            self._notes.warn("several-paragraphs", message, at, "make each an item of a list, or all of it one item")
        for block in paragraphs:
            self._check_no_list(block, beside=field.beside and first and block is group[0], numbers=True)
            self._check_table(block)
        if group[0].kind == "quote":
            with_sign = "without" if all(block.kind == "quote" for block in group) else "with"
            message = f"a quote below a label is read as text, {with_sign} its `>`"
            self._notes.warn("quote", message, self._place(group), "make it an item of a list")
        beside = field.beside and first and not group[0].text.rstrip().endswith(":")
        if followed and not beside:
            message = f"the text above this list is read as one of the {field.title}"
            self._notes.warn("text-before-list", message, self._place(group), "make it an item, or move it")

    def _check_item(self, item: Block, inside: list[Block]) -> None:
        for block in inside:
            if block.kind == "list":
                at = self._page.place(block.line, block.children[0].column)
                message = "this list is read as a part of its item"
                hint = "write `Chain:` above it if each is a prompt of its own, or indent it less"
                self._notes.warn("nested-list", message, at, hint)
            elif block.kind == "paragraph" and block.end - block.line > 1:
                self._check_labels(block, item)
                self._check_no_list(block, beside=True, numbers=False)
                self._check_table(block)

    def _check_no_list(self, paragraph: Block, beside: bool, numbers: bool) -> None:
        """Note text that looks like a list, but is none to Markdown.

        It is indented too far, begins with 2, or has markers that only other programs know.
        """
        lines = paragraph.text.split("\n")
        begins = list(enumerate(lines))[1 if beside else 0 :]
        for number, line in begins:
            marker = _MARKER.match(line)
            if marker and (marker[1] in "-*+" or (numbers and number == 0)):
                self._note_no_list(
                    paragraph.line + number, line, "put an empty line above the list, and indent it less"
                )
                return
        others = [(number, found) for number, line in begins if (found := _OTHER_BULLET.match(line))]
        if len(others) > 1 or any(found["bullet"] for _, found in others):
            number = others[0][0]
            self._note_no_list(paragraph.line + number, lines[number], "begin each item with `- `")

    def _note_no_list(self, number: int, line: str, hint: str) -> None:
        message = "Markdown takes this for text, not for an item of a list"
        self._notes.warn("not-a-list", message, self._page.place_of(number, line.strip()), hint)

    def _check_table(self, paragraph: Block) -> None:
        """Note a table, whose lines are joined like those of any text."""
        lines = paragraph.text.split("\n")
        for number, (above, line) in enumerate(pairwise(lines), paragraph.line):
            if "|" in above and _TABLE_RULE.fullmatch(line.strip()):
                message = "tables are not read: this one becomes a line of text"
                at = self._page.place_of(number, above.strip())
                self._notes.warn("table", message, at, "write a list, or put the table in a fence to keep its lines")
                return

    def _check_underlines(self, blocks: list[Block], text: str) -> None:
        """Note lines like `===` that underline no heading: `- warm` above such a line is an item, not a heading."""
        if "=" not in text:
            return
        for block in blocks:
            self._check_underlines(block.children, text)
            for number, line in enumerate(block.text.split("\n") if block.kind == "paragraph" else ()):
                if _UNDERLINE.fullmatch(line):
                    at = self._page.place_of(block.line + number, line.strip())
                    message = "Markdown takes this for text, not for the underline of a heading"
                    hint = "write a heading as `## …` after an empty line; put text like this into a fence"
                    self._notes.warn("not-a-heading", message, at, hint)

    def _check_labels(self, paragraph: Block, item: Block) -> None:
        """Note unknown labels that stand below an item and are read as a part of it."""
        for number, line in enumerate(paragraph.text.split("\n")[1:], 1):
            at = self._page.place_of(paragraph.line + number, line.strip())
            word = unknown_label(line) or unknown_label_with_value(line)
            if word is not None and width(self._page.lines[paragraph.line + number]) < item.indent:
                message = f"`{word}` is no label, and is read as a part of the item above it"
                self._notes.warn("unknown-label", message, at, f"{advice(word)}; put an empty line before prose")

    def check_placeholders(self, group: list[Block]) -> None:
        """Note a template's placeholders that are not filled in."""
        for number in range(group[0].line, min(group[-1].end, len(self._page.lines))):
            for found in PLACEHOLDER.finditer(self._page.lines[number]):
                at = self._page.place(number, found.start())
                self._notes.warn("placeholder", "this placeholder is not filled in", at, "put your own text here")


def grouped(contents: list[Block]) -> Iterator[list[Block]]:
    """The contents grouped into entries: an item, a fence, or text with the fences that follow it."""
    text: list[Block] = []
    for block in contents:
        if block.kind == "item":
            if text:
                yield text
                text = []
            yield [block]
        elif text or block.kind not in ("fence", "code"):
            text.append(block)
        else:
            yield [block]
    if text:
        yield text


@dataclass(frozen=True, slots=True)
class ChainItem:
    """An item that is a chain of prompts."""

    contents: list[Block]
    beside: bool = False
    """Whether the first prompt stands beside the word `chain`."""
    misspelled: str | None = None
    """The word, if it isn't quite `chain`."""


def chain_of(item: Block) -> ChainItem | None:
    """The chain that an item is, if it begins with the word."""
    children = unboxed(item)
    if not children or children[0].kind != "paragraph":
        return None
    first, *rest = children
    contents = [inner for block in rest for inner in (block.children if block.kind == "list" else [block])]
    line, *more = first.text.split("\n")
    keyword = is_keyword(line) if not more else None
    if keyword is not None and (contents or keyword.marked or line.rstrip().endswith(":")):
        return ChainItem(contents, misspelled=keyword.word if keyword.meant else None)
    label = label_at_start(line)
    if label is None or label.kind != "chain" or not label.marked or label.meant or not contents:
        return None
    beside = Block("paragraph", first.line, first.end, "\n".join([line[label.end :], *more]).strip())
    return ChainItem([beside, *contents], beside=True)


@dataclass(frozen=True, slots=True)
class ChainEntries:
    """A chain in a field: the entries that are its prompts."""

    prompts: list[list[Block]]
    item: Block | None = None
    """The item, if the word `chain` makes it a chain."""
    found: ChainItem | None = None
    """What the word makes of the item."""


def chain_entries(field: Field) -> list[ChainEntries]:
    """The chains of a field of prompts, in order; empty prompts are still there."""
    chains: list[ChainEntries] = []
    whole: list[list[Block]] = []
    for group in grouped(field.contents):
        found = chain_of(group[0]) if group[0].kind == "item" else None
        if found is not None:
            chains.append(ChainEntries(list(grouped(found.contents)), group[0], found))
        elif field.kind == "chain":
            if not whole:
                chains.append(ChainEntries(whole))
            whole.append(group)
        else:
            chains.append(ChainEntries([group]))
    return chains


def _second_line(block: Block) -> int | None:
    """The line of a paragraph at which a name goes on, though neither a comma nor a `#` divides the two lines."""
    if block.kind != "paragraph":
        return None
    lines = block.text.split("\n")
    divided = (line.rstrip().endswith((",", ";")) or below.lstrip().startswith("#") for line, below in pairwise(lines))
    number = next((number for number, one in enumerate(divided, 1) if not one), None)
    return None if number is None else block.line + number


def entry_text(group: list[Block]) -> str:
    """The text of an entry; empty if it says nothing."""
    text = text_of(_inside(group))
    return text if text.strip() else ""


def _inside(group: list[Block]) -> list[Block]:
    """The blocks that make the text of an entry; a quote below a label only sets it off."""
    first = group[0]
    if first.kind == "item":
        return unboxed(first)
    if all(block.kind == "quote" for block in group):
        return [inner for block in group for inner in block.children]
    return group
