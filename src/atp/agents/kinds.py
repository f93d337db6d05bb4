"""The kinds of agents, and what each needs beside ATP: the list of `atp agents`."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

from atp.agents.adapter import Finding
from atp.base.errors import install_extra
from atp.suite.agent import AGENTS, CONFIGURATIONS, agent_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of agent."""

    name: str
    """The `type` in a suite."""
    about: str
    """A description of one line."""
    source: str
    """`atp`, or the distribution of the plugin."""
    needs: list[Finding]
    """What the kind needs, and whether it is installed."""


async def kinds(environment: Mapping[str, str]) -> list[Kind]:
    """Return all kinds, those of plugins included. A plugin that can't be loaded is listed with the reason."""
    AGENTS.discover()
    found = []
    for name in AGENTS.names:
        source = AGENTS.packages.get(name, "atp")
        needs = await _needs(name, environment) if name in CONFIGURATIONS else []
        about = inspect.getdoc(agent_record(name)) or ""
        found.append(Kind(name=name, about=about.partition("\n")[0], source=source, needs=needs))
    for broken in AGENTS.broken:
        hint = f"fix the package {broken.package}, or uninstall it"
        need = Finding(what="plugin", ok=False, detail=f"it can't be loaded: {broken.reason}", hint=hint)
        found.append(Kind(name=broken.name, about="", source=broken.package, needs=[need]))
    return found


async def _needs(name: str, environment: Mapping[str, str]) -> list[Finding]:
    match name:
        case "docker":
            package = _package("aiodocker", install_extra("docker"))
            if not package.ok:
                return [package]
            from atp.agents.docker.engine import check_engine

            return [package, await check_engine(environment)]
        case "langgraph" | "crewai":
            return [_package(name, f"pip install {name}, here or in the environment that `python` names")]
        case "prompt":
            mcp = _package("mcp", f"{install_extra('mcp')}, if its tools are to be MCP servers", 2)
            return [Finding(what="model", ok=True, detail="a connector: see `atp models`"), mcp]
    return []


def _package(name: str, how: str, least: int = 0) -> Finding:
    """Look whether a package is installed, in a version from `least` on."""
    what = f"package {name}"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding(what=what, ok=False, detail="not installed", hint=how)
    major = re.match(r"\d+", version)
    if major is not None and int(major[0]) < least:
        return Finding(what=what, ok=False, detail=f"{version} is installed, and {least} or newer is needed", hint=how)
    return Finding(what=what, ok=True, detail=version)
