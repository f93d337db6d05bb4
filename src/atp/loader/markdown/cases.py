"""Makes the cases of a file from its outline."""

import re
from dataclasses import dataclass, field
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.base.text import cut
from atp.loader.cases import check_gate
from atp.loader.markdown.befores import Befores, Directory
from atp.loader.markdown.blocks import Block, render, unquoted
from atp.loader.markdown.fields import PLACEHOLDER
from atp.loader.markdown.frontmatter import Frontmatter, comma_separated
from atp.loader.markdown.items import Chain, Entry, ItemReader
from atp.loader.markdown.labels import TITLES, FieldKind
from atp.loader.markdown.names import Titles, Uniques, case_name, slug
from atp.loader.markdown.outline import Field, Outline, Section
from atp.loader.markdown.page import Page
from atp.loader.source import LoadContext
from atp.loader.validate import DataPath, Locator, validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.case import Case, Limits

_BETWEEN_TAGS = re.compile(r",|;\s+(?=\S)")


@dataclass(slots=True)
class _Draft:
    """A case in the making: its id and befores can only be resolved when all cases are known."""

    section: Section
    heading: str
    given_id: Entry | None
    chains: list[Chain]
    befores: list[Entry]
    case: Case


class CaseBuilder:
    """Makes the cases of a file, and notes the mistakes in each case and between cases."""

    def __init__(self, page: Page, front: Frontmatter, stem: str, context: LoadContext, notes: Diagnostics) -> None:
        self._page = page
        self._context = context
        self._front = front
        self._stem = stem
        self._notes = notes
        self._items = ItemReader(page, notes)

    def build(self, outline: Outline, titles: Titles) -> list[Case]:
        """All cases, in the order of the file."""
        drafts: list[_Draft] = []
        for section in outline.sections:
            if section.is_case:
                drafts.append(self._draft(section, len(drafts), titles))
            else:
                self._check_no_case(section)
        cases = [draft.case for draft in drafts]
        self._set_ids(drafts)
        self._check_names(cases)
        self._set_befores(drafts, titles)
        for draft in drafts:
            self._check(draft)
        if not cases:
            hint = "a section with `**Prompts:**` and `**Expectations:**` is a case"
            self._notes.error("no-case", "there is no test case in this file", self._page.place(0), hint)
        return cases

    def _draft(self, section: Section, index: int, titles: Titles) -> _Draft:
        self._note_unread(section)
        heading = titles.of(section)
        chains = self._chains(section)
        actor = self._single(section, "actor")
        tags = [tag for entry in self._listed(section, "tags") for tag in _tags(entry)]
        front = self._front
        settings = _read_settings(section, self._page, self._notes)
        case = Case(
            index=index,
            id="?",  # known when all others are
            name=case_name(heading) if section.heading else self._stem,
            path=titles.path(section),
            intent=self._intent(section),
            tags=list(dict.fromkeys([*tags, *front.tags])),
            user=actor.text if actor else None,
            chains=[chain.prompts for chain in chains],
            expectations=self._expectations(section),
            iterations=front.iterations,
            runs=front.runs,
            pass_rate=front.pass_rate,
            place=self._place(section),
        )
        shared = {key: value for key in ("confidence", "margin") if (value := getattr(front, key)) is not None}
        for name, value in (shared | settings).items():
            setattr(case, name, value)
        check_gate(case, settings, self._context, self._notes, lambda _: case.place)
        self._settle_limits(case)
        given_id = self._single(section, "id")
        return _Draft(section, heading, given_id, chains, self._listed(section, "before"), case)

    def _settle_limits(self, case: Case) -> None:
        """Fill in the limits that the case leaves open from the frontmatter."""
        if case.timeout is not None and "timeout_seconds" in case.limits.given():
            message = "`Timeout` and `timeout_seconds` of its constraints mean the same"
            self._notes.error("given-twice", message, case.place, "give one of them")
        wider = Limits(timeout_seconds=case.timeout or self._front.timeout, budget_usd=self._front.budget_usd)
        case.timeout = None
        case.limits.fill(wider.given())

    def _place(self, section: Section) -> Place:
        if section.heading is not None:
            return self._page.start_of(section.heading.line)
        first = next(section.fields)
        at = self._page.place(first.line, first.column)
        message = f"this case has no heading: it is called `{self._stem}` after its file"
        self._notes.warn("no-heading", message, at, "put `# …` above it")
        return at

    def _intent(self, section: Section) -> str | None:
        """What the intent labels say, else the prose above the first label."""
        labelled = [one for one in section.fields if one.kind == "intent"]
        if labelled:
            texts = [self._items.intent(one) for one in labelled if self._has_content(one)]
            return "\n\n".join(text for text in texts if text) or None
        prose: list[Block] = []
        for part in section.parts:
            if isinstance(part, Field):
                break
            if part.kind not in ("rule", "html"):
                prose.append(part)
        text = render(prose)
        if PLACEHOLDER.search(text):
            self._items.check_placeholders(prose)
        return text or None

    def _chains(self, section: Section) -> list[Chain]:
        chains: list[Chain] = []
        fields = list(section.fields)
        for number, one in enumerate(fields):
            if one.kind not in ("prompts", "chain"):
                continue
            follows = fields[number + 1].kind if number + 1 < len(fields) else None
            if not one.contents and not (one.kind == "prompts" and follows == "chain"):
                at = self._page.place(one.line, one.column)
                message = f"there is no prompt below `{one.title}`"
                self._notes.error("empty-prompt", message, at, "list the prompts below it")
            chains.extend(self._items.chains(one))
        return chains

    def _expectations(self, section: Section) -> list[str]:
        fields = (one for one in section.fields if one.kind == "expectations")
        return [text for one in fields for text in self._items.expectations(one)]

    def _listed(self, section: Section, kind: FieldKind) -> list[Entry]:
        fields = (one for one in section.fields if one.kind == kind)
        return [entry for one in fields if self._has_content(one) for entry in self._items.entries(one)]

    def _has_content(self, field: Field) -> bool:
        if not field.contents:
            at = self._page.place(field.line, field.column)
            self._notes.warn("empty-label", f"nothing stands below `{field.title}`", at, "fill it in, or remove it")
        return bool(field.contents)

    def _single(self, section: Section, kind: FieldKind) -> Entry | None:
        """The value of a label that takes only one."""
        entries = self._listed(section, kind)
        for more in entries[1:]:
            self._notes.error("several-values", f"`{TITLES[kind]}` takes one value", more.at, "remove all but one")
        return entries[0] if entries else None

    def _set_ids(self, drafts: list[_Draft]) -> None:
        """The ids that are given, and for the others the slug of the heading, made unique."""
        uniques = Uniques()
        first: dict[str, int] = {}
        for draft in drafts:
            if draft.given_id is not None:
                word, line = draft.given_id.text, draft.given_id.at.line
                draft.case.id = uniques.take(word)
                if draft.case.id != word:
                    hint = f"change it: line {first.get(word, line)} has it, too"
                    self._notes.error("duplicate-id", f"the id `{word}` is already taken", draft.given_id.at, hint)
                first.setdefault(draft.case.id, line)
        for draft in drafts:
            if draft.given_id is None:
                own = slug(draft.heading if draft.section.heading else self._stem)
                draft.case.id = uniques.take(own or f"case-{draft.case.index}")
            draft.case.name = draft.case.name or draft.case.id

    def _check_names(self, cases: list[Case]) -> None:
        first: dict[str, int] = {}
        for case in cases:
            known = first.setdefault(case.name.casefold(), case.index)
            if known != case.index:
                message = f"`{case.name}` is already the name of case {known}"
                self._notes.warn("duplicate-name", message, case.place, f"address it as {case.index} or `{case.id}`")

    def _set_befores(self, drafts: list[_Draft], titles: Titles) -> None:
        directory = Directory([draft.case for draft in drafts])
        for draft in drafts:
            directory.add(draft.case, draft.heading, titles.anchor(draft.section))
        befores = Befores(directory, self._notes)
        for draft in drafts:
            befores.resolve(draft.case, draft.befores)
        befores.expand()

    def _check(self, draft: _Draft) -> None:
        """Check the rules between the fields of a case."""
        case, kinds = draft.case, {one.kind for one in draft.section.fields}
        if not kinds & {"prompts", "chain"} and not draft.befores:
            message = "this case has expectations, but no prompts and no befores"
            self._notes.error("no-prompts", message, case.place, "add `**Prompts:**` or `**Before:**`")
        empty = [one for one in draft.section.fields if one.kind == "expectations" and not one.contents]
        if "expectations" not in kinds or (empty and not case.expectations):
            at = self._page.place(empty[0].line, empty[0].column) if empty else case.place
            message = "this case expects nothing: it can only serve as a before of others"
            self._notes.warn("no-expectations", message, at, "add `**Expectations:**`")
        if case.iterations is not None and case.iterations < len(draft.chains):
            left_out = draft.chains[case.iterations :]
            names = ", ".join(f"`{_short(chain.prompts[0])}`" for chain in left_out[:20])
            message = f"`iterations` is {case.iterations}, so these prompts never run: {names}"
            self._notes.warn("prompts-never-run", message, left_out[0].at, f"raise `iterations` to {len(draft.chains)}")

    def _note_unread(self, section: Section) -> None:
        for one in section.unread:
            if one.in_cases if section.is_case else one.in_others:
                self._notes.warn(one.code, one.message, one.at, one.hint)

    def _check_no_case(self, section: Section) -> None:
        self._note_unread(section)
        for one in section.fields:
            if one.kind != "intent":
                message = f"`{one.title}` stands in a section that has neither prompts nor expectations"
                at = self._page.place(one.line, one.column)
                self._notes.warn("label-without-case", message, at, "add `**Prompts:**` and `**Expectations:**`")


@dataclass(slots=True)
class _SettingPlaces:
    """Places in the values of a section's settings, each of which is a YAML text of its own."""

    labels: dict[str, Place] = field(default_factory=dict)
    """The place of each label, by key."""
    values: dict[str, Locator] = field(default_factory=dict)
    """The places in each value, by key."""

    def key(self, path: DataPath) -> Place:
        return self.values[str(path[0])].key(path[1:]) if len(path) > 1 else self._label(path)

    def value(self, path: DataPath) -> Place:
        return self.values[str(path[0])].value(path[1:]) if path else self._label(path)

    def _label(self, path: DataPath) -> Place:
        """The place of a setting's label; of a mistake between settings, of the first label."""
        return self.labels[str(path[0])] if path else next(iter(self.labels.values()))


def _read_settings(section: Section, page: Page, notes: Diagnostics) -> dict[str, Any]:
    """The settings of a section, by the fields of a case.

    Settings are the keys that a case takes in every dialect, as labels: `**Timeout:** 30s`, or `**Metadata:**` and a
    list. The values are YAML: on the label's line, in a fence, or as a list of `key: value`.
    """
    raw: dict[str, Any] = {}
    places = _SettingPlaces()
    for one in section.fields:
        if one.kind != "setting":
            continue
        at = page.place(one.line, one.column)
        if not one.contents:
            notes.error("empty", f"`{one.title}` is empty", at, "give it a value, or remove it")
        elif one.key in raw:
            notes.error("given-twice", f"`{one.title}` is given twice", at, "remove one of them")
        elif (parsed := parse_yaml(*_setting_yaml(one, page, notes))) is not None:
            raw[one.key], places.labels[one.key], places.values[one.key] = parsed.data, at, parsed.locator
    case = validate(Case, {"id": "-", **raw}, notes, places) if raw else None
    names = {"limits" if key == "constraints" else key for key in raw}
    return {} if case is None else {name: getattr(case, name) for name in names & case.model_fields_set}


def _setting_yaml(field: Field, page: Page, notes: Diagnostics) -> tuple[str, Diagnostics, int]:
    """The value of a setting as YAML, indented as in the file, so that places in it are right."""
    first, *more = field.contents
    if first.kind in ("fence", "code"):
        if more:
            message = f"`{field.title}` takes one value, and it has one in the block above"
            notes.error("several-values", message, page.start_of(more[0].line), "move it into the block")
        column = len(page.lines[first.line]) - len(page.lines[first.line].lstrip())
        start = first.line + (first.kind == "fence")
        return "\n".join(" " * column + line for line in first.text.split("\n")), notes, page.first_line + start
    rows: list[str] = []
    for block in (inner for one in field.contents for inner in (one.children if one.kind == "item" else [one])):
        rows.extend([""] * (block.line - first.line - len(rows)))
        if block.kind != "paragraph":  # below `- key:` a list is YAML as it stands; all else is wrong there
            rows.extend(page.lines[block.line : block.end])
            continue
        for number, line in enumerate(block.text.rstrip("\n").split("\n"), block.line):
            rows.append(_padded(line, page.lines[number], continues=number > block.line))
    return "\n".join(rows), notes, page.first_line + first.line


def _padded(line: str, whole: str, continues: bool) -> str:
    """A line at its column. A line that continues a value is indented by one more, as YAML needs."""
    text = line.strip()
    column = max(0, whole.rfind(text)) + continues
    if text[:1] == "`":
        text = f" {unquoted(text)}"
    return " " * column + text


def _tags(entry: Entry) -> list[str]:
    """`smoke, slow` and `#smoke #slow`; where it is no item of a list also `[smoke, "slow"]` and `smoke; slow`."""
    text = entry.text
    if not entry.is_item:
        text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        text = ",".join(unquoted(part) for part in _BETWEEN_TAGS.split(text))
    words = text.split()
    parts = words if all(word.startswith("#") for word in words) else comma_separated(text)
    return [tag for part in parts if (tag := part.strip(",").strip("`").removeprefix("#"))]


def _short(text: str) -> str:
    return cut(" ".join(text.split()), 60)
