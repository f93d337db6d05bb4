"""Writes Markdown test files: frontmatter, and a section a case."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from atp.loader.markdown.frontmatter import agent_file
from atp.loader.markdown.names import slug, stem
from atp.loader.writing.cases import to_plain
from atp.loader.writing.losses import Losses, SecretHider, Written
from atp.loader.writing.markdown_cases import Sheet, make_sheets, set_settings
from atp.loader.writing.markdown_text import fenced, item, reads_plainly, title
from atp.loader.writing.yaml import yaml_text
from atp.suite.case import Case, Limits
from atp.suite.suite import Suite

_DEEPEST = 6
"""How deep headings go."""
_PLAIN_NAME = re.compile(r"[^\W_][\w .()-]*")
_PLAIN_WORD = re.compile(r"[^\W_][\w./-]*")


def write_markdown(suite: Suite) -> Written:
    """Frontmatter, and a section a case."""
    losses = Losses()
    hiding = SecretHider(suite.secrets)
    name = _suite_name(hiding.hide(suite.name, losses.secret(), ("name",)), losses)
    sheets = make_sheets(suite.cases, name, hiding, losses)
    front = _front_keys(suite, [sheet.case for sheet in sheets], losses)
    for sheet in sheets:
        set_settings(sheet, front, hiding, losses)
    front = hiding.hide(front, losses.secret())
    losses.sort(key=lambda loss: not loss.startswith("suite: "))
    if not sheets:
        return Written("", losses)
    first = [] if name == (_first_heading(sheets) or stem(suite.path)) else [_heading(1, name)]
    return Written("\n".join([_head(front), *first, *_sections(sheets, [name] if first else [])]), losses)


def _front_keys(suite: Suite, cases: list[Case], losses: Losses) -> dict[str, Any]:
    """The frontmatter: what the file says for all of its cases, in the order of the format's description."""
    if suite.version != "1.0":
        losses.suite("version", suite.version)
    for gate in suite.gates:
        losses.suite("gates", gate.text)
    defaults = suite.defaults
    limits = to_plain(Limits(**defaults.limits()))
    front = {
        "target": _target(suite, losses),
        "assessor": suite.assessor,
        "iterations": suite.iterations,
        "description": suite.description,
        "runs": _common([case.runs for case in cases], defaults.given().get("runs_per_test")),
        "timeout": _common(
            [to_plain(case.limits).get("timeout_seconds") for case in cases], limits.get("timeout_seconds")
        ),
        **{
            key: _common([getattr(case, key) for case in cases], getattr(defaults, key))
            for key in ("pass_rate", "confidence", "margin")
        },
        "budget_usd": _common([to_plain(case.limits).get("budget_usd") for case in cases], limits.get("budget_usd")),
        "generator": suite.generator,
    }
    return {key: value for key, value in front.items() if value is not None}


def _target(suite: Suite, losses: Losses) -> str | None:
    """The target of a Markdown file: the suite's, or its only agent if that is a prompt in `agents/`."""
    if len(suite.agents) == 1 and suite.agents[0].type == "prompt":
        agent = suite.agents[0]
        path = str(agent.config.path)
        if agent_file(path) is not None and to_plain(agent.config) == {"path": path} and agent.matrix is None:
            if agent.name != PurePosixPath(path).stem or agent.description is not None:
                losses.suite("agents", f"the name and description of `{agent.name}`")
            return path
    for agent in suite.agents:
        losses.suite("agents", f"`{agent.name}`")
    return suite.target


def _common(values: list[Any], default: Any) -> Any:
    """The suite's default, else the value that most cases have; but only if all have one.

    A case can change what the file says for all, but it can't take it back.
    """
    if None in values or not values:
        return None
    return Counter(values).most_common(1)[0][0] if default is None else default


def _head(front: dict[str, Any]) -> str:
    text = yaml_text(front) if front else ""
    # The reader takes the line end before `---` for its own, but a block of text needs it.
    ends_in_block = text.rstrip("\n").rpartition("\n")[2].startswith(" ")
    return "---\n" + text + ("\n" if ends_in_block else "") + "---\n"


def _suite_name(name: str, losses: Losses) -> str:
    for one in (name, " ".join(name.split()), "Tests"):
        if title(one):
            if one != name:
                losses.suite("name")
            return one
    raise AssertionError("the last of them is a title")


def _sections(sheets: list[Sheet], open_path: list[str]) -> Iterator[str]:
    """Headings and fields, each set off by a blank line. A heading that is still open isn't repeated."""
    names = Counter(name for sheet in sheets for name in {_fold(sheet.name), _fold(sheet.path[-1])})
    slugs = Counter(slug(sheet.path[-1]) for sheet in sheets)
    for sheet in sheets:
        for depth in range(_still_open(open_path, sheet), len(sheet.path)):
            yield _heading(depth + 1, sheet.path[depth])
        own_slug = slug(sheet.path[-1])
        if sheet.id != own_slug or slugs[own_slug] > 1:
            yield _field("ID", [sheet.id])
        if sheet.tags:
            yield _tags(sheet.tags)
        if sheet.user is not None:
            yield _field("Actor", [sheet.user])
        for key, value in sheet.settings.items():
            yield _setting(key, value)
        if sheet.intent is not None:
            yield _field("Test Intent", [sheet.intent])
        if sheet.befores:
            yield "**Before:**\n\n" + "".join(f"- {_reference(one, sheets, names)}\n" for one in sheet.befores)
        if sheet.chains:
            yield "**Prompts:**\n\n" + "".join(_chain(chain) for chain in sheet.chains)
        if sheet.expectations:
            yield "**Expectations:**\n\n" + "".join(item(one) for one in sheet.expectations)
        open_path = sheet.path


def _first_heading(sheets: list[Sheet]) -> str | None:
    """The first heading that isn't a case's, from which the reader names the suite."""
    open_path: list[str] = []
    for sheet in sheets:
        known = _still_open(open_path, sheet)
        if known < len(sheet.path) - 1:
            return sheet.path[known]
        open_path = sheet.path
    return None


def _still_open(open_path: list[str], sheet: Sheet) -> int:
    """How many of the headings around a case needn't be written again."""
    pairs = zip(open_path, sheet.path[:-1], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _heading(level: int, name: str) -> str:
    return f"{'#' * min(level, _DEEPEST)} {title(name)}\n"


def _field(label: str, texts: list[str]) -> str:
    """A label with its value beside it, or below it where that would be read otherwise."""
    if len(texts) == 1 and texts[0][0].isalnum() and reads_plainly(texts[0]):
        return f"**{label}:** {texts[0]}\n"
    return f"**{label}:**\n\n" + "".join(item(text) for text in texts)


def _tags(tags: list[str]) -> str:
    return _field("Tags", [", ".join(tags)] if all(map(_PLAIN_WORD.fullmatch, tags)) else tags)


def _setting(key: str, value: Any) -> str:
    """A label with a word or number beside it, or with YAML in a fence: the reader would take quotes away."""
    label = f"**{key.replace('_', ' ').title()}:**"
    text = yaml_text(value).removesuffix("\n").removesuffix("\n...")  # PyYAML so ends what is a single word
    if isinstance(value, bool | int | float) or (isinstance(value, str) and _PLAIN_WORD.fullmatch(text)):
        return f"{label} {text}\n"
    return f"{label}\n\n{fenced(text, 'yaml')}"


def _chain(chain: list[str]) -> str:
    return item(chain[0]) if len(chain) == 1 else "- **Chain:**\n" + "".join(item(prompt, "  ") for prompt in chain)


def _reference(sheet: Sheet, sheets: list[Sheet], names: Counter[str]) -> str:
    """A before by its name where that means only one case, else by a link to its id."""
    if names[_fold(sheet.name)] == 1 and _PLAIN_NAME.fullmatch(sheet.name):
        return sheet.name
    return f"[{sheets.index(sheet)}](#{quote(sheet.id, safe='')})"


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())
