"""Makes the outline: which headings begin a section, and which are labels of the section around them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from atp.base.diagnostics import Diagnostics
from atp.loader.markdown.blocks import Block
from atp.loader.markdown.fields import FieldReader
from atp.loader.markdown.labels import (
    FieldKind,
    Label,
    before_heading,
    label_alone,
    label_at_start,
    looks_right,
    setting_alone,
)
from atp.loader.markdown.outline import Field, Outline, Section
from atp.loader.markdown.page import Page

_VALUES: set[FieldKind] = {"intent", "id", "tags", "actor"}
"""Fields whose value is usually a line of text below the heading."""
_LINK = re.compile(r"\[(.+)\]\(#[^)]*\)")
_KEY = re.compile(r"[\w-]+:(?:\s|$)")
_MAPPINGS = {"metadata", "options", "constraints", "scoring"}
"""Settings that have several parts."""


@dataclass(slots=True)
class _Stretch:
    """A heading and the blocks up to the next heading."""

    heading: Block | None
    label: Label | None = None
    """The label that the heading reads like."""
    blocks: list[Block] = field(default_factory=list)

    @property
    def level(self) -> int:
        return self.heading.level if self.heading else 0

    @property
    def text(self) -> str:
        return " ".join(self.heading.text.split()) if self.heading else ""


def read_outline(blocks: list[Block], page: Page, notes: Diagnostics) -> Outline:
    """The outline of the blocks of a file."""
    stretches = _stretches(blocks)
    root = Section()
    outline = Outline([root], [])
    open_sections = [root]
    only_labels = all(one.label and one.label.kind != "setting" for one in stretches[1:])
    names: dict[str, int] = {}
    for one in stretches[1:]:
        names[one.text.casefold()] = min(one.level, names.get(one.text.casefold(), one.level))
    for one in stretches[1:]:
        one.label = one.label or _names_before(one, names)
    FieldReader(root, outline, page, notes).read(stretches[0].blocks)
    for number, stretch in enumerate(stretches[1:], 1):
        assert stretch.heading is not None
        while len(open_sections) > 1 and open_sections[-1].level >= stretch.level:
            open_sections.pop()
        owner = open_sections[-1]
        can_be_field = owner is not root or only_labels or root.is_case
        if can_be_field and stretch.label and _is_field(stretches[number : number + 20], owner, names, page):
            _check_skipped(outline.sections[-1], owner, stretch.heading, page, notes)
            reader = FieldReader(owner, outline, page, notes)
            reader.open_heading(stretch.heading, stretch.label)
            reader.read(stretch.blocks)
        else:
            section = Section(stretch.heading, owner)
            outline.sections.append(section)
            outline.flow.append(section)
            open_sections.append(section)
            FieldReader(section, outline, page, notes).read(stretch.blocks)
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
    """The label and the item or rule that CommonMark takes for an underlined heading."""
    last = heading.end - 1
    yield Block("paragraph", heading.line, last, heading.text)
    if heading.info == "-":
        yield Block("list", last, last + 1, children=[Block("item", last, last + 1, markup="-")])
    elif label := label_at_start(heading.text.rpartition("\n")[2]):
        yield from [] if label.alone else [Block("rule", last, last + 1, markup=heading.info)]


def _heading_label(heading: Block) -> Label | None:
    """The label that a heading reads like: `### Prompts`, or `### Before: Setup` with the value beside it."""
    text = " ".join(heading.text.split())
    label = label_alone(text) or setting_alone(text) or label_at_start(text)
    if label is None or label.alone:
        return label
    return label if label.colon and not (label.meant and len(label.meant) < 6) else None


def _names_before(stretch: _Stretch, names: dict[str, int]) -> Label | None:
    """The label of a heading like `### Before Pour`, if it is deeper than the section `Pour`.

    Beside `### Pour` the heading is the name of a case.
    """
    label = before_heading(stretch.text)
    if label is None:
        return None
    value = stretch.text[label.end :].casefold()
    link = _LINK.fullmatch(value)
    return label if names.get(link[1] if link else value, stretch.level) < stretch.level else None


def _is_field(ahead: list[_Stretch], owner: Section, names: dict[str, int], page: Page) -> bool:
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
    if here.label.kind == "setting":
        return _is_value(here.label.key, alone.parts[0] if alone.parts else None, complete)
    if not here.label.alone:
        return not (here.label.meant and complete)
    if here.text.rstrip("*_").endswith(":"):
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


def _is_value(key: str, part: Field | Block | None, complete: bool) -> bool:
    """Whether the part below a heading can be the value of a setting: a case can be called `Timeout`, too."""
    if not isinstance(part, Block):
        return False
    if part.kind != "paragraph":
        return (
            key in _MAPPINGS and not complete and (part.kind == "fence" or (part.kind == "list" and _is_mapping(part)))
        )
    is_short = key not in _MAPPINGS and len(part.text.split()) <= 3
    return looks_right(key, part.text) or (is_short and not complete)


def _is_mapping(block: Block) -> bool:
    """Whether all items of a list are keys with their values."""
    texts = (item.children[0].text if item.children else "" for item in block.children)
    return all(_KEY.match(text) for text in texts)


def _check_skipped(last: Section, owner: Section, heading: Block, page: Page, notes: Diagnostics) -> None:
    """Note a field right below an empty section of the same level: it was probably meant for that section."""
    if last.around is owner and last.heading is not None and last.level == heading.level and not last.parts:
        message = f"this is not read as a part of `{last.heading.text}`, because it is no deeper"
        hint = f"make it deeper: `{'#' * min(heading.level + 1, 6)} {heading.text}`"
        notes.warn("heading-in-field", message, page.start_of(heading.line), hint)
