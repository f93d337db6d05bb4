"""The gates of cases as the run decides them: what the options change in them, and what is wrong with them then."""

from math import ceil

from atp.base.diagnostics import Diagnostics, Place
from atp.base.numbers import counted
from atp.engine.case_source import AskedGate, CaseSource
from atp.engine.prepare.options import Options
from atp.suite.gates import Gate, gate_mistake, no_confidence, no_rate
from atp.suite.record import AUTO


def gate_of(asked: AskedGate, options: Options) -> Gate:
    """The gate of a case: flags before what the case or its suite says, before the project's settings."""
    rate = options.choose("pass_rate", asked.pass_rate)
    if rate is None:
        return NO_GATE
    gate = Gate(rate, options.choose("confidence", asked.confidence), options.choose("margin", asked.margin) or 0.0)
    return adaptive_gate(gate) if is_adaptive(asked.runs, options) else gate


def adaptive_gate(gate: Gate) -> Gate:
    """The gate of a case whose number of runs is not fixed: it always has a confidence."""
    return gate if gate.rate is None or gate.confidence is not None else gate._replace(confidence=USUAL_CONFIDENCE)


def is_adaptive(runs: int | None, options: Options) -> bool:
    """True if the number of runs of a case is not fixed (`--runs auto`); `runs` is what the case says."""
    return bool(options.choose("runs", runs) == AUTO)


USUAL_CONFIDENCE = 0.95
"""The confidence of decisions by `--runs auto`, where none is given."""
NO_GATE = Gate()
"""The gate of a case that asks for no rate: all of its trials must pass."""


def check_gates(source: CaseSource, options: Options, *, is_recorded: bool = False) -> Diagnostics:
    """Report gates that can't be decided, and warn of those that the planned runs are too few for.

    `is_recorded`: the runs are those of an earlier run, so that nothing is wrong with how many there are.
    """
    here = Diagnostics(source.suite.path)
    found = {asked: gate_of(asked, options) for asked in source.survey.gates}
    given = [key for key in ("confidence", "margin") if options.given(key)]
    if given and found and all(gate.rate is None for gate in found.values()):
        mistake = no_rate(f"--{given[0]}")
        here.error(mistake.code, mistake.message, hint=mistake.hint)
    for asked, gate in found.items():
        example, number = source.survey.gates[asked]
        more = f", and {counted(number - 1, 'more case')}" if number > 1 else ""
        mistake_of_case = gate_mistake(gate)
        if mistake_of_case is None and (asked.margin or options.runs != AUTO):  # else the margin is for other cases
            mistake_of_case = no_confidence(gate)
        if gate.rate is None and is_adaptive(asked.runs, options) and not is_recorded:
            mistake_of_case = no_rate("--runs auto")
        if mistake_of_case is not None:
            message = f"case `{example.id}`{more}: {mistake_of_case.message}"
            here.error(mistake_of_case.code, message, example.place, mistake_of_case.hint)
        elif gate.is_tested and not is_recorded:
            _warn_of_few_runs(here, asked, gate, options, f"case `{example.id}`{more}", example.place)
    return here


def _warn_of_few_runs(
    here: Diagnostics, asked: AskedGate, gate: Gate, options: Options, who: str, place: Place
) -> None:
    """Warn if a gate can't pass even if all of the planned runs pass."""
    from atp.stats.gates import least_runs  # only few runs have gates with a confidence

    assert gate.rate is not None
    least = least_runs(gate.rate, gate.margin, gate.alpha)
    adaptive = is_adaptive(asked.runs, options)
    runs = options.max_runs if adaptive else options.choose("runs", asked.runs)
    if least is not None and runs * asked.variations < least:
        needed = ceil(least / asked.variations)
        flags = f"--max-runs {needed}" if adaptive else f"--runs {needed}, --runs auto"
        message = f"{who}: {counted(runs, 'run')} can't show a pass rate of {gate.rate:g}, even if all pass"
        margin = "a wider `margin`" if gate.margin else "a `margin`"
        here.warn("too-few-runs", message, place, f"it takes {needed} at least: give {flags}, or {margin}")
