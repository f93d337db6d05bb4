"""Resolves the roles that the cases of a plan need before anything runs, and generates variations of prompts."""

from collections.abc import Callable
from functools import partial
from typing import Any

from atp.base.diagnostics import Diagnostic, Diagnostics, LoadError
from atp.checks.before_run import IN_WORDS
from atp.checks.verdicts import SHORT, show
from atp.engine.case_source import CaseSource, is_varied
from atp.engine.prepare.filter import Filter
from atp.engine.prepare.impossible_cases import report_missing
from atp.engine.prepare.plan import Plan, Unit
from atp.engine.role_clients import RoleClients, RoleLookup
from atp.models.model import CassetteError, CassetteMiss
from atp.suite.case import Case


def resolve_roles(plan: Plan, roles: RoleClients) -> None:
    """Resolve every role that is needed. Raises `LoadError` with all that are missing."""
    notes = Diagnostics()
    for unit in plan.units:
        here = missing_roles(unit.source, roles)
        if unit.source.suite.dialect == "script":
            _find_called(here, unit, plan.filter, roles)
        notes.extend(here)
    if notes:
        raise LoadError(notes)


def missing_roles(source: CaseSource, roles: RoleClients | RoleLookup) -> Diagnostics:
    """Report the judges, simulators and generators that a suite needs and that can't be resolved."""
    here = missing_judges(source, roles)
    warnings = roles.services.warnings if isinstance(roles, RoleClients) else None
    for name, examples in source.survey.simulators.items():
        find: Callable[[], Any] = partial(roles.simulator, name, source)
        report_missing(here, "no-simulator", "there is no simulator", examples, find, warnings)
    if varied := source.survey.varied:
        find = partial(roles.variator, source)
        report_missing(here, "no-generator", "its prompts can't be varied", varied, find, warnings)
    return here


def missing_judges(source: CaseSource, roles: RoleClients | RoleLookup) -> Diagnostics:
    """Report the judges and validators that a suite needs and that can't be resolved."""
    here = Diagnostics(source.suite.path)
    warnings = roles.services.warnings if isinstance(roles, RoleClients) else None
    for decider, examples in source.survey.deciders.items():
        if decider.role == "validator":
            find: Callable[[], Any] = partial(roles.validator, decider.name or "", source)
        else:
            find = partial(roles.assessor, decider.name, source)
        why, cases = decider.why, examples
        if why == IN_WORDS and source.survey.in_words is not None:
            case, number = source.survey.in_words
            why = f"its expectation {show(case.expectations[number], SHORT)}"
            cases = [(case.id, source.expectation_place(case, number)), *examples[1:]]
        report_missing(here, "no-judge", f"{why} can't be judged", cases, find, warnings)
    return here


def _find_called(notes: Diagnostics, unit: Unit, wanted: Filter, roles: RoleClients) -> None:
    """Find the agents that tests in Python call, and add their digests to the tests, whose keys they are part of."""
    from atp.engine.scripts.file import ScriptCase

    connectors = roles.services.options.connector
    columns: list[str | None] = [*connectors] if len(connectors) > 1 else [None]
    for case in filter(wanted.wants, unit.source.cases()):
        assert isinstance(case, ScriptCase)
        for name in case.called:
            digests: list[str] = []
            for connector in columns:
                find = partial(roles.services.called, name, unit.source, connector)
                report_missing(notes, "no-such-agent", "it calls an agent", [(case.id, case.place)], find)
                if not notes:
                    digests.append(find().inputs.digest)
            case.called[name] = "-".join(digests)


async def vary(plan: Plan, roles: RoleClients) -> list[Diagnostic]:
    """Generate the variations that cases ask for beyond their listed prompts. Returns warnings."""
    warnings: list[Diagnostic] = []
    for unit in plan.units:
        if not unit.source.survey.varied:
            continue
        from atp.engine.prepare.variations_file import VariationsFile, variations_for

        kept = VariationsFile.beside(unit.source.suite.path)
        client = roles.variator(unit.source)
        for case in unit.source.cases():
            if is_varied(case) and plan.runs_case(unit, case):
                assert case.iterations is not None
                try:
                    made = await variations_for(case, case.iterations, kept, client, unit.source.suite.path)
                except (CassetteMiss, CassetteError) as error:
                    raise _unrecorded(unit, case, error) from error
                warnings += made.warnings
                plan.variations[id(unit.source), case.index] = [(one.chain, one.origin) for one in made]
    return warnings


def _unrecorded(unit: Unit, case: Case, error: Exception) -> LoadError:
    notes = Diagnostics(unit.source.suite.path)
    notes.error("cassette", f"case `{case.id}`: its variations can't be generated: {error}", case.place)
    return LoadError(notes)
