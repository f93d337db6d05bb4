"""Words for figures of groups of cases: a pass rate and how sure it is, a metric, what a gate came to."""

from collections.abc import Mapping, Sequence

from atp.base.numbers import between_text, counted, percent_text
from atp.journal.records import RunInfo
from atp.report.facts import figure_text
from atp.stats.group_figures import GroupFigures, MetricFigures
from atp.stats.suite_gates import GateResult
from atp.suite.gates import SuiteGate
from atp.suite.metrics import FIRST_TOKEN, MEASURED

SIGNS = {"passed": "✓", "failed": "✗", "inconclusive": "?"}
"""The sign of a gate's outcome, and of a case in a table."""


def group_rate_text(group: GroupFigures) -> str:
    """`85% of runs pass; between 64% and 95% for other cases like these`; empty without an interval."""
    if group.pass_rate is None or group.interval is None:
        return ""
    return f"{percent_text(group.pass_rate)} of runs pass; {between_text(group.interval)} for other cases like these"


def metric_text(name: str, value: float, interval: Sequence[float | None] | None) -> str:
    """`0.42 (0.31 – 0.53)`: a figure of a metric, and where it lies; an end that is not known is left open."""
    shown = figure_text(name, value)
    if interval is None:
        return shown
    low, high = ("" if _unknown(end) else figure_text(name, end or 0.0) for end in interval)
    if not low and not high:
        return shown
    return f"{shown} ({low} – {high})" if low and high else f"{shown} ({f'from {low}' if low else f'up to {high}'})"


def _unknown(end: float | None) -> bool:
    return end is None or end in (float("inf"), float("-inf"))


def named_metrics(metrics: Mapping[str, MetricFigures]) -> dict[str, MetricFigures]:
    """The metrics that an agent, a check or a test gave: reports show what ATP measures elsewhere, too."""
    return {name: one for name, one in metrics.items() if name not in MEASURED and name != FIRST_TOKEN}


def gate_title(gate: GateResult, info: RunInfo) -> str:
    """The gate, and the agent or the file that it is about, if it is one of several."""
    file = gate.file if len(info.files) > 1 else None
    about = ", ".join(one for one in (gate.agent, file) if one)
    return f"{gate.gate} ({about})" if about else gate.gate


def gate_text(gate: GateResult) -> str:
    """What a gate came to: `failed: 0.8 (0.58 – 0.92), observed over 20 cases`."""
    doubt = f"; {gate.doubt}" if gate.doubt else ""
    text = f"{gate.outcome}: "
    if gate.reason is not None:
        text += f"{gate.reason}; " if gate.value is not None else gate.reason
    if gate.value is None:
        return text + doubt
    basis = "observed" if gate.basis == "observed" else f"{gate.basis} test"
    unit = _unit(gate)
    value = f"{metric_text(unit, gate.value, gate.interval)}, {basis} over {_cases_text(gate)}"
    return f"{text}{value}{_errors(gate, unit)}{doubt}"


def _cases_text(gate: GateResult) -> str:
    """`20 cases`; `1 of 2 cases`, if not all of them have a value."""
    all_cases = counted(gate.cases, "case")
    return all_cases if gate.known_cases == gate.cases else f"{gate.known_cases:,} of {all_cases}"


def _errors(gate: GateResult, unit: str) -> str:
    """How many runs the value is of, and what the others would make of it, if some ended in errors of others."""
    if not gate.errors:
        return ""
    are = "an error that is" if gate.errors == 1 else "errors that are"
    text = f"; {counted(gate.judged_runs, 'run')} judged, {gate.errors:,} ended in {are} not the agent's"
    if gate.with_errors is None:
        return text
    low, high = (figure_text(unit, end) for end in gate.with_errors)
    return f"{text}: {low} – {high} with {'it' if gate.errors == 1 else 'them'}"


def _unit(gate: GateResult) -> str:
    """The name of the gate's metric, by which its value is written."""
    try:
        return SuiteGate.model_validate(gate.gate).metric
    except ValueError:
        return ""
