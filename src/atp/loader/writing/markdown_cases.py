"""Cases as sections of a Markdown file, and what is lost of each."""

import re
from dataclasses import dataclass, field
from typing import Any

from atp.loader.markdown.names import Uniques, case_name, slug
from atp.loader.writing.cases import plain_message, to_plain
from atp.loader.writing.losses import Losses, SecretHider
from atp.loader.writing.markdown_text import can_say, title
from atp.suite.case import Case
from atp.suite.record import Record

_UNWRITABLE = ("description", "agents", "simulator", "checkpoints", "max_turns", "assertions", "expected")
"""The keys that only the other dialects have."""
_SETTINGS = (
    *(
        "skip",
        "runs",
        "pass_rate",
        "confidence",
        "margin",
        "scoring",
        "min_score",
        "team",
        "locale",
        "metadata",
        "options",
    ),
    *("workspace", "before_hook", "after_hook"),
)
"""The keys that are labels in Markdown."""
_NO_TAG = re.compile(r",|^[#`\s]|[`\s]$")


@dataclass(slots=True)
class Sheet:
    """A case as a section of a Markdown file."""

    case: Case
    path: list[str]
    """The headings around the case, its own last."""
    id: str
    intent: str | None
    user: str | None
    tags: list[str]
    chains: list[list[str]]
    expectations: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    """Values for the keys that every dialect takes, where the frontmatter doesn't say the same."""
    befores: list["Sheet"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name that the reader will give the case."""
        return case_name(self.path[-1])


def make_sheets(cases: list[Case], suite_name: str, hiding: SecretHider, losses: Losses) -> list[Sheet]:
    """The sheets of all cases that Markdown can represent."""
    sheets = {case.index: sheet for case in cases if (sheet := _sheet(case, suite_name, hiding, losses))}
    for sheet in sheets.values():
        sheet.befores = [sheets[index] for index in sheet.case.befores if index in sheets]
        if len(sheet.befores) < len(sheet.case.befores):
            losses.case(sheet.case, "befores")
    _set_ids(list(sheets.values()))
    return list(sheets.values())


def _set_ids(sheets: list[Sheet]) -> None:
    """Give sheets without an id the id that the reader would make."""
    uniques = Uniques()
    for sheet in sheets:
        uniques.take(sheet.id)
    for number, sheet in enumerate(sheets):
        sheet.id = sheet.id or uniques.take(slug(sheet.path[-1]) or f"case-{number}")


def _sheet(case: Case, suite_name: str, hiding: SecretHider, losses: Losses) -> Sheet | None:
    keys = ("id", "path", "intent", "user", "tags", "expectations")
    says = {key: getattr(case, key) for key in keys} | {"chains": case.chains or _message_chain(case)}
    says = hiding.hide(says | {"name": case.name or case.id}, losses.secret(case))
    kept: dict[str, Any] = {
        "chains": [chain for chain in says["chains"] if chain and all(map(can_say, chain))],
        "expectations": [one for one in says["expectations"] if can_say(one)],
        "tags": [tag for tag in dict.fromkeys(says["tags"]) if can_say(tag) and not _NO_TAG.search(tag)],
    }
    judges_befores = not says["chains"] and case.befores and kept["expectations"]
    if not kept["chains"] and not judges_befores:
        losses.case(case, "everything", _why_unwritable(case))
        return None
    for key, texts in kept.items():
        if lost := len(says[key]) - len(texts):
            losses.case(case, key, f"{lost} of {len(says[key])}")
    for key in ("id", "intent", "user"):
        if says[key] is not None and not can_say(says[key]):
            losses.case(case, key)
            says[key] = None
    sheet = Sheet(case, _path(says, suite_name), says["id"] or "", says["intent"], says["user"], **kept)
    if sheet.name != says["name"]:
        losses.case(case, "name")
    if says["path"] and sheet.path[:-1] != says["path"][:-1]:
        losses.case(case, "path")
    _note_losses(case, losses)
    return sheet


def _message_chain(case: Case) -> list[list[str]]:
    """A conversation that is one thing a user says is a chain of one prompt."""
    text = plain_message(case.messages) if case.messages else None
    return [] if text is None else [[text]]


def set_settings(sheet: Sheet, front: dict[str, Any], hiding: SecretHider, losses: Losses) -> None:
    """Give a sheet what its case says of the keys that every dialect takes, unless the frontmatter says it for all."""
    settings: dict[str, Any] = {}
    for key in _SETTINGS:
        value = getattr(sheet.case, key)
        if value != Case.model_fields[key].get_default(call_default_factory=True) and value != front.get(key):
            settings[key] = to_plain(value) if isinstance(value, Record) else value
    limits = {key: value for key, value in to_plain(sheet.case.limits).items() if value is not None}
    seconds = limits.pop("timeout_seconds", None)
    if seconds != front.get("timeout"):
        settings["timeout"] = f"{seconds}s" if isinstance(seconds, int) else seconds
    if limits.get("budget_usd") == front.get("budget_usd"):
        limits.pop("budget_usd", None)
    if limits:
        settings["constraints"] = limits
    sheet.settings = hiding.hide(settings, losses.secret(sheet.case))


def _path(says: dict[str, Any], suite_name: str) -> list[str]:
    """The headings of a case that came from Markdown; else the suite's name and its own."""
    around = [heading for heading in says["path"][:-1] if title(heading)]
    if says["path"] and title(says["path"][-1]) and case_name(says["path"][-1]) == says["name"]:
        return [*around, says["path"][-1]]
    # The reader leaves `Test:` out of a name, but only once.
    own = says["name"] if case_name(says["name"]) == says["name"] else f"Test: {says['name']}"
    own = next(one for one in (own, " ".join(own.split()), says["id"] or "", "case") if title(one))
    return [*(around if says["path"] else [suite_name]), own]


def _note_losses(case: Case, losses: Losses) -> None:
    for key in _UNWRITABLE:
        if getattr(case, key) != Case.model_fields[key].get_default(call_default_factory=True):
            losses.case(case, key, _which(case, key))
    if case.task is not None and (more := [key for key in to_plain(case.task) if key != "description"]):
        losses.case(case, "task", ", ".join(more))


def _which(case: Case, key: str) -> str:
    if key == "assertions":
        return ", ".join(one.type for one in case.assertions)
    return ", ".join(one.id for one in case.checkpoints) if key == "checkpoints" else ""


def _why_unwritable(case: Case) -> str:
    if case.chains or _message_chain(case):
        return "its prompts are empty or have line ends that Markdown changes"
    if case.messages:
        return "it is a conversation of messages"
    return "its user is simulated" if case.mode == "dialogue" else "it says nothing to the agent"
