"""Agents in folders: `package.yao` (JSON with comments) is the head, `prompts.yml` has the prompts."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.head import PromptHead, Wrapped, Written, read_head
from atp.agents.prompt.variables import check_variables, fill
from atp.base.diagnostics import Diagnostics
from atp.base.json.comments import without_comments
from atp.base.near import near_miss
from atp.loader.jsonl.nodes import JsonLocator, parse_json
from atp.loader.source import place_of
from atp.loader.validate import Locator, validate
from atp.loader.yaml.nodes import parse_yaml
from atp.suite.agent import AGENTS
from atp.suite.record import Record, Text

PACKAGE = "package.yao"
PROMPTS = ("prompts.yml", "prompts.yaml")
OTHERS_KEYS = frozenset({"mode", "modes"})
"""Keys of other tools that look like misspelt keys of ours."""
NOT_DONE = frozenset({"db", "hooks", "kb", "sandbox", "search", "uses", "workflow"})
"""Keys of other tools that change the agent, and have no effect in ATP."""
NOT_DONE_FILES = ("src/index.ts", "src/index.js", "sandbox.yao")
"""Files of other tools that change the agent: code around the model, and a container in which another agent works."""


class _Prompt(Record):
    """A message before each conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Text
    name: Text | None = None


class _Prompts(Record):
    prompts: list[_Prompt] = Field(default_factory=list)


def read_package(folder: Path, files: AgentFiles) -> Written:
    """Read a package. Mistakes are added to `files`."""
    path = folder / PACKAGE
    head, locate = _read_head(path, files)
    return Written(path=path, head=head, prompts=_read_prompts(folder, files), locate=locate)


def _read_head(path: Path, files: AgentFiles) -> tuple[PromptHead, Locator | None]:
    text = files.read(path)
    notes = files.notes(path)
    parsed = None if text is None else parse_json(without_comments(text), notes)
    if parsed is None:
        return PromptHead(), None
    data, locate = parsed
    if not isinstance(data, dict):
        notes.error("wrong-type", "a package must be an object", locate.value(()), 'begin with {"name": "…"}')
        return PromptHead(), locate
    for name in NOT_DONE_FILES:
        if (path.parent / name).is_file():
            notes.warn("no-effect", f"{name} has no effect here: only the prompts, the model and the tools are tested")
    own = _known_keys(data, notes, locate)
    kind = own.pop("type", None)  # Yao's own kind of agent
    if kind in AGENTS.names and kind != "prompt":
        hint = f"describe an agent of type `{kind}` in `agents/x.md`, in the project's settings or in the suite"
        notes.error("wrong-kind", f"a package is a prompt, not of type `{kind}`", locate.value(("type",)), hint)
    _fill_connector(own, files, notes, locate)
    return read_head(own, notes, locate), locate


def _known_keys(data: dict[str, Any], notes: Diagnostics, locate: JsonLocator) -> dict[str, Any]:
    """Return the keys that ATP reads, without those that are null."""
    own: dict[str, Any] = {}
    known = {*PromptHead.model_fields, "model", "settings"} - {"config", "matrix"}
    for key, value in data.items():
        if key in known:
            if value is not None:
                own[key] = value
        elif key == "prompts":
            hint = f"put the prompts into {PROMPTS[0]}"
            notes.error("unknown-key", "`prompts` is not read from a package", locate.key((key,)), hint)
        elif key == "matrix":
            hint = "give it to an agent of a suite or of `atp.toml` that is of type `prompt` and has this path"
            notes.error("unknown-key", "`matrix` is not read from a package", locate.key((key,)), hint)
        elif key in NOT_DONE:
            message = f"`{key}` has no effect here: only the prompts, the model and the tools are tested"
            notes.warn("no-effect", message, locate.key((key,)))
        elif key not in OTHERS_KEYS and (meant := near_miss(key, known)):
            notes.error("unknown-key", f"unknown key `{key}`", locate.key((key,)), f"did you mean `{meant}`?")
    return own


def _fill_connector(own: dict[str, Any], files: AgentFiles, notes: Diagnostics, locate: JsonLocator) -> None:
    for key in ("connector", "model"):
        text = own.get(key)
        if isinstance(text, str) and text.startswith("use::"):  # Yao's word for a default that is set elsewhere
            del own[key]
        elif isinstance(text, str) and "$ENV." in text:
            before = len(notes)
            check_variables(text, files.variables, notes, lambda _, key=key: locate.value((key,)))  # type: ignore[misc]
            own[key] = fill(text, files.variables, {}) if len(notes) == before else text


def _read_prompts(folder: Path, files: AgentFiles) -> list[dict[str, str]]:
    there = [path for name in PROMPTS if (path := folder / name).exists()]
    if len(there) != 1:
        message = f"there is no {PROMPTS[0]} beside it" if not there else f"{' and '.join(PROMPTS)} are both there"
        hint = "write one; `[]` if there is nothing to say before a conversation" if not there else "remove one"
        files.notes(folder / PACKAGE).error("no-such-file" if not there else "given-twice", message, hint=hint)
        return []
    path = there[0]
    text = files.read(path)
    notes = files.notes(path)
    parsed = None if text is None else parse_yaml(text, notes)
    if text is None or parsed is None:
        return []
    if not isinstance(parsed.data, list):
        hint = "write `- role: system`, and `content: …` below it"
        notes.error("wrong-type", "prompts must be a list of messages", parsed.locator.value(()), hint)
        return []
    made = validate(_Prompts, {"prompts": parsed.data}, notes, Wrapped(parsed.locator, 1)) or _Prompts()
    for prompt in made.prompts:
        check_variables(prompt.content, files.variables, notes, lambda use: place_of(text, text.find(use)))
    return [prompt.model_dump(exclude_none=True) for prompt in made.prompts]
