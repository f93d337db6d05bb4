"""The outline of a test file: sections, with fields that labels open, and prose."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from atp.base.diagnostics import Place
from atp.loader.markdown.blocks import Block
from atp.loader.markdown.labels import TITLES, FieldKind

CASE_MAKERS: set[FieldKind] = {"prompts", "chain", "expectations"}
"""A section with one of these is a case."""

Form = Literal["line", "heading", "item"]
"""How a label is written: in a line of text, as a heading, or as an item of a list."""


@dataclass(slots=True)
class Field:
    """A label and its contents."""

    kind: FieldKind
    form: Form
    line: int
    column: int
    end: int
    """The column behind the label."""
    contents: list[Block] = field(default_factory=list)
    """Paragraphs, fences and items, in order."""
    beside: bool = False
    """Whether the first of the contents stands on the label's own line."""
    heading: Block | None = None
    """The heading, if the label is one."""
    key: str = ""
    """The key that a setting is for."""

    has_items: bool = False

    def add(self, block: Block) -> None:
        """Add content at the end."""
        self.contents.append(block)
        self.has_items = self.has_items or block.kind == "item"

    @property
    def title(self) -> str:
        """The label in its canonical spelling."""
        return TITLES.get(self.kind) or self.key.replace("_", " ").title()


@dataclass(frozen=True, slots=True)
class Unread:
    """A diagnostic about what looks like a part of a case and isn't read as one."""

    code: str
    message: str
    at: Place
    hint: str
    in_cases: bool = True
    """Report the diagnostic if the section is a case."""
    in_others: bool = True
    """Report the diagnostic if the section is no case."""


@dataclass(slots=True)
class Section:
    """A heading and all below it, up to the next heading that isn't one of its fields."""

    heading: Block | None = None
    """None in the section before the first heading."""
    around: "Section | None" = None
    """The enclosing section."""
    parts: list[Field | Block] = field(default_factory=list)
    """Fields and prose, in order."""
    unread: list[Unread] = field(default_factory=list)
    """Diagnostics about contents that may have been meant as a part of a case."""
    is_case: bool = False
    """Whether a field makes the section a case."""
    last: Field | None = None
    """The last field."""

    @property
    def level(self) -> int:
        """The level of the heading; 0 without one."""
        return self.heading.level if self.heading else 0

    @property
    def fields(self) -> Iterator[Field]:
        """The fields, in order."""
        return (part for part in self.parts if isinstance(part, Field))

    def add(self, part: Field | Block) -> None:
        """Add a field or prose at the end."""
        self.parts.append(part)
        if isinstance(part, Field):
            self.last = part
            self.is_case = self.is_case or part.kind in CASE_MAKERS


@dataclass(slots=True)
class Outline:
    """The sections of a file, and all sections, fields and prose in the order of the file."""

    sections: list[Section]
    flow: list[Section | Field | Block]
