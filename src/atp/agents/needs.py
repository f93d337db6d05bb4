"""What each kind of agent needs beside ATP itself, and whether that is here."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from atp.agents.adapter import Finding
from atp.suite.agent import AGENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of agent that can be written in a suite."""

    name: str
    """Its `type`."""
    about: str
    """What it is, in a line."""
    source: str
    """`atp`, or the distribution whose plugin it is."""
    needs: list[Finding]
    """What it needs, and whether that is here."""


async def kinds(environment: Mapping[str, str]) -> list[Kind]:
    """All kinds, ours and those of plugins. A plugin that can't be loaded is one, too, with the reason."""
    ours = list(AGENTS.shapes)
    found = [Kind(name=name, about=_about(name), source="atp", needs=await _needs(name, environment)) for name in ours]
    for entry in sorted(metadata.entry_points(group=AGENTS.group)):
        known = set(AGENTS.shapes)
        source = entry.dist.name if entry.dist is not None else entry.value
        try:
            entry.load()
        except Exception as error:
            why = f"{entry.value} can't be loaded: {type(error).__name__}: {error}"
            needs = [Finding(what="plugin", ok=False, detail=why, hint=f"see to the package {source}")]
            found.append(Kind(name=entry.name, about="", source=source, needs=needs))
            continue
        new = [name for name in AGENTS.shapes if name not in known]
        found += [Kind(name=name, about=_about(name), source=source, needs=[]) for name in new]
    return found


def _about(name: str) -> str:
    return (inspect.getdoc(AGENTS.shapes[name]) or "").partition("\n")[0]


async def _needs(name: str, environment: Mapping[str, str]) -> list[Finding]:
    match name:
        case "docker":
            package = _package("aiodocker", "pip install 'agent-test-platform[docker]'")
            if not package.ok:
                return [package]
            from atp.agents.docker.engine import check_engine

            return [package, await check_engine(environment)]
        case "langgraph" | "crewai":
            return [_package(name, f"pip install {name}, here or in the environment that `python` names")]
        case "prompt":
            mcp = _package("mcp", "pip install 'agent-test-platform[mcp]', if its tools are to be MCP servers", 2)
            return [Finding(what="model", ok=True, detail="a connector: see `atp models`"), mcp]
    return []


def _package(name: str, how: str, least: int = 0) -> Finding:
    """Whether a package is installed, in a version that will do."""
    what = f"package {name}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(what=what, ok=False, detail="not installed", hint=how)
    major = re.match(r"\d+", version)
    if major is not None and int(major[0]) < least:
        return Finding(what=what, ok=False, detail=f"{version} is installed, and {least} or newer is needed", hint=how)
    return Finding(what=what, ok=True, detail=version)
