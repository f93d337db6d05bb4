"""The calibrations of a project, and before a run with `--require-calibration`: whether all of its judges have one."""

from atp.base.diagnostics import Diagnostics, LoadError
from atp.base.errors import ConfigurationError
from atp.base.text import one_line
from atp.engine.prepare.plan import Plan, Unit
from atp.engine.role_clients import RoleClients
from atp.engine.run_context import RunContext
from atp.history.calibrations import Calibrations, load_calibrations
from atp.suite.assertion import Decider
from atp.suite.result import JudgedBy

MOST_NAMED = 20
"""Judges and criteria that are reported for a file."""


def calibrations_for(plan: Plan, context: RunContext) -> Calibrations:
    """The calibrations of the project. Raises `LoadError` if one is damaged, or one is required and not there.

    Tests in Python are not looked into: whether their judges are calibrated is known when they have run.
    """
    found = load_calibrations(context.root)
    if context.options.require_calibration:
        notes = [one for unit in plan.units for one in _missing(unit, plan, context.roles, found)]
        if notes:
            raise LoadError(notes)
    return found


def _missing(unit: Unit, plan: Plan, roles: RoleClients, calibrations: Calibrations) -> Diagnostics:
    """Report the criteria of a suite's cases by which labels don't show the judge to be better than chance."""
    from atp.checks.judged import rubrics

    notes = Diagnostics(unit.source.suite.path)
    known: set[tuple[Decider, str]] = set()
    for case in unit.source.cases() if unit.source.survey.deciders else ():
        if len(notes) >= MOST_NAMED or not plan.filter.wants(case):
            continue
        for decider, wanted, rubric in rubrics(case):
            if (decider, rubric.digest) in known:
                continue
            known.add((decider, rubric.digest))
            try:
                if decider.role == "validator":
                    judge: JudgedBy = roles.validator(decider.name or "", unit.source).judged_by(rubric)
                else:
                    judge = roles.assessor(decider.name, unit.source).judged_by(rubric, wanted)
            except ConfigurationError:
                continue  # reported as a missing judge
            if not calibrations.is_informative(judge, rubric.digest):
                message = (
                    f"no labels show the judge {judge.name} to be better than chance by "
                    f"`{one_line(rubric.text, 80)}`, and --require-calibration is set"
                )
                hint = "run it without --require-calibration, then: atp calibrate sample, label, atp calibrate measure"
                notes.error("uncalibrated-judge", message, case.place, hint)
    return notes
