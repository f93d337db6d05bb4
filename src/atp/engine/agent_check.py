"""Contacts the agents of suites without running a test: what works, what doesn't, and how to fix it."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from atp.agents.adapter import Adapter, AgentError, Finding
from atp.base.diagnostics import Diagnostics, LoadError, has_errors
from atp.base.errors import ConfigurationError
from atp.base.secrets import masking
from atp.engine.named_agent import NamedAgent
from atp.engine.prepare.agents import Project, resolve_agents
from atp.engine.prepare.sources import Input, load_context, open_input
from atp.engine.run_context import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The findings about one agent."""

    name: str
    """What the suite calls it."""
    type: str
    """Its kind."""
    findings: list[Finding]
    """What was checked."""

    @property
    def ok(self) -> bool:
        """True if a run could start with the agent."""
        return all(one.ok for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The findings as JSON values."""
        found = [one.as_dict() for one in self.findings]
        return {"name": self.name, "type": self.type, "ok": self.ok, "findings": found}


class AgentCheck:
    """The agents of some suites, resolved but not yet contacted."""

    def __init__(self, paths: tuple[str, ...], flags: Mapping[str, Any]) -> None:
        """Raises `LoadError` when a suite can't be read, or has no agent."""
        given_input = Input((), paths)
        self._context = context = RunContext.of_project(given_input.anchor, flags)
        with masking(context.secrets):
            self._agents = _agents_of(given_input, context)
            self._services = context.services

    async def run(self, seconds: float) -> list[Checked]:
        """Contact all agents at the same time, each for `seconds` at most, and close them."""
        async with self._context.opened():
            return list(await asyncio.gather(*(self._check(one, seconds) for one in self._agents.values())))

    async def _check(self, named: NamedAgent, seconds: float) -> Checked:
        try:
            adapter = self._services.adapter(named)
        except ConfigurationError as error:
            found = [Finding(what="configuration", ok=False, detail=str(error), hint=error.hint)]
            return self._checked(named, found)
        warned = [
            Finding(what="warning", ok=True, detail=f"{one.file}:{one.line}: {one.message}", hint=one.hint)
            for one in adapter.warnings
        ]
        return self._checked(named, [*await _findings(adapter, seconds), *warned])

    def _checked(self, named: NamedAgent, findings: Iterable[Finding]) -> Checked:
        hide = self._context.secrets.mask_text
        shown = [
            Finding(what=one.what, ok=one.ok, detail=hide(one.detail), hint=one.hint and hide(one.hint))
            for one in findings
        ]
        return Checked(name=named.agent.name, type=named.agent.type, findings=shown)


def _agents_of(given_input: Input, context: RunContext) -> dict[tuple[str, str], NamedAgent]:
    """The agents that some suites name. Raises `LoadError`."""
    options, notes, agents = context.options, Diagnostics(), dict[tuple[str, str], NamedAgent]()
    given = replace(load_context(options, context.env), simulator=True, assessor=True)
    sources, _ = open_input(given_input, given, lambda _: True)
    project = Project(context.root, context.env)
    for source in sources:
        for named in resolve_agents(source, options, project, notes):
            agents[str(named.base), named.agent.model_dump_json()] = named
    if has_errors(notes):
        raise LoadError(notes)
    for source in sources:
        context.secrets.add(source.suite.secrets)
    return agents


async def _findings(adapter: Adapter, seconds: float) -> list[Finding]:
    """What an adapter's own check finds. An error or a timeout of the check is a finding, too."""
    try:
        async with asyncio.timeout(seconds):
            return await adapter.check()
    except TimeoutError:
        return [Finding(what="check", ok=False, detail=f"it took longer than {seconds:g}s")]
    except Exception as error:  # a plugin's, too
        why = str(error) if isinstance(error, AgentError | ConfigurationError) else f"{type(error).__name__}: {error}"
        return [Finding(what="check", ok=False, detail=why, hint=getattr(error, "hint", None))]
    finally:
        with suppress(Exception):  # what is wrong is a finding already
            await adapter.close()
