"""Resolves the agents to test: those of the suite, those that the command line names, those of the project."""

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from atp.base.diagnostics import Diagnostic, Diagnostics, Place, has_errors
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.base.project import working_directory
from atp.engine.case_source import CaseSource
from atp.engine.named_agent import NamedAgent
from atp.engine.prepare.options import Options
from atp.engine.prepare.settings import find_config, table_offset
from atp.loader.validate import NoLocator
from atp.loader.variables import fill_table
from atp.suite.agent import (
    Agent,
    AgentList,
    AnyAgent,
    CustomConfig,
    HttpConfig,
    PromptConfig,
)

_URLS = ("http://", "https://")
MOST_LISTED = 20
"""The most functions of a file that a hint lists."""
_HOW = "use a name of the suite, module:function, a URL, or an id"


_NOWHERE = Place()
"""The place of an agent that no suite describes or names."""


class Project(NamedTuple):
    """The folder in which agents are looked for, and the variables that their files may use."""

    root: Path
    environment: Mapping[str, str]


def resolve_agents(source: CaseSource, options: Options, project: Project, notes: Diagnostics) -> list[NamedAgent]:
    """Return the agents of a suite: those of `-n`, else its own, else those of the environment or `atp.toml`.

    Where none is named, the agent is the one whose folder contains the file, as in the JSONL test package. An agent
    with a `matrix`, or with several connectors, is returned as its columns.
    """
    suite = source.suite
    own = {agent.name: agent for agent in suite.agents}

    def columns(agents: Iterable[NamedAgent]) -> list[NamedAgent]:
        found = list(agents)
        if not options.connector and all(one.agent.matrix is None for one in found):
            return found
        from atp.engine.prepare.columns import all_columns  # imported late: only some runs need it

        return all_columns(found, options, notes, suite.path)

    if not options.given("name") or not options.name:
        if suite.agents:
            return columns(NamedAgent(agent, source.folder) for agent in suite.agents)
        if suite.target is not None:
            said = Diagnostics(suite.path)
            path = project.root / _md(suite.target.lstrip("/"))
            target = _in_file(_stem(suite.target), path, project, said, place=suite.target_place)
            notes.extend(said)
            return [] if target is None else columns([target])
    if not options.name:
        found = _around(source, project)
        if not found:
            notes.error("no-agent", f"{suite.path or suite.name}: no agent to test", hint=NAME_ONE)
        return columns(found)
    chosen: dict[str, NamedAgent] = {}
    for name in dict.fromkeys(options.name):
        column = None if name in own else _one_column(name, source, options, project, notes)
        if column is not None:
            chosen.update({one.agent.name: one for one in column})
        elif (agent := _named_by_flag(name, source, project, notes)) is not None:
            chosen.update({one.agent.name: one for one in columns([agent])})
    return list(chosen.values())


def _named_by_flag(name: str, source: CaseSource, project: Project, notes: Diagnostics) -> NamedAgent | None:
    own = {agent.name: agent for agent in source.suite.agents}
    return NamedAgent(own[name], source.folder) if name in own else _ad_hoc(name, project, own, notes)


def _one_column(
    name: str, source: CaseSource, options: Options, project: Project, notes: Diagnostics
) -> list[NamedAgent] | None:
    """Return the column that `-n "agent [what it differs in]"` names; None if the name is not of that form.

    A name that leaves out the last differences names all columns that begin like it.
    """
    from atp.engine.prepare.columns import columns_of, no_such_column, split_column

    for group in split_column(name):
        agent = _named_by_flag(group, source, project, unfound := Diagnostics())
        if agent is None or has_errors(unfound):
            continue
        known = columns_of(agent, options, notes, source.suite.path)
        wanted = agent.agent.name + name[len(group) :]  # an agent in a file may be spelled as its path
        found = [one for one in known if one.agent.name == wanted]
        found = found or [one for one in known if one.agent.name.startswith(f"{wanted[:-1]}, ")]
        if not found and known:
            no_such_column(name, known, notes)
        return found
    return None


def agent_tools(source: CaseSource, options: Options, project: Project) -> frozenset[str]:
    """Return the names of the tools of a suite's agents, as far as files name them: those of prompts do.

    Mistakes in the files are reported by who makes the agents.
    """
    found: set[str] = set()
    for named in resolve_agents(source, options, project, Diagnostics()):
        if isinstance(named.agent.config, PromptConfig):
            from atp.agents.agent_files import AgentFiles
            from atp.agents.prompt.read import find_prompt, read_prompt

            with suppress(ConfigurationError, OSError):
                path = find_prompt(named.agent.config.path, named.base, project.root)
                found.update(read_prompt(path, AgentFiles(project.root, project.environment)).head.tool_names)
    return frozenset(found)


def find_agent(name: str, source: CaseSource | None, project: Project, notes: Diagnostics) -> NamedAgent | None:
    """Return one agent, for a role, a tool or a test in Python: one of the suite, or any that `-n` can name.

    Of an agent with a `matrix`, the name has to say which column is meant.
    """
    from atp.engine.prepare.columns import columns_of, no_such_column, split_column

    for group in split_column(name):
        whole = _find_whole(group, source, project, Diagnostics())
        if whole is not None and whole.agent.matrix is not None:
            known = columns_of(whole, Options(), notes)
            wanted = whole.agent.name + name[len(group) :]
            found = next((one for one in known if one.agent.name == wanted), None)
            if found is None:
                no_such_column(name, known, notes)
            return found
    named = _find_whole(name, source, project, notes)
    if named is not None and named.agent.matrix is not None:
        columns = ", ".join(f"`{one.agent.name}`" for one in columns_of(named, Options(), notes)[:5])
        notes.error("ambiguous-agent", f"`{name}` is several agents, by its `matrix`", hint=f"name one: {columns}")
        return None
    return named


def _find_whole(name: str, source: CaseSource | None, project: Project, notes: Diagnostics) -> NamedAgent | None:
    own = {agent.name: agent for agent in source.suite.agents} if source is not None else {}
    if source is not None and name in own:
        return NamedAgent(own[name], source.folder)
    bare = name.lstrip("/")
    if bare.startswith("agents/") and (path := project.root / _md(bare)).is_file():
        return _in_file(_stem(bare), path, project, notes)
    return _ad_hoc(name, project, own, notes)


def _around(source: CaseSource, project: Project) -> list[NamedAgent]:
    """Return the agent whose folder contains the file."""
    for folder in [source.folder, *source.folder.parents]:
        if (folder / "package.yao").is_file():
            return [NamedAgent(_prompt(_folder_id(folder, project.root), folder), folder)]
    return []


def _folder_id(folder: Path, root: Path) -> str:
    """Name the agent in a folder as `-n` does, by the way from the root: two folders may have the same last name."""
    for start in (root / "assistants", root):
        if folder.is_relative_to(start) and folder != start:
            return _id(folder.relative_to(start))
    return folder.name


def _md(path: str) -> str:
    return path if path.endswith(".md") else f"{path}.md"


def _stem(path: str) -> str:
    return path.strip("/").removeprefix("agents/").removesuffix(".md").replace("/", ".")


def _prompt(name: str, path: Path) -> Agent:
    return Agent(name=name, type="prompt", config=PromptConfig(path=str(path)))


def _in_file(
    name: str, path: Path, project: Project, notes: Diagnostics, *, ad_hoc: bool = False, place: Place = _NOWHERE
) -> NamedAgent | None:
    """Return the agent that a Markdown file describes: a prompt, or an agent of another kind.

    `place` is where the suite names the file.
    """
    if not path.is_file():
        missing = _prompt(name, path)
        missing.stands_at(place)
        return NamedAgent(missing, project.root, ad_hoc)  # its adapter reports the missing file
    from atp.agents.prompt.file import agent_of_file

    secrets: set[str] = set()
    try:
        agent = agent_of_file(path, name, project.root, project.environment, secrets)
    except ConfigurationError as error:
        notes.error("agent-configuration", f"agent `{name}`: {error}", place, error.hint)
        return None
    agent.stands_at(place)
    base = project.root if agent.type == "prompt" else path.parent
    return NamedAgent(agent, base, ad_hoc, frozenset(secrets))


def _ad_hoc(name: str, project: Project, own: Iterable[str], notes: Diagnostics) -> NamedAgent | None:
    here = working_directory()
    if name.startswith(_URLS) or (":" in name and not name.endswith(".md")):
        made = _described(name)
        if made is None:
            meant = re.sub(r":{2,}", ":", name)
            hint = _HOW if meant == name or name.startswith(_URLS) else f"write one colon: `{meant}`"
            notes.error("no-such-agent", f"`{name}` names no agent", hint=hint)
        return None if made is None else NamedAgent(made, here, ad_hoc=True)
    if name.endswith(".md"):
        path = next((one for one in (here / name, project.root / name.lstrip("/")) if one.is_file()), None)
        if path is None:
            notes.error("no-such-agent", f"the agent file {name} is not there", hint="check the path")
            return None
        return _in_file(_stem(os.path.relpath(path, project.root)), path, project, notes, ad_hoc=True)
    return _by_id(name, project, own, notes)


def _described(name: str) -> AnyAgent | None:
    """Return the agent for a URL or `module:function`; None if the text is incomplete."""
    try:
        if name.startswith(_URLS):
            return Agent(name=name, type="http", config=HttpConfig(endpoint=name))
        return Agent(name=name, type="custom", config=CustomConfig(entry=name))
    except ValidationError:
        return None


def _by_id(name: str, project: Project, own: Iterable[str], notes: Diagnostics) -> NamedAgent | None:
    """Return the agent with the id `a.b`: in the settings, below `assistants/`, or below `agents/`."""
    root, found = project.root, 0
    made: NamedAgent | None = None
    tables = _tables(root)
    if name in tables:
        found, made = found + 1, _configured(name, project, notes)
    parts = name.removeprefix("assistants.").split(".")
    folder, file = root.joinpath("assistants", *parts), root.joinpath("agents", *parts[:-1], f"{parts[-1]}.md")
    is_id = "/" not in name
    if is_id and (folder / "package.yao").is_file():
        found, made = found + 1, NamedAgent(_prompt(name, folder), folder, ad_hoc=True)
    if is_id and file.is_file():
        found, made = found + 1, _in_file(name, file, project, notes, ad_hoc=True)
    if found > 1:
        notes.error("ambiguous-agent", f"{found} agents have the id `{name}`", hint="name the file of one instead")
        return None
    if not found:
        meant = near_miss(name, [*own, *tables])
        functions = _functions_in(name, (working_directory(), root))
        if meant is None and functions:
            meant = f"{name}:{functions[0]}"
        elif meant is None and (root / _md(name)).is_file():
            meant = _md(name)
        hint = f"did you mean `{meant}`?" if meant else _HOW
        if len(functions) > 1:
            hint = f"{hint} Functions of the file: {', '.join(functions[:MOST_LISTED])}"
        notes.error("no-such-agent", f"there is no agent `{name}`", hint=hint)
    return made


def _tables(root: Path) -> dict[str, Any]:
    """Return the tables `[agents.NAME]` of the settings file, by name."""
    config = find_config(root)
    tables = config[1].get("agents") if config else None
    return tables if isinstance(tables, dict) else {}


def _configured(wanted: str, project: Project, notes: Diagnostics) -> NamedAgent | None:
    """Return an agent of the settings file: `[agents.NAME]` with `type` and `config`. Mistakes in others are reported.

    The others may have variables that are not set, since they are not used.
    """
    config = find_config(project.root)
    assert config is not None, "its tables have been read"
    path, data, text = config
    said = Diagnostics(str(path))
    listed = []
    for name, about in sorted(data["agents"].items(), key=lambda item: item[0] != wanted):
        table = {"name": name, **_table(about)}
        of_agent = said if name == wanted else Diagnostics(str(path))
        fill_table(table, text, table_offset(text, name), project.environment, of_agent)
        if name == wanted or not has_errors(of_agent):
            listed.append(table)
    from atp.loader.matrix import validate_agents

    made = validate_agents(AgentList, {"agents": listed}, said, NoLocator())
    notes.extend(said)
    if made is None or has_errors(said):
        return None
    return NamedAgent(made.agents[0], project.root, ad_hoc=True, secrets=frozenset(said.secrets))


def _table(about: Any) -> dict[str, Any]:
    return about if isinstance(about, dict) else {"type": about}


NAME_ONE = "name one with -n (`-n my_agent.py:answer`, `-n http://…`, an agent's id), or as `name` in atp.toml"


def _functions_in(name: str, folders: Sequence[Path]) -> list[str]:
    """The functions of a Python file that could be agents; none if the name is not that of a file."""
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if not name.endswith(".py") or path is None:
        return []
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError):
        return []  # reported once a function of the file is named
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in found if not node.name.startswith("_") and _takes_something(node)]


def _takes_something(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = node.args
    return bool(given.posonlyargs or given.args or given.vararg)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent that `-n` can name."""

    name: str
    """The id of the agent."""
    type: str
    """The kind of the agent."""
    place: str
    """The file that describes the agent, relative to the root."""
    description: str | None = None
    """The purpose of the agent, if the file gives one."""
    columns: list[str] = field(default_factory=list)
    """The names of the agents that its `matrix` makes of it."""


def known_agents(project: Project) -> tuple[list[KnownAgent], list[Diagnostic]]:
    """Return all agents of a project, and the mistakes in those that can't be used. Raises `LoadError`."""
    from atp.engine.prepare.columns import columns_of

    found: list[KnownAgent] = []
    notes = Diagnostics()
    for name, place in _named(project.root):
        said = Diagnostics(place)
        named = _find_whole(name, None, project, said)
        if named is not None and isinstance(named.agent.config, PromptConfig):
            _check_files(name, project.root / named.agent.config.path, project, said)
        notes.extend(said)
        if named is not None and not has_errors(said):
            agent = named.agent
            columns = [one.agent.name for one in columns_of(named, Options(), notes)] if agent.matrix else []
            about = KnownAgent(name=name, type=agent.type, place=place, description=agent.description, columns=columns)
            found.append(about)
    return found, list(dict.fromkeys(notes))


def _check_files(name: str, path: Path, project: Project, notes: Diagnostics) -> None:
    """Read the files of a prompt agent, which otherwise only its adapter does."""
    from atp.agents.agent_files import AgentFiles
    from atp.agents.prompt.read import read_prompt

    files = AgentFiles(project.root, project.environment)
    try:
        read_prompt(path, files)
        files.check()
    except ConfigurationError as error:
        notes.error("agent-configuration", f"agent `{name}`: {error}", hint=error.hint)


def _named(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each id with the file that it comes from."""
    config = find_config(root)
    for name in _tables(root):
        yield name, config[0].name if config else ""
    for path in sorted((root / "agents").rglob("*.md")):
        if not path.name.endswith(".test.md"):
            yield _id(path.relative_to(root / "agents").with_suffix("")), path.relative_to(root).as_posix()
    for path in sorted((root / "assistants").rglob("package.yao")):
        yield _id(path.parent.relative_to(root / "assistants")), path.relative_to(root).as_posix()


def _id(path: Path) -> str:
    return ".".join(path.parts)
