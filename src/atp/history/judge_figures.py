"""What the verdicts of a run's judges are worth: the share that passed, beside what a calibration makes of it."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from msgspec import structs

from atp.base.numbers import counted
from atp.base.text import one_line
from atp.history.calibrations import Calibrations, Found, Measured
from atp.journal.listeners import RunEnd
from atp.stats.calibration import Accuracy, corrected_rate
from atp.stats.judges import JudgeCounts, JudgedVerdicts, JudgeFigures
from atp.stats.run_numbers import RunNumbers
from atp.stats.suite_gates import GateResult, judges_behind
from atp.suite.result import JudgedBy

MOST_NAMED = 10
"""Judges and criteria that a message names."""
NEVER = "never calibrated"
"""What is said of a judge without a calibration."""


def with_calibrations(end: RunEnd, calibrations: Calibrations) -> RunEnd:
    """The end of a run with what calibrations make of it: the figures of its judges, and which gates rest on them."""
    if not end.numbers.judged.judges:
        return end
    gates = [structs.replace(gate, doubt=gate_doubt(gate, end.numbers, calibrations)) for gate in end.gates]
    return replace(end, gates=gates, judges=judge_figures(end.numbers.judged, calibrations))


def uncalibrated(judged: JudgedVerdicts, calibrations: Calibrations) -> list[str]:
    """Some of the judges and criteria of a run for which no labels show the judge to be better than chance."""
    found = (
        f"{one.judge.name} by `{one_line(one.criterion or '', 80)}`"
        for (_, criterion), one in judged.criteria.items()
        if not calibrations.is_informative(one.judge, criterion)
    )
    return list(islice(found, MOST_NAMED))


def judge_figures(judged: JudgedVerdicts, calibrations: Calibrations) -> list[JudgeFigures]:
    """The figures of each judge: by all of its criteria if it has several, then by each."""
    found = []
    for digest, whole in judged.judges.items():
        criteria = judged.by_criterion(digest)
        if len(criteria) > 1:
            found.append(_whole(whole, [one for one, _ in criteria], judged, calibrations))
        found += [_one(criterion, counts, judged, calibrations) for criterion, counts in criteria]
    return found


def _whole(
    counts: JudgeCounts, criteria: list[str], judged: JudgedVerdicts, calibrations: Calibrations
) -> JudgeFigures:
    found = calibrations.of(counts.judge)
    if found is None:
        return JudgeFigures(counts=counts, warnings=[_why_none(counts.judge, calibrations)])
    unknown = sum(found.by(one) is None for one in criteria)
    if unknown:
        few = f"{unknown} of {counted(len(criteria), 'criterion').replace('criterions', 'criteria')}"
        return JudgeFigures(counts=counts, warnings=[f"{few} {'was' if unknown == 1 else 'were'} {NEVER}"])
    return _measured(counts, found, found.judge.whole, judged)


def _one(criterion: str, counts: JudgeCounts, judged: JudgedVerdicts, calibrations: Calibrations) -> JudgeFigures:
    found = calibrations.of(counts.judge, criterion)
    measured = found.by(criterion) if found is not None else None
    if found is None or measured is None:
        return JudgeFigures(counts=counts, warnings=[_why_none(counts.judge, calibrations)])
    return _measured(counts, found, measured, judged)


def _measured(counts: JudgeCounts, found: Found, measured: Measured, judged: JudgedVerdicts) -> JudgeFigures:
    accuracy = measured.accuracy
    figures = JudgeFigures(counts=counts, calibration=found.name, accuracy=accuracy, warnings=[])
    if not accuracy.is_informative:
        figures.warnings.append(_why_not_corrected(accuracy))
        return figures
    figures.corrected = corrected_rate(counts.verdicts, accuracy)
    figures.warnings += _agent_warnings(judged.agents, found.calibration.agents)
    return figures


def _why_none(judge: JudgedBy, calibrations: Calibrations) -> str:
    if calibrations.of(judge) is not None:
        return f"{NEVER} by this criterion"
    if (earlier := next(iter(calibrations.names(judge)), None)) is None:
        return NEVER
    if earlier.votes != judge.votes:
        return f"{NEVER} with {counted(judge.votes, 'vote')}, only with {earlier.votes}"
    if earlier.model != judge.model:
        return f"{NEVER} with the model {judge.model}, only with {earlier.model}"
    return f"{NEVER} as it is now: its settings or its prompt have changed since"


def _why_not_corrected(accuracy: Accuracy) -> str:
    if not accuracy.labels:
        return "no check with this criterion is labelled"
    if not accuracy.at_random:
        return "the labelled checks were not drawn at random, so nothing follows for others"
    return f"{counted(accuracy.labels, 'label')} don't show it to be better than chance"


def _agent_warnings(agents: dict[str, set[str]], labelled: dict[str, list[str]]) -> Iterable[str]:
    """Say that the judge was measured on the answers of others: it may be right less often about these."""
    others = [name for name in agents if name not in labelled]
    if others:
        names, known = (", ".join(f"`{one}`" for one in some) for some in (others, labelled))
        yield f"measured on answers of {known}, not of {names}"
    changed = [name for name, digests in agents.items() if name in labelled and not digests <= {*labelled[name]}]
    if changed:
        names = ", ".join(f"`{one}`" for one in changed)
        yield f"{names} {'has' if len(changed) == 1 else 'have'} changed since the answers were labelled"


def gate_doubt(gate: GateResult, numbers: RunNumbers, calibrations: Calibrations) -> str | None:
    """Say that a gate rests on a judge that was never calibrated, or never shown better than chance; None if not."""
    criteria = numbers.judged.criteria
    never, unproven = set(), set()
    for judge, criterion in judges_behind(gate, numbers):
        one = criteria[judge, criterion].judge
        if calibrations.of(one, criterion) is None:
            never.add(one.name)
        elif not calibrations.is_informative(one, criterion):
            unproven.add(one.name)
    doubts = [f"rests on {_names(never)}, {NEVER}"] if never else []
    doubts += [f"rests on {_names(unproven - never)}, not shown to be better than chance"] if unproven - never else []
    return "; ".join(doubts) or None


def _names(judges: Iterable[str]) -> str:
    found = sorted(judges)
    return f"the judge{'' if len(found) == 1 else 's'} {', '.join(found)}"
