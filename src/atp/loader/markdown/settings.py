"""Settings: the keys that a case takes in every dialect, as labels (`**Timeout:** 30s`, `**Metadata:**` and a list).

Their values are YAML: on the label's line, in a fence, or as a list of `key: value`.
"""

from dataclasses import dataclass
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.loader.markdown.outline import Field, Section
from atp.loader.markdown.page import Page
from atp.loader.markdown.render import unquoted
from atp.loader.validate import DataPath, Locator, validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.case import Case


@dataclass(frozen=True, slots=True)
class _Below:
    """Places in the value of a setting."""

    label: Place
    inside: Locator

    def key(self, path: DataPath) -> Place:
        return self.inside.key(path[1:]) if len(path) > 1 else self.label

    def value(self, path: DataPath) -> Place:
        return self.inside.value(path[1:])


def read_settings(section: Section, page: Page, notes: Diagnostics) -> dict[str, Any]:
    """What the settings of a section say, by the fields of a case."""
    settings: dict[str, Any] = {}
    for field in section.fields:
        if field.kind != "setting":
            continue
        at = page.place(field.line, field.column)
        if not field.contents:
            notes.error("empty", f"`{field.title}` is empty", at, "give it a value, or remove it")
            continue
        name = "limits" if field.key == "constraints" else field.key
        if name in settings:
            notes.error("given-twice", f"`{field.title}` is given twice", at, "remove one of them")
            continue
        parsed = parse_yaml(*_yaml(field, page, notes))
        if parsed is None:
            continue
        case = validate(Case, {"id": "-", field.key: parsed.data}, notes, _Below(at, parsed.locator))
        if case is not None and name in case.model_fields_set:
            settings[name] = getattr(case, name)
    return settings


def _yaml(field: Field, page: Page, notes: Diagnostics) -> tuple[str, Diagnostics, int]:
    """The value as YAML that stands where it stands in the file, so that places in it are right."""
    first = field.contents[0]
    if first.kind in ("fence", "code"):
        column = len(page.lines[first.line]) - len(page.lines[first.line].lstrip())
        start = first.line + (first.kind == "fence")
        return "\n".join(" " * column + line for line in first.text.split("\n")), notes, page.first_line + start
    rows: list[str] = []
    for block in (inner for one in field.contents for inner in (one.children if one.kind == "item" else [one])):
        lines = block.text.rstrip("\n").split("\n")
        for number, line in enumerate(lines, block.line):
            rows.extend([""] * (number - first.line - len(rows)))
            rows.append(_padded(line, page.lines[number], continues=number > block.line))
    return "\n".join(rows), notes, page.first_line + first.line


def _padded(line: str, whole: str, continues: bool) -> str:
    """A line at its column; one that continues a value is indented a little more, as YAML wants it."""
    text = line.strip()
    column = max(0, whole.rfind(text)) + continues
    if text[:1] == "`":
        text = f" {unquoted(text)}"
    return " " * column + text
