"""Headings: which of them begin a section, and which are labels of the section around them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from atp.loader.diagnostics import Diagnostics
from atp.loader.markdown.blocks import Block
from atp.loader.markdown.fields import FieldReader
from atp.loader.markdown.labels import FieldKind, Label, label_alone, label_at_start
from atp.loader.markdown.outline import Field, Outline, Section, Unread
from atp.loader.markdown.page import Page

_VALUES: set[FieldKind] = {"intent", "id", "tags", "actor"}
"""What is naturally a line of text below a heading."""


@dataclass(slots=True)
class _Stretch:
    """A heading and the blocks up to the next one."""

    heading: Block | None
    label: Label | None = None
    """The label that the heading reads like."""
    blocks: list[Block] = field(default_factory=list)

    @property
    def level(self) -> int:
        return self.heading.level if self.heading else 0


def read_outline(blocks: list[Block], page: Page, notes: Diagnostics) -> Outline:
    """The outline that blocks make."""
    stretches = _stretches(blocks)
    root = Section()
    outline = Outline([root], [])
    open_sections = [root]
    only_labels = all(one.label for one in stretches[1:])
    names = {one.heading.text.casefold() for one in stretches if one.heading}
    FieldReader(root, outline, page, notes).read(stretches[0].blocks)
    for number, stretch in enumerate(stretches[1:], 1):
        assert stretch.heading is not None
        while len(open_sections) > 1 and open_sections[-1].level >= stretch.level:
            open_sections.pop()
        owner = open_sections[-1]
        can_be_field = owner is not root or only_labels or root.is_case
        if can_be_field and stretch.label and _is_field(stretches[number : number + 20], owner, names, page):
            reader = FieldReader(owner, outline, page, notes)
            reader.open_heading(stretch.heading, stretch.label)
            reader.read(stretch.blocks)
        else:
            section = Section(stretch.heading, owner)
            outline.sections.append(section)
            outline.flow.append(section)
            open_sections.append(section)
            FieldReader(section, outline, page, notes).read(stretch.blocks)
            _check_inside_field(section, stretches[number - 1], page)
    return outline


def _stretches(blocks: list[Block]) -> list[_Stretch]:
    stretches = [_Stretch(None)]
    for block in blocks:
        if block.kind != "heading":
            stretches[-1].blocks.append(block)
        elif block.info.startswith("-") and label_at_start(block.text.rpartition("\n")[2]):
            stretches[-1].blocks.extend(_not_underlined(block))
        else:
            stretches.append(_Stretch(block, _heading_label(block)))
    return stretches


def _not_underlined(heading: Block) -> Iterator[Block]:
    """To CommonMark, an empty item or a rule right below a label makes a heading of it. Nobody means that."""
    last = heading.end - 1
    yield Block("paragraph", heading.line, last, heading.text)
    if heading.info == "-":
        yield Block("list", last, last + 1, children=[Block("item", last, last + 1, markup="-")])
    elif label := label_at_start(heading.text.rpartition("\n")[2]):
        yield from [] if label.alone else [Block("rule", last, last + 1, markup=heading.info)]


def _heading_label(heading: Block) -> Label | None:
    """`### Prompts`, or `### Before: Setup` with the value beside it."""
    text = " ".join(heading.text.split())
    label = label_alone(text) or label_at_start(text)
    return None if label and label.meant and not label.alone else label


def _is_field(ahead: list[_Stretch], owner: Section, names: set[str], page: Page) -> bool:
    """Whether a heading that reads like a label is one: a case can be called `Before`, too.

    It is a section if another label or a deeper heading comes first below it, so that as a field it would be empty; or
    if it begins with prose and is complete in itself while the section around it isn't a case yet.
    """
    here, *below = ahead
    assert here.label is not None
    alone = Section()
    FieldReader(alone, Outline([], []), page, Diagnostics()).read(here.blocks)
    deeper = [one.label for one in takewhile(lambda one: one.level > here.level, below)]
    kinds: set[FieldKind] = {one.kind for one in alone.fields} | {label.kind for label in deeper if label}
    complete = "expectations" in kinds and bool(kinds & {"prompts", "chain"})
    if not here.label.alone:
        return True
    match alone.parts[0] if alone.parts else None:
        case None:
            follows = deeper[0] if deeper else None
            return not deeper or (here.label.kind == "prompts" and follows is not None and follows.kind == "chain")
        case Field(form="item") if not complete:
            return True
        case Field(kind=first):
            return here.label.kind == "prompts" and first == "chain"
        case Block(kind="paragraph", text=text) if complete and not owner.is_case:
            names_case = "](#" in text or text.casefold() in names
            return here.label.kind in _VALUES or (here.label.kind == "before" and names_case)
    return True


def _check_inside_field(section: Section, before: _Stretch, page: Page) -> None:
    """Variations below headings of their own aren't read, which must not go unnoticed."""
    assert section.heading is not None
    assert section.around is not None
    last = section.around.last
    if last is None or last.heading is None or last.heading is not before.heading:
        return
    has_items = any(isinstance(part, Block) and part.kind in ("list", "fence") for part in section.parts)
    if section.level > last.heading.level and has_items and section.last is None:
        message = f"what stands below this heading is not read as a part of {last.title}"
        at = page.start_of(section.heading.line)
        section.around.unread.append(Unread("heading-in-field", message, at, "make it an item, or remove the heading"))
