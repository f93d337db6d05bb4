"""Casting: every role that the cases of a plan need is filled before anything runs, and prompts are varied."""

from collections.abc import Callable
from functools import partial
from typing import Any

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError, Place
from atp.base.errors import ConfigurationError
from atp.engine.prepare.plan import Plan, Unit
from atp.engine.prepare.survey import Filter, is_varied
from atp.engine.role_clients import RoleClients
from atp.models.model import CassetteError, CassetteMiss
from atp.suite.case import Case


def check_roles(plan: Plan, roles: RoleClients) -> None:
    """Find everybody who is needed. Raises `LoadError` with all who are missing."""
    notes = Diagnostics()
    for unit in plan.units:
        notes.extend(_missing(unit, plan, roles))
    if notes:
        raise LoadError(notes)


def _missing(unit: Unit, plan: Plan, roles: RoleClients) -> Diagnostics:
    here, source = Diagnostics(unit.source.suite.path), unit.source
    for decider, examples in source.survey.deciders.items():
        if decider.role == "validator":
            find: Callable[[], Any] = partial(roles.validator, decider.name or "", source)
        else:
            find = partial(roles.assessor, decider.name, source)
        _try(here, "no-judge", f"{decider.why} can't be judged", examples, find)
    for name, examples in source.survey.simulators.items():
        _try(here, "no-simulator", "nobody plays the user", examples, partial(roles.simulator, name, source))
    if source.suite.dialect == "script":
        _call(here, unit, plan.filter, roles)
    if source.survey.varied:
        _try(here, "no-generator", "prompts can't be varied", [], partial(roles.variator, source))
    return here


def _call(notes: Diagnostics, unit: Unit, wanted: Filter, roles: RoleClients) -> None:
    """Find the agents that tests in Python name, and note with each test what would make another of it."""
    from atp.engine.scripts.file import ScriptCase

    for case in filter(wanted.wants, unit.source.cases()):
        assert isinstance(case, ScriptCase)
        for name in case.called:
            find = partial(roles.called, name, unit.source)
            _try(notes, "no-such-agent", "it calls an agent", [(case.id, case.place)], find)
            if not notes:
                case.called[name] = find().digest


def _try(notes: Diagnostics, code: str, what: str, examples: list[tuple[str, Place]], fill: Callable[[], Any]) -> None:
    try:
        fill()
    except ConfigurationError as error:
        for name, place in examples[:1]:
            more = f", and {len(examples) - 1} more cases" if len(examples) > 1 else ""
            notes.error(code, f"case `{name}`{more}: {what}: {error}", place, error.hint)
        if not examples:
            notes.error(code, f"{what}: {error}", hint=error.hint)


async def vary(plan: Plan, roles: RoleClients) -> list[Diagnostic]:
    """Make the variations that cases ask for beyond those they list. What could not be had."""
    warnings: list[Diagnostic] = []
    for unit in plan.units:
        if not unit.source.survey.varied:
            continue
        from atp.engine.prepare.variations_file import Sidecar, variations_for

        sidecar = Sidecar.beside(unit.source.suite.path)
        client = roles.variator(unit.source)
        for case in unit.source.cases():
            if is_varied(case) and plan.runs_case(unit, case):
                assert case.iterations is not None
                try:
                    made = await variations_for(case, case.iterations, sidecar, client, unit.source.suite.path)
                except (CassetteMiss, CassetteError) as error:
                    raise _unrecorded(unit, case, error) from error
                warnings += made.warnings
                plan.variations[id(unit.source), case.index] = [(one.chain, one.origin) for one in made]
    return warnings


def _unrecorded(unit: Unit, case: Case, error: Exception) -> LoadError:
    notes = Diagnostics(unit.source.suite.path)
    notes.error("cassette", f"case `{case.id}`: its variations can't be made: {error}", case.place)
    return LoadError(notes)
