"""Finds and validates the frontmatter of a test file."""

import posixpath
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr

from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss
from atp.loader.cases import GATE_KEYS
from atp.loader.source import LoadContext
from atp.loader.validate import Locator, RenamedKeys, validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.record import Amount, Confidence, Count, Margin, Record, Seconds, Share, Text


def comma_separated(value: Any) -> Any:
    """`smoke, slow` is a list of two."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class Frontmatter(Record):
    """What a test file says about how it is run."""

    target: Text | None = None
    """The path of the agent under test, in the folder `agents/`."""
    assessor: Text | None = None
    """The path of the agent that judges expectations without an exact meaning; the built-in one if there is none."""
    generator: Text | None = None
    """The path of the agent that makes variations of prompts."""
    iterations: Count | None = None
    """How many variations of each case to run; every listed one once if not given."""
    description: str | None = None
    """What the file tests."""
    runs: Count | None = None
    """How many times to repeat each trial."""
    timeout: Seconds | None = None
    """The longest a trial may take."""
    tags: Annotated[list[Text], BeforeValidator(comma_separated)] = Field(default_factory=list)
    """Tags of every case in the file."""
    pass_rate: Share | None = None
    """The share of trials that must pass; otherwise all of them."""
    confidence: Confidence | None = None
    """How sure it has to be that the long-run pass rate reaches `pass_rate`; otherwise the observed share decides."""
    margin: Margin | None = None
    """With `confidence`: how far below `pass_rate` the long-run rate may lie and still pass (0)."""
    budget_usd: Amount | None = None
    """The most a trial may cost."""
    _places: dict[str, Place] = PrivateAttr(default_factory=dict)

    @property
    def target_place(self) -> Place:
        """Where `target` stands in the file."""
        return self.place_of("target")

    def place_of(self, key: str) -> Place:
        """Where the value of a key stands in the file; line 0 if the key is not given."""
        return self._places.get(key, Place())


@dataclass(frozen=True, slots=True)
class Head:
    """A file cut into frontmatter and body. Line numbers count from 1 in the file."""

    yaml: str | None
    """None if there is no frontmatter."""
    yaml_line: int
    body: str
    body_line: int


_FUNCTION = (
    'to test a Python function, have `type: custom` and `config: {entry: "helper.py:convert"}` in the frontmatter of '
    "the agent's file, or leave `target` out and name the function: -n helper.py:convert"
)
_LIKE_MARKDOWN = re.compile(r"\s*$|#{1,6}\s|[*_]{2}|[-*+]\s")


_KEY = re.compile(r"[\w-]+(?=\s*:(?:\s|$))")


def key_of(line: str) -> str | None:
    """The key that a line of frontmatter begins with."""
    key = _KEY.match(line)
    return key[0] if key else None


def cut(text: str, notes: Diagnostics) -> Head:
    """Part the frontmatter from the body."""
    lines = text.removeprefix("\ufeff").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != "---":
        hint = f"begin the file with `---`, `target: agents/x.md`, `---`; {_FUNCTION}"
        notes.error("missing-frontmatter", "the file has no frontmatter", Place(1, 1), hint)
        return Head(None, 1, "\n".join(lines), 1)
    end = next((number for number in range(start + 1, len(lines)) if lines[number].rstrip() in ("---", "...")), None)
    body = (end or 0) + 1
    if end is None:
        notes.error("unclosed-frontmatter", "the frontmatter is not closed", Place(start + 1, 1), "close it with `---`")
        # Read on where it looks like Markdown, so that the cases can still be shown.
        follows = (number for number in range(start + 1, len(lines)) if _LIKE_MARKDOWN.match(lines[number]))
        end = body = next(follows, len(lines))
    yaml = "".join(f"{line}\n" for line in lines[start + 1 : end])
    return Head(yaml, start + 2, "\n".join(lines[body:]), body + 1)


def read_frontmatter(head: Head, context: LoadContext, notes: Diagnostics) -> Frontmatter:
    """Validate the frontmatter. Values with mistakes are left out."""
    if head.yaml is None:
        return Frontmatter()
    opening = Place(head.yaml_line - 1, 1)
    if all(not line.strip() or line.lstrip().startswith("#") for line in head.yaml.split("\n")):
        _check_parts(set(), opening, context, notes)
        return Frontmatter()
    parsed = parse_yaml(head.yaml, notes, head.yaml_line)
    if parsed is None:
        return Frontmatter()
    if not isinstance(parsed.data, dict):
        at = parsed.locator.value(())
        notes.error("wrong-type", "the frontmatter must be a mapping", at, "write `target: agents/…`")
        return Frontmatter()
    raw, written = _fold(parsed.data, parsed.locator, notes)
    locate = RenamedKeys(parsed.locator, (), written)
    front = validate(Frontmatter, raw, notes, locate) or Frontmatter()
    front._places = {key: locate.value((key,)) for key in ("target", *GATE_KEYS) if key in front.model_fields_set}
    _check_parts(set(written), opening, context, notes)
    for key in ("target", "assessor", "generator"):
        path = getattr(front, key)
        if path is not None and agent_file(path) is None:
            hint = "agents live in the project's folder `agents/`: write `agents/my-agent.md`"
            hint += f"; {_FUNCTION}" if key == "target" else ""
            if key != "target" and path.startswith(("scripts:", "scripts.")):
                hint = f'name a function with `--{key} {path}`, or with `{key} = "{path}"` in atp.toml'
            message = f"`{key}` is not a path in the folder `agents/`: {path!r}"
            notes.error("outside-agents", message, locate.value((key,)), hint)
    return front


def _fold(data: dict[str, Any], locator: Locator, notes: Diagnostics) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys we know, in lower case, and how they are written.

    What isn't known belongs to another tool, unless it is a slip.
    """
    raw: dict[str, Any] = {}
    written: dict[str, str] = {}
    for key, value in data.items():
        folded = key.lower()
        at = locator.key((key,))
        if folded not in Frontmatter.model_fields:
            meant = near_miss(folded, Frontmatter.model_fields)
            if meant:
                notes.error("unknown-key", f"unknown key `{key}`", at, f"did you mean `{meant}`?")
                written.setdefault(meant, key)
            else:
                known = ", ".join(Frontmatter.model_fields)
                notes.warn("unknown-key", f"the key `{key}` means nothing here", at, f"known: {known}")
        elif folded in raw:
            notes.error("duplicate-key", f"`{key}` is given twice", at, "remove one of them")
        elif value is not None:
            raw[folded] = value
            written[folded] = key
        elif folded not in ("target", "assessor"):
            notes.error("empty", f"`{key}` is empty", at, "give it a value or leave the key out")
    return raw, written


def _check_parts(keys: set[str], opening: Place, context: LoadContext, notes: Diagnostics) -> None:
    if "target" not in keys and not context.agent and not context.spare_agent:
        notes.error("missing-target", "there is no `target`", opening, "add `target: agents/…`, or name an agent (-n)")
    if "assessor" not in keys and not context.assessor:
        message = "there is no `assessor`: the built-in one judges what has no exact meaning, on a model that you name"
        notes.warn("missing-assessor", message, opening, "add `assessor: agents/…`, or give --assessor")


def agent_file(path: str) -> str | None:
    """The file in the project's `agents/` that a path stands for; None for a path elsewhere."""
    if "\\" in path or ":" in path or "\0" in path:
        return None
    inside = posixpath.normpath(path.strip().lstrip("/"))
    if not inside.startswith("agents/"):
        return None
    return inside if inside.lower().endswith(".md") else f"{inside}.md"
