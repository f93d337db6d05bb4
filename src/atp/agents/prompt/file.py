"""Agents in Markdown files: the frontmatter is the head, the body is the system prompt."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from atp.agents.agent_files import AgentFiles
from atp.agents.prompt.head import PromptHead, Wrapped, Written, read_head
from atp.agents.prompt.links import Links, cut_head
from atp.agents.prompt.variables import check_variables
from atp.base.diagnostics import Diagnostics, Place
from atp.base.errors import ConfigurationError
from atp.loader.error_messages import unknown_key
from atp.loader.markdown.frontmatter import Head
from atp.loader.matrix import validate_agents
from atp.loader.source import place_of
from atp.loader.variables import fill_variables
from atp.loader.yaml.nodes import Parsed, parse_yaml
from atp.suite.agent import Agent, AgentList, PromptConfig

_OF_HEAD = ("connector", "model", "temperature", "max_tokens")
"""Settings of the model that have keys of their own in the frontmatter."""
_OF_OTHER_KINDS = frozenset(
    {"endpoint", "entry", "command", "image", "build", "graph_path", "crew_path", "module", "path"}
)
"""Keys by which the configuration of another kind of agent is told from settings of a model."""
_OTHER_KINDS = ("type", "config", "name", "description", "matrix")
"""The keys in the frontmatter of an agent of another kind."""


def read_prompt_file(path: Path, files: AgentFiles) -> Written:
    """Read the file of a prompt agent. Mistakes are added to `files`."""
    text = files.read(path)
    if text is None:
        return Written(path=path, head=PromptHead())
    if not text.strip():
        files.notes(path).error("empty", "there is nothing in this file", hint="write the agent's prompt")
    parts = cut_head(text, files, path)
    parsed = _frontmatter(path, parts, files)
    head = PromptHead() if parsed is None else _read_head(parsed, files.notes(path))
    check = partial(_check_body, files)
    check(path, parts)
    body = Links(files, check).expand(path, parts).strip()
    prompts = [{"role": "system", "content": body}] if body else []
    return Written(path=path, head=head, prompts=prompts, locate=parsed.locator if parsed is not None else None)


def agent_of_file(
    path: Path, name: str, root: Path, environment: Mapping[str, str] | None = None, secrets: set[str] | None = None
) -> Agent:
    """Return the agent that a Markdown file describes: a prompt, or an agent of the kind in `type` and `config`.

    Paths in the configuration start at the file's folder. Values that no output may show are added to `secrets`.
    Mistakes in a prompt are reported by its adapter. Raises `ConfigurationError` for mistakes in other kinds.
    """
    path = path.resolve()
    files = AgentFiles(root, os.environ if environment is None else environment)
    text = files.read(path)
    parsed = None if text is None else _frontmatter(path, cut_head(text, files, path), files)
    data = parsed.data if parsed is not None and isinstance(parsed.data, dict) else {}
    if parsed is None or data.get("type") in (None, "prompt"):
        said = data.get("description")
        about = said if isinstance(said, str) else None
        if parsed is None or data.get("matrix") is None:
            return Agent(name=name, type="prompt", description=about, config=PromptConfig(path=str(path)))
        data = {"type": "prompt", "description": about, "config": {"path": str(path)}, "matrix": data["matrix"]}
    notes = files.notes(path)
    for key in data.keys() - set(_OTHER_KINDS):
        mistake = unknown_key(key, _OTHER_KINDS)
        hint = mistake.hint if mistake.meant else f"an agent of type `{data['type']}` takes all else in `config`"
        notes.error(mistake.code, mistake.message, parsed.locator.key((key,)), hint)
    raw = {"config": {}, **{key: value for key, value in data.items() if key in _OTHER_KINDS}, "name": name}
    made = validate_agents(AgentList, {"agents": [raw]}, notes, Wrapped(parsed.locator, 2))
    files.check()
    if secrets is not None:
        secrets.update(files.secrets)
    if made is None or not made.agents:
        raise ConfigurationError(f"{files.name(path)}: the file describes no agent")
    return made.agents[0]


def _frontmatter(path: Path, parts: Head, files: AgentFiles) -> Parsed | None:
    """Return the frontmatter with its variables (`${NAME}`) replaced; None without frontmatter."""
    if parts.yaml is None or all(not line.strip() or line.lstrip()[0] == "#" for line in parts.yaml.split("\n")):
        return None
    notes = files.notes(path)
    parsed = parse_yaml(parts.yaml, notes, parts.yaml_line)
    if parsed is not None:
        fill_variables(parsed, parts.yaml, files.variables, notes)
    return parsed


def _read_head(parsed: Parsed, notes: Diagnostics) -> PromptHead:
    if not isinstance(parsed.data, dict):
        at = parsed.locator.value(())
        notes.error("wrong-type", "the frontmatter must be a mapping", at, "write `description: …`, or leave it out")
        return PromptHead()
    head = read_head(_with_settings(parsed, notes), notes, parsed.locator)
    if head.type not in (None, "prompt"):
        at = parsed.locator.value(("type",))
        notes.error("wrong-kind", f"this file describes an agent of type `{head.type}`, not a prompt", at)
    return head


def _with_settings(parsed: Parsed, notes: Diagnostics) -> dict[str, Any]:
    """Return the frontmatter of a prompt, with the settings of its model that other tools write into `config`."""
    data: dict[str, Any] = {key: value for key, value in parsed.data.items() if key != "config"}
    config = parsed.data.get("config")
    if config is None:
        return data
    at = parsed.locator.key(("config",))
    if not isinstance(config, dict) or not _OF_OTHER_KINDS.isdisjoint(config):
        hint = "give `type` too, or write its keys without `config`"
        notes.error("wrong-kind", "`config` belongs to an agent of another type", at, hint)
        return data
    options = next((key for key in ("options", "settings") if isinstance(data.get(key), dict)), "options")
    for key, value in config.items():
        place = data if key in _OF_HEAD else data.setdefault(options, {})
        if key in place:
            where = parsed.locator.key(("config", key))
            notes.error("given-twice", f"`{key}` is given twice, also in `config`", where, "give it once")
        place.setdefault(key, value)
    return data


def _check_body(files: AgentFiles, path: Path, parts: Head) -> None:
    def at(written: str) -> Place:
        return place_of(parts.body, parts.body.find(written), parts.body_line)

    check_variables(parts.body, files.variables, files.notes(path), at)
