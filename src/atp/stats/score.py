"""The score of a trial, 0–100: quality, completeness, efficiency and cost, each with its weight.

A dimension without data is left out, and the weights of the others are rescaled.
"""

from math import fsum

from msgspec import Struct, field

from atp.suite.case import Case, Limits, Weights
from atp.suite.meter import read_meter
from atp.suite.result import Transcript, TrialResult, Verdict

DIMENSIONS = ("quality", "completeness", "efficiency", "cost")
"""The dimensions of a score."""


def _by_dimension(weights: Weights) -> dict[str, float]:
    return {name: float(getattr(weights, f"{name}_weight")) for name in DIMENSIONS}


_DEFAULT = _by_dimension(Weights())
_NO_QUALITY = "no judged or behavioural checks"
_UNSEEN = "the agent reported no tool calls, events or steps"


class Score(Struct, kw_only=True):
    """A score and its dimensions."""

    value: float | None
    """From 0 to 100; None if there is nothing to score."""
    dimensions: dict[str, float] = field(default_factory=dict)
    """The dimensions with data, each from 0 to 1."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The dimensions without data, and why."""


def score(result: TrialResult, case: Case, acted_before: bool = False) -> Score:
    """The score of a trial that could be completed and judged.

    `acted_before` says that the agent reported tool calls, events or steps in a before.
    """
    limits, transcript = case.limits, result.transcript
    seen = acted_before or transcript.tells_of_actions
    known = [verdict for verdict in result.verdicts if verdict.outcome != "unjudged"]
    dimensions: dict[str, float] = {}
    left_out: dict[str, str] = {}
    for name, found in (
        ("quality", _quality(known, seen)),
        ("completeness", _completeness(known, seen)),
        ("efficiency", _efficiency(limits, transcript)),
        ("cost", _cost(limits, transcript)),
    ):
        if isinstance(found, str):
            left_out[name] = found
        else:
            dimensions[name] = found
    weights = _DEFAULT if case.scoring is None else _by_dimension(case.scoring)
    return Score(value=_total(dimensions, weights, known), dimensions=dimensions, left_out=left_out)


def _total(dimensions: dict[str, float], weights: dict[str, float], verdicts: list[Verdict]) -> float | None:
    mean = _weighted_mean([(weights[name], value) for name, value in dimensions.items()])
    if mean is None:
        return None
    for verdict in verdicts:
        if verdict.critical and verdict.outcome == "failed":
            return 0.0
    return 100 * mean


def _quality(known: list[Verdict], seen: bool) -> float | str:
    """The weighted mean score of the judged and behavioural checks among `known`, or why there is none.

    If the agent reported no tool calls, events or steps, a behavioural check that passed is no mark in its favour.
    """
    about = [one for one in known if one.judged or one.type == "behavior" or one.parts]
    if not about:
        return _NO_QUALITY
    mean = _weighted_mean([(one.weight, _points(one)) for one in about if _is_about_quality(one, seen)])
    if mean is not None:
        return mean
    unseen = any(_is_about_quality(one, seen=True) for one in about)
    return _UNSEEN if unseen else _NO_QUALITY


def _completeness(known: list[Verdict], seen: bool) -> float | str:
    """The weighted share of checks that passed, expected artifacts among them; or why there is none.

    A check that passed only because nobody saw what the agent did is left out.
    """
    counted = known if seen else [one for one in known if not _passed_unseen(one)]
    mean = _weighted_mean([(one.weight, float(one.outcome == "passed")) for one in counted])
    if mean is not None:
        return mean
    return "no checks" if len(counted) == len(known) else _UNSEEN


def _passed_unseen(verdict: Verdict) -> bool:
    """Whether a check of an agent that reported nothing passed by its behaviour alone."""
    if not verdict.passed or not verdict.parts:
        return verdict.passed and verdict.type == "behavior"
    held = [part for part in verdict.parts if part.passed]
    return bool(held) and all(map(_passed_unseen, held))


def _efficiency(limits: Limits, transcript: Transcript) -> float | str:
    """The share of the allowed steps that was not needed, or why it is not known."""
    if limits.max_steps is None:
        return "no max_steps"
    unspent = _unspent(read_meter(transcript).steps, limits.max_steps)
    return "the agent reported no steps" if unspent is None else unspent


def _cost(limits: Limits, transcript: Transcript) -> float | str:
    """The unused share of the budget, in money, else in tokens; or why it is not known."""
    if limits.budget_usd is None and limits.max_tokens is None:
        return "no budget_usd or max_tokens"
    meter = read_meter(transcript)
    for unspent in (_unspent(meter.usd, limits.budget_usd), _unspent(meter.tokens, limits.max_tokens)):
        if unspent is not None:
            return unspent
    return "the agent reported no cost"


def _unspent(used: float | None, allowed: float | None) -> float | None:
    if used is None or allowed is None:
        return None
    if allowed == 0:
        return 0.0 if used > 0 else 1.0
    return min(max(1 - used / allowed, 0.0), 1.0)


def _is_about_quality(verdict: Verdict, seen: bool) -> bool:
    if verdict.judged:
        return True
    if verdict.type == "behavior":
        return seen or not verdict.passed
    return bool(verdict.parts) and any(_is_about_quality(part, seen) for part in verdict.parts)


def _points(verdict: Verdict) -> float:
    points = float(verdict.passed) if verdict.score is None else verdict.score
    return min(max(points, 0.0), 1.0)


def _weighted_mean(pairs: list[tuple[float, float]]) -> float | None:
    if not pairs:
        return None
    if len(pairs) == 1:
        weight, value = pairs[0]
        return value if weight > 0 else None
    total = fsum([weight for weight, _ in pairs])
    return fsum([weight * value for weight, value in pairs]) / total if total > 0 else None


def below(value: float | None, least: float | None) -> str | None:
    """Why a score is below the least that passes, if it is. Without a score, no minimum is reached."""
    if least is None:
        return None
    if value is None:
        return f"min_score {least:g} is not reached: there is nothing to score"
    # A score is a sum of products of fractions: the last digit is not the agent's.
    return f"score {value:.4g} is below min_score {least:g}" if value < least - 1e-9 else None
