"""Which agents are meant: those of the suite, or those the command line names."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import Field

from atp.loader.diagnostics import Diagnostics
from atp.loader.shapes import Path as DataPath
from atp.loader.shapes import read
from atp.run.settings import find_config
from atp.run.source import CaseSource
from atp.suite.agent import (
    AGENTS,
    AnyAgent,
    CustomAgent,
    CustomConfig,
    HttpAgent,
    HttpConfig,
    PromptAgent,
    PromptConfig,
)
from atp.suite.near import near_miss
from atp.suite.record import Place, Record


class NamedAgent:
    """An agent, and the folder that relative paths of its configuration start from."""

    def __init__(self, agent: AnyAgent, base: Path, ad_hoc: bool = False) -> None:
        self.agent = agent
        self.base = base
        self.ad_hoc = ad_hoc


def resolve_agents(source: CaseSource, names: Iterable[str], root: Path, notes: Diagnostics) -> list[NamedAgent]:
    """The agents that a suite's cases run against."""
    suite, names = source.suite, list(dict.fromkeys(names))
    own = {agent.name: agent for agent in suite.agents}
    if not names:
        found = [NamedAgent(agent, source.folder) for agent in suite.agents] or _implied(source, root)
        if not found:
            notes.error("no-agent", f"{suite.path or suite.name}: no agent to test", hint="name one with -n")
        return found
    chosen: list[NamedAgent] = []
    for name in names:
        if name in own:
            chosen.append(NamedAgent(own[name], source.folder))
        elif (agent := _ad_hoc(name, root, own, notes)) is not None:
            chosen.append(agent)
    return chosen


def _implied(source: CaseSource, root: Path) -> list[NamedAgent]:
    """The Markdown `target`, or the agent in whose folder the file stands (document 4)."""
    target = source.suite.target
    if target is not None:
        path = root / _md(target.lstrip("/"))
        return [NamedAgent(_prompt(_stem(target), path), root)]
    for folder in [source.folder, *source.folder.parents]:
        if (folder / "package.yao").is_file():
            return [NamedAgent(_prompt(folder.name, folder), folder)]
    return []


def _md(path: str) -> str:
    return path if path.endswith(".md") else f"{path}.md"


def _stem(path: str) -> str:
    return path.strip("/").removeprefix("agents/").removesuffix(".md").replace("/", ".")


def _prompt(name: str, path: Path) -> PromptAgent:
    return PromptAgent(name=name, type="prompt", config=PromptConfig(path=str(path)))


def _ad_hoc(name: str, root: Path, own: Iterable[str], notes: Diagnostics) -> NamedAgent | None:
    here = Path.cwd()
    if name.startswith(("http://", "https://")):
        return NamedAgent(HttpAgent(name=name, type="http", config=HttpConfig(endpoint=name)), here, ad_hoc=True)
    if name.endswith(".md"):
        path = next((one for one in (here / name, root / name.lstrip("/")) if one.is_file()), None)
        if path is None:
            notes.error("no-such-agent", f"the agent file {name} is not there", hint="check the path")
            return None
        return NamedAgent(_prompt(_stem(os.path.relpath(path, root)), path), root, ad_hoc=True)
    if ":" in name:
        return NamedAgent(CustomAgent(name=name, type="custom", config=CustomConfig(entry=name)), here, ad_hoc=True)
    return _by_id(name, root, own, notes)


def _by_id(name: str, root: Path, own: Iterable[str], notes: Diagnostics) -> NamedAgent | None:
    """An id `a.b`: an agent in the project's settings, below `assistants/`, or below `agents/`."""
    found: list[NamedAgent] = []
    configured = _configured(root, notes)
    if name in configured:
        found.append(NamedAgent(configured[name], root, ad_hoc=True))
    parts = name.removeprefix("assistants.").split(".")
    folder = root.joinpath("assistants", *parts)
    if (folder / "package.yao").is_file():
        found.append(NamedAgent(_prompt(name, folder), folder, ad_hoc=True))
    file = root.joinpath("agents", *parts).with_name(f"{parts[-1]}.md")
    if file.is_file():
        found.append(NamedAgent(_prompt(name, file), root, ad_hoc=True))
    if len(found) == 1:
        return found[0]
    if found:
        notes.error("ambiguous-agent", f"{len(found)} agents are called `{name}`", hint="name its file instead")
        return None
    known = [*own, *configured]
    meant = near_miss(name, known)
    hint = f"did you mean `{meant}`?" if meant else "use a name of the suite, module:function, a URL, or an id"
    notes.error("no-such-agent", f"there is no agent `{name}`", hint=hint)
    return None


class _Agents(Record):
    agents: list[AnyAgent] = Field(default_factory=list)


AGENTS.on_change(lambda: _Agents.model_rebuild(force=True))


def _configured(root: Path, notes: Diagnostics) -> dict[str, AnyAgent]:
    """The agents of the project's settings: `[agents.NAME]` with `type` and `config`."""
    config = find_config(root)
    tables = config[1].get("agents") if config else None
    if config is None or not isinstance(tables, dict):
        return {}
    listed = [{"name": name, **_table(about)} for name, about in tables.items()]
    said = Diagnostics(str(config[0]))
    made = read(_Agents, {"agents": listed}, said, _Nowhere())
    notes.extend(said)
    return {agent.name: agent for agent in made.agents} if made else {}


def _table(about: Any) -> dict[str, Any]:
    return about if isinstance(about, dict) else {"type": about}


class _Nowhere:
    def key(self, path: DataPath) -> Place:
        return Place(1, 1)

    value = key
