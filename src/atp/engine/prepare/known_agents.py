"""The agents that a project has: in its settings, in `agents/*.md` and in `assistants/*/package.yao`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atp.base.diagnostics import Diagnostic, Diagnostics, has_errors
from atp.base.errors import ConfigurationError
from atp.engine.prepare.agents import Project, find_agent
from atp.engine.prepare.settings import find_config
from atp.suite.agent import PromptConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAgent:
    """An agent that `-n` could name."""

    name: str
    """Its id."""
    type: str
    """Its kind."""
    place: str
    """The file that describes it, relative to the root."""
    description: str | None = None
    """What it is for, if that is said."""


def known_agents(project: Project) -> tuple[list[KnownAgent], list[Diagnostic]]:
    """All agents of a project, and what is wrong with those that can't be used. Raises `LoadError`."""
    found: list[KnownAgent] = []
    notes = Diagnostics()
    for name, place in _named(project.root):
        said = Diagnostics(place)
        named = find_agent(name, None, project, said)
        if named is not None and isinstance(named.agent.config, PromptConfig):
            _check_files(name, project.root / named.agent.config.path, project, said)
        notes.extend(said)
        if named is not None and not has_errors(said):
            agent = named.agent
            found.append(KnownAgent(name=name, type=agent.type, place=place, description=agent.description))
    return found, list(dict.fromkeys(notes))


def _check_files(name: str, path: Path, project: Project, notes: Diagnostics) -> None:
    """Read what a prompt is made of, which only its adapter does otherwise."""
    from atp.agents.prompt.file import read_prompt_file
    from atp.agents.prompt.package import read_package
    from atp.agents.prompt.reading import Reading

    reading = Reading(project.root, project.environment)
    try:
        (read_package if path.is_dir() else read_prompt_file)(path, reading)
        reading.check()
    except ConfigurationError as error:
        notes.error("agent-configuration", f"agent `{name}`: {error}", hint=error.hint)


def _named(root: Path) -> Iterator[tuple[str, str]]:
    """Ids, each with the file that it comes from."""
    config = find_config(root)
    tables = config[1].get("agents") if config else None
    if config is not None and isinstance(tables, dict):
        for name in tables:
            yield name, config[0].name
    for path in sorted((root / "agents").rglob("*.md")):
        if not path.name.endswith(".test.md"):
            yield _id(path.relative_to(root / "agents").with_suffix("")), path.relative_to(root).as_posix()
    for path in sorted((root / "assistants").rglob("package.yao")):
        yield _id(path.parent.relative_to(root / "assistants")), path.relative_to(root).as_posix()


def _id(path: Path) -> str:
    return ".".join(path.parts)
