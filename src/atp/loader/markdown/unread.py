"""Reports the lines that were not read, so that every line is in a field, prose of the intent, or reported.

This is the last step: what was read, and what was reported on the way, is known. Two rules are kept here. A line that
begins with a label word and was not read as a label is reported, wherever it stands but in fences and comments. In a
case, text that belongs to no field is reported; sections without labels are prose for people.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.markdown.blocks import Block, Kind, unboxed
from atp.loader.markdown.items import chain_of
from atp.loader.markdown.label_words import LabelWord, key_of_frontmatter, label_word
from atp.loader.markdown.labels import FieldKind, advice, is_remark, label_kinds, label_phrase, label_within
from atp.loader.markdown.outline import Field, Outline, Section
from atp.loader.markdown.page import Page, width

_TAGS = re.compile(
    r"<summary>.*?</summary>|</?[a-z][\w-]*(?:\s+(?:[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+)|open|hidden))*\s*/?>",
    re.IGNORECASE | re.DOTALL,
)
"""Tags around a list, and the caption of what can be folded. `<It must be cold>` is text, though HTML sees a tag."""
_NAMES: set[FieldKind] = {"before", "tags", "id", "actor"}
"""Fields whose items are names: a case can be called `Before`."""
_TAKEN_FOR: dict[Kind, tuple[str, str]] = {
    "quote": ("Markdown takes it for a quote", "remove the `>`"),
    "code": ("Markdown takes it for code, being indented by four or more", "indent it by less than four"),
    "html": ("Markdown takes it for raw HTML", "put an empty line before it, and no tags around it"),
}


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text in a block."""

    number: int
    text: str
    begins: bool
    """Whether it begins a block; else it goes on with the text of the line above."""
    inside: Kind
    """The kind of block that says how Markdown takes the line."""


def report_unread(outline: Outline, page: Page, notes: Diagnostics) -> None:
    """Report what was not read and is not reported yet."""
    _Reporter(outline, page, notes).report()


def unread_runs(section: Section) -> Iterator[list[Block]]:
    """The blocks of a case that are in no field and not in its intent, in runs between two fields.

    Text that stands before a label on its line introduces that label, and is left out.
    """
    run: list[Block] = []
    is_intent = not any(field.kind == "intent" for field in section.fields)
    for part in section.parts:
        if isinstance(part, Field):
            is_intent = False
            if run and run[-1].end > part.line:
                above = run.pop()
                if above.line < part.line:
                    run.append(replace(above, end=part.line, text=above.text.rpartition("\n")[0]))
            yield from [run] if run else []
            run = []
        elif not is_intent or part.kind in ("rule", "html"):
            run.append(part)
    if run:
        yield run


def says_something(block: Block) -> bool:
    """Whether there is text in a block."""
    if block.kind == "html":
        return bool(_TAGS.sub("", block.text).strip())
    return block.kind != "rule" and (bool(block.text.strip()) or any(map(says_something, block.children)))


def is_remark_block(block: Block) -> bool:
    """Whether a paragraph says that it is a remark."""
    return block.kind == "paragraph" and is_remark(block.text.partition("\n")[0])


class _Reporter:
    def __init__(self, outline: Outline, page: Page, notes: Diagnostics) -> None:
        self._sections = outline.sections
        self._page = page
        self._notes = notes
        self._reported = {one.line - page.first_line for one in notes}
        """The lines that have a diagnostic."""
        self._case_levels = {section.level for section in outline.sections if section.is_case}
        self._holds_case: set[int] = set()
        """The ids of the sections that are a case or have one in them."""
        for section in outline.sections:
            inner: Section | None = section if section.is_case else None
            while inner is not None and id(inner) not in self._holds_case:
                self._holds_case.add(id(inner))
                inner = inner.around
        self._meant_as_fields = {id(one) for one in _meant_as_fields(outline.sections, self._holds_case)}

    def report(self) -> None:
        for section in self._sections:
            if section.heading is not None:
                self._report_heading(section, section.heading)
            for part in section.parts:
                if isinstance(part, Field):
                    self._report_in_field(part)
                else:
                    self._report_labels(part)
            if section.is_case:
                for run in unread_runs(section):
                    self._report_run(run)
            else:
                self._report_phrases(section)

    def warn(self, code: str, message: str, line: int, hint: str, at: Place | None = None) -> None:
        """Note a diagnostic, unless its line has one already."""
        if line not in self._reported:
            self._reported.add(line)
            self._notes.warn(code, message, at or self._page.start_of(line), hint)

    def _report_key(self, text: str, line: int) -> None:
        """Report a line outside of fields that gives a value to a key of the frontmatter."""
        if key := key_of_frontmatter(text):
            message = f"`{key}` has no effect here: it is not in the frontmatter"
            self.warn("label-not-read", message, line, "move it up, between the two lines of `---`")

    def _report_heading(self, section: Section, heading: Block) -> None:
        for number, text in enumerate(heading.text.split("\n"), heading.line):  # a second block between `---`
            self._report_key(text, number)
        found = label_word(heading.text)
        if found is not None and not self._is_title(section):
            message = f"`{found.word}` is no label here: this heading begins a section of its own"
            deeper = "#" * min(section.level + 1, 6)
            hint = f"make it deeper than the heading of its case: `{deeper} {found.word}`"
            if len(heading.text.split()) > len(found.word.split()):
                hint = f"write `{found.word}:` if it is a label that is deeper than the heading of its case"
            self.warn("label-not-read", message, heading.line, hint)
        elif id(section) in self._meant_as_fields:
            message = f"`{heading.text}` is no label: this heading begins a section of its own"
            self.warn("label-not-read", message, heading.line, advice(heading.text))
        if id(section) in self._holds_case or is_remark(heading.text):
            return
        case = section.around
        while case is not None and not case.is_case:
            case = case.around
        if case is None:
            return
        field = case.last.heading if case.last else None
        if any(isinstance(part, Field) or says_something(part) for part in section.parts) or (
            field is not None and field.line < heading.line and field.level < section.level
        ):
            of = case.last.title if case.last and case.last.line < heading.line else "its case"
            message = f"what stands below this heading is not read as a part of {of}"
            self.warn("heading-in-field", message, heading.line, "make it items, or remove the heading")

    def _is_title(self, section: Section) -> bool:
        """Whether a heading that begins with a label word is the name of a case, or of a group of cases.

        Where cases are no deeper than the section around it, the heading was rather meant for a label of that one.
        """
        if not section.is_case:
            return id(section) in self._holds_case
        around = section.around
        if around is None or around.heading is None:
            return True
        return not (around.level in self._case_levels or any(True for _ in around.fields))

    def _report_labels(self, block: Block) -> None:
        """Report the lines of a block outside of fields that begin with a label word."""
        for line in _lines(block):
            self._report_key(line.text, line.number)
            found = label_word(line.text)
            if found is not None and (line.begins or not found.is_wrapped):
                why, hint = _TAKEN_FOR.get(line.inside, ("", ""))
                if not why:
                    why, hint = _reason(line.text, found)
                message = f"`{found.word}` is no label here: {why}"
                self.warn("label-not-read", message, line.number, hint, self._place(line))
            elif word := label_within(line.text):
                message = f"`{word}` is no label here: other text stands before it"
                self.warn("label-not-read", message, line.number, "begin a line with it", self._place(line))

    def _report_phrases(self, section: Section) -> None:
        """Report `Test prompts: …` and `Test expectations: …` in a section that is no case: both make one."""
        lines = (line for part in section.parts if isinstance(part, Block) for line in _lines(part))
        found = [(line, words) for line in lines if (words := label_phrase(line.text))]
        kinds = {kind for _, words in found for kind in label_kinds(words)}
        if "expectations" in kinds and kinds & {"prompts", "chain"}:
            for line, words in found:
                message = f"`{words}` is no label: it is not read"
                self.warn("label-not-read", message, line.number, advice(words), self._place(line))

    def _place(self, line: _Line) -> Place:
        return self._page.place_of(line.number, line.text.strip())

    def _report_run(self, run: list[Block]) -> None:
        """Report the text between two fields. The first diagnostic in it stands for what follows, too."""
        # Lines of the run's own blocks: after tags, a field may go on between them.
        lines = (line for block in run for line in range(block.line, block.end))
        first = next((line for line in lines if line in self._reported), run[-1].end)
        silent = [block for block in run if block.end <= first and says_something(block) and not is_remark_block(block)]
        if not silent:
            return
        start = next(number for number, block in enumerate(run) if block is silent[0])
        while start and not says_something(run[start - 1]):
            start -= 1
        ends = run[start]
        if any(block.kind in ("list", "fence") for block in run[start:]):
            message, hint = "the list below it is not read", "repeat the label above the list"
            if ends.kind in ("list", "fence"):
                message, hint = "what it lists is not read", "write a label above it"
            self.warn("unread-list", f"there is no label here: {message}", ends.line, hint)
        else:
            message = "this text is in no field: it is neither sent nor judged, nor the intent"
            hint = "move it above the first label, make it an item, or put it in a comment: `<!-- … -->`"
            self.warn("unread-text", message, silent[0].line, hint)

    def _report_in_field(self, field: Field) -> None:
        """Report lines inside a field that begin with a label word. The first word of an item is the item's text."""
        for number, block in enumerate(field.contents):
            if block.kind == "item":
                chain = chain_of(block) if field.kind in ("prompts", "chain") else None
                for item in [block] if chain is None else [one for one in chain.contents if one.kind == "item"]:
                    self._report_in_item(item, is_name=field.kind in _NAMES)
                continue
            for line in _lines(block):
                if field.form != "heading" and self._page.lines[field.line][field.column :].startswith(("*", "_")):
                    self._report_label_within(line, field)
                is_first = number == 0 and line.number == block.line
                found = None if is_first and field.beside else label_word(line.text)
                if found is None or (found.is_prose if is_first else found.is_wrapped and not line.begins):
                    continue
                message = f"`{found.word}` is no label here: it is read as a part of {field.title}"
                hint = _reason(line.text, found)[1]
                self.warn("label-not-read", message, line.number, hint, self._place(line))

    def _report_label_within(self, line: _Line, field: Field) -> None:
        """Report a bold label further on in a line of a bold label's value: `**Prompt:** sip **Before:** Pour`."""
        if word := label_within(line.text):
            message = f"`{word}` is no label here: it is read as a part of {field.title}"
            self.warn("label-not-read", message, line.number, "begin a line with it", self._place(line))

    def _report_in_item(self, item: Block, is_name: bool) -> None:
        children = unboxed(item)
        for number, child in enumerate(children):
            if number and child.kind == "heading":  # at the begin of an item it can't be meant as one of a case
                message = "this heading is indented like the item above it, and is read as its text"
                self.warn("heading-in-item", message, child.line, "begin the line with it; put text in a fence")
            for line in _lines(child):
                found = label_word(line.text)
                if found is None:
                    continue
                is_first = line.number == children[0].line
                lazy = width(self._page.lines[line.number]) < item.indent
                is_text = found.is_wrapped or (found.is_prose and not lazy)
                if is_first:
                    is_text = found.is_prose or (is_name and found.is_plain)
                if is_text:
                    continue
                where = "begins the item" if is_first else f"is {'not ' * lazy}indented like the item"
                message = f"`{found.word}` {where}, and is read as its text"
                hint = f"begin the line of a label with it: `**{found.title}:**`; put text in a fence"
                self.warn("label-in-item", message, line.number, hint, self._place(line))


def _meant_as_fields(sections: list[Section], hold_cases: set[int]) -> Iterator[Section]:
    """The sections below `### User Prompt` and `### My Expectations`, beside each other in a section without a case."""
    below: dict[int, list[tuple[Section, set[FieldKind]]]] = {}
    for one in sections:
        kinds = label_kinds(one.heading.text) if one.heading and one.parts and id(one) not in hold_cases else None
        if kinds and one.around is not None and id(one.around) not in hold_cases:
            below.setdefault(id(one.around), []).append((one, kinds))
    for children in below.values():
        kinds = {kind for _, found in children for kind in found}
        if "expectations" in kinds and kinds & {"prompts", "chain"}:
            yield from (section for section, _ in children)


def _lines(block: Block, inside: Kind | None = None) -> Iterator[_Line]:
    """The lines of text in a block. Fences have none: what stands in them is never structure."""
    kind = inside or block.kind
    if block.kind in ("fence", "rule"):
        return
    if block.kind in ("list", "item", "quote"):
        for child in block.children:
            yield from _lines(child, "quote" if kind == "quote" else None)
        return
    for number, text in enumerate(block.text.split("\n")):
        begins = number == 0 or block.kind in ("code", "html")
        yield _Line(block.line + number, text, begins, kind)


def _reason(text: str, found: LabelWord) -> tuple[str, str]:
    """Why a line that begins with a label word is not read as a label, and what to write."""
    title = found.title
    bare = text.lstrip()
    if found.word not in text:
        why = "it is written with marks, entities or other characters inside of the word"
        return why, f"type it anew: `**{title}:**`"
    if bare.startswith("#"):
        return "Markdown takes it for text, because no blank follows the `#`", f"write `### {title}`"
    if bare.startswith("|"):
        return "tables are not read", f"write `**{title}:**` and a list"
    if found.is_prose:
        return "without a colon it is a word of the text", f"write `**{title}:**`, or begin the line with another word"
    return "it is not written as a label", f"write `**{title}:**`"
