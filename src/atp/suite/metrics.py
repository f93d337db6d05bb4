"""Named metrics of a trial: those that an agent, a check or a test in Python gives, and those that ATP measures."""

from collections.abc import Iterable, Mapping
from math import isnan, nan
from typing import Any, TypeGuard

from atp.base.numbers import is_number
from atp.base.secrets import current_secrets
from atp.base.text import cut
from atp.suite.meter import read_meter
from atp.suite.record import METRIC_NAME
from atp.suite.result import NOTHING_USED, TrialResult, Verdict

MEASURED = ("duration_ms", "turns", "tool_calls", "tokens", "cost_usd", "score")
"""The metrics that every trial has as far as they are known. No agent, check or test may give one of these names."""
FIRST_TOKEN = "first_token_ms"  # noqa: S105  (a metric's name)
"""How long the first piece of the first answer took: measured where an agent yields pieces, else as the agent says."""
RESERVED = frozenset((*MEASURED, "pass_rate"))
"""Names that can't be given, because reports and gates use them for figures of ATP's own."""
MOST = 100
"""The most metrics that an agent, a check or a test may give in a trial."""
LARGEST = 1e100
"""The largest value, so that sums and squares of values are finite."""
_RULE = "a name has up to 64 letters, digits, `_`, `.` and `-`, and begins with a letter or `_`"


def metric_problem(name: Any, value: Any) -> str | None:
    """Why a metric can't be kept; None if it can."""
    shown = f"the metric `{cut(str(name), 80)}`"
    if not isinstance(name, str) or METRIC_NAME.fullmatch(name) is None:
        return f"{shown} has no usable name: {_RULE}"
    if name in RESERVED:
        return f"{shown} has the name of a figure that ATP measures itself: choose another name"
    if not _is_value(value):
        return f"{shown} is {cut(repr(value), 80)}, not a finite number"
    if current_secrets().mask(value, numbers=True) != value:
        return f"{shown} has a secret as its value"
    return None


def _is_value(value: Any) -> TypeGuard[int | float]:
    return is_number(value) and abs(value) <= LARGEST


def read_metrics(raw: Any) -> dict[str, float]:
    """Metrics as an agent, a check or a test gave them; None is none. Raises `ValueError` that says what is wrong."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ValueError(f"`metrics` is {cut(repr(raw), 80)}, not an object with numbers")
    if len(raw) > MOST:
        raise ValueError(f"`metrics` has {len(raw)} names, more than {MOST}")
    for name, value in raw.items():
        if problem := metric_problem(name, value):
            raise ValueError(problem)
    return {name: float(value) for name, value in raw.items()}


def collect_metrics(result: TrialResult) -> None:
    """Set the metrics of a trial that ended: the agent's, those of its checks, and what its test gave itself.

    Where a name was given several times, the value that was given last counts; where checks disagree, with a warning.
    """
    checked: dict[str, float] = {}
    for verdict in _with_parts(result.verdicts):
        for name, value in verdict.metrics.items():
            if checked.get(name, value) != value:
                warning = f"several checks gave the metric `{name}`: the last one counts"
                result.warnings.extend([warning] if warning not in result.warnings else [])
            checked[name] = value
    if checked or result.transcript.metrics:
        result.metrics = {**result.transcript.metrics, **checked, **result.metrics}


def _with_parts(verdicts: Iterable[Verdict]) -> Iterable[Verdict]:
    for verdict in verdicts:
        yield verdict
        if verdict.parts:
            yield from _with_parts(verdict.parts)


def values_by_name(found: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    """The values of each metric, from the metrics of several trials."""
    values: dict[str, list[float]] = {}
    for metrics in found:
        for name, value in metrics.items():
            values.setdefault(name, []).append(value)
    return values


def measured(trial: TrialResult) -> tuple[float, ...]:
    """The metrics of a trial that ATP measures, in the order of `MEASURED`; NaN for what is not known."""
    seen = trial.transcript
    took, turns, score = _finite(trial.duration_ms), len(seen.turns) or nan, _finite(trial.score)
    if not seen.events and not seen.tool_calls and seen.usage == NOTHING_USED:
        return took, turns, nan, nan, nan, score
    used = read_meter(seen) if seen.events else None  # without events, the agent's own figures are all there is
    tokens, usd = (seen.usage.tokens, seen.usage.cost_usd) if used is None else (used.tokens, used.usd)
    calls: int | None = max(len(seen.tool_calls), seen.usage.tool_calls or 0)
    if not calls and not seen.tells_of_actions:
        calls = None  # an agent that reports nothing may have called any number
    return took, turns, _finite(calls), _finite(tokens), _finite(usd), score


def _finite(value: float | None) -> float:
    """A number of an agent, or of a journal, which may be any; NaN if it is not known or can't be added up."""
    return value if value is not None and abs(value) <= LARGEST else nan


def metrics_of(trial: TrialResult) -> dict[str, float]:
    """All metrics of a trial by name, as far as they are known: what ATP measured, and what was given."""
    known = {name: float(value) for name, value in zip(MEASURED, measured(trial), strict=True) if not isnan(value)}
    known.update(trial.metrics)
    return known
