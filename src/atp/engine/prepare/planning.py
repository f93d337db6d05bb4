"""Making the plan: agents are resolved, and what can't work is found before anything runs or costs money."""

from pathlib import Path

from atp.base.diagnostics import Diagnostics, LoadError, has_errors
from atp.base.errors import ConfigurationError
from atp.checks.before_run import met, unjudgeable
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.prepare.agents import NamedAgent, Project, resolve_agents
from atp.engine.prepare.identity import Identities
from atp.engine.prepare.keys import CaseFiles, agent_digest
from atp.engine.prepare.options import Options
from atp.engine.prepare.plan import Plan, Unit
from atp.engine.prepare.sources import CaseSource
from atp.engine.prepare.survey import Filter
from atp.engine.services import RunServices
from atp.suite.agent import PromptConfig


def make_plan(sources: list[CaseSource], options: Options, wanted: Filter, services: RunServices) -> Plan:
    """Resolve the agents and look for what can't work, before anything runs or costs money."""
    notes, root = Diagnostics(), services.root
    units: list[Unit] = []
    made: dict[tuple[str, str], AgentUnderTest] = {}
    for source in sources:
        agents = []
        for named in resolve_agents(source, options, Project(root, services.environment), notes):
            if isinstance(named.agent.config, PromptConfig) and options.given("connector"):
                named.agent.config.connector = options.connector
            tested = made.get(place := (str(named.base), named.agent.model_dump_json()))
            if tested is None:
                tested = _make(named, source, services, notes)
            if tested is not None:
                made[place] = tested
                agents.append(tested)
        units.append(Unit(source, agents, CaseFiles(source.folder, source.fixtures, root)))
    plan = Plan(units, options, Identities(options), wanted)
    if not notes:
        _check_cases(plan, root, notes)
    if has_errors(notes):
        raise LoadError(notes)
    plan.warnings = list(notes)
    return plan


def _make(named: NamedAgent, source: CaseSource, services: RunServices, notes: Diagnostics) -> AgentUnderTest | None:
    try:
        adapter = services.adapter(named, search=(Path.cwd(), source.folder))
    except ConfigurationError as error:
        place = named.agent.place
        here = Diagnostics(source.suite.path if place.line else None)
        here.error("agent-configuration", f"agent `{named.agent.name}`: {error}", place, error.hint)
        notes.extend(here)
        return None
    limit = getattr(named.agent.config, "parallel", None)
    hidden = named.secrets | adapter.secrets
    notes.extend(adapter.warnings)
    return AgentUnderTest(
        named.agent, adapter, named.base, agent_digest(named, adapter), named.ad_hoc, limit, secrets=hidden
    )


def _check_cases(plan: Plan, root: Path, notes: Diagnostics) -> None:
    """What no adapter could ever show must not pass for lack of being seen."""
    for unit in plan.units:
        survey = unit.source.survey
        here = Diagnostics(unit.source.suite.path)
        for folder, examples in survey.workspaces.items():
            if not (unit.source.folder / folder).is_dir():
                for name, place in examples:
                    here.error("no-such-folder", f"case `{name}`: there is no folder {folder} to start with", place)
        for tested in unit.agents:
            doubtful = {one.index: one for (_, only), one in survey.doubtful.items() if tested.is_among(only)}
            for case in doubtful.values():
                for reason in unjudgeable(case, (tested.base, unit.source.folder, root)):
                    here.error("unjudgeable", f"case `{case.id}`: {reason}", case.place)
            for (need, only), examples in survey.needs.items():
                if met(need, tested.adapter.capabilities) or not tested.is_among(only):
                    continue
                for name, place in examples:
                    message = f"case `{name}`: agent `{tested.name}` can never report {need.why}"
                    here.error("unobservable", message, place, _way_out(tested))
        if survey.narrowed and any(tested.ad_hoc for tested in unit.agents):
            here.warn("agents-ignored", "tests' own `agents:` lists are ignored, because -n names another agent")
        notes.extend(here)


def _way_out(tested: AgentUnderTest) -> str:
    """What to do when an agent can't report what a case asks for."""
    speaks = hasattr(tested.agent.config, "protocol")
    return "drop the check, or let the agent speak protocol atp" if speaks else "drop the check"
