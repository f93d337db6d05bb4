"""The score of a trial, 0–100: quality, completeness, efficiency and cost, each with its weight.

A dimension without data is left out, and the weights of the others are rescaled.
"""

from collections.abc import Iterable
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


class Score(Struct, kw_only=True):
    """A score and its dimensions."""

    value: float | None
    """From 0 to 100; None if there is nothing to score."""
    dimensions: dict[str, float] = field(default_factory=dict)
    """The dimensions with data, each from 0 to 1."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The dimensions without data, and why."""


def score(result: TrialResult, case: Case) -> Score:
    """The score of a trial that could be completed and judged."""
    limits, transcript = case.limits, result.transcript
    known = [verdict for verdict in result.verdicts if verdict.outcome != "unjudged"]
    dimensions: dict[str, float] = {}
    left_out: dict[str, str] = {}
    for name, value in (
        ("quality", quality(known, seen=transcript.tells_of_actions)),
        ("completeness", completeness(known)),
        ("efficiency", efficiency(limits, transcript)),
        ("cost", cost(limits, transcript)),
    ):
        if value is None:
            left_out[name] = _why(name, limits, known)
        else:
            dimensions[name] = value
    weights = _DEFAULT if case.scoring is None else _by_dimension(case.scoring)
    total = _total(dimensions, weights, known)
    return Score(value=total, dimensions=dimensions, left_out=left_out)


def _total(dimensions: dict[str, float], weights: dict[str, float], verdicts: list[Verdict]) -> float | None:
    mean = _weighted_mean([(weights[name], value) for name, value in dimensions.items()])
    if mean is None:
        return None
    for verdict in verdicts:
        if verdict.critical and verdict.outcome == "failed":
            return 0.0
    return 100 * mean


def quality(known: Iterable[Verdict], *, seen: bool = True) -> float | None:
    """The weighted mean score of the judged and behavioural checks among `known`.

    If the agent told of nothing that it did (not `seen`), a behavioural check that passed is no mark in its favour.
    """
    return _weighted_mean([(one.weight, _points(one)) for one in known if _is_about_quality(one, seen)])


def completeness(known: Iterable[Verdict]) -> float | None:
    """The weighted share of checks that passed, expected artifacts among them."""
    return _weighted_mean([(one.weight, float(one.outcome == "passed")) for one in known])


def efficiency(limits: Limits, transcript: Transcript) -> float | None:
    """The share of the allowed steps that was not needed."""
    return None if limits.max_steps is None else _unspent(read_meter(transcript).steps, limits.max_steps)


def cost(limits: Limits, transcript: Transcript) -> float | None:
    """The unused share of the budget: of money, or of tokens where no money is limited or known."""
    if limits.budget_usd is None and limits.max_tokens is None:
        return None
    meter = read_meter(transcript)
    by_money = _unspent(meter.usd, limits.budget_usd)
    return by_money if by_money is not None else _unspent(meter.tokens, limits.max_tokens)


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


def _why(dimension: str, limits: Limits, known: list[Verdict]) -> str:
    match dimension:
        case "quality":
            unseen = [one for one in known if _is_about_quality(one, seen=True)]
            return "the agent told of nothing that it did" if unseen else "no judged or behavioural checks"
        case "completeness":
            return "no checks"
        case "efficiency":
            return "no max_steps" if limits.max_steps is None else "the agent reported no steps"
    limited = limits.budget_usd is not None or limits.max_tokens is not None
    return "the agent reported no cost" if limited else "no budget_usd or max_tokens"


def below(value: float | None, least: float | None) -> str | None:
    """Why a score is below the least that passes, if it is. Without a score, no minimum is reached."""
    if least is None:
        return None
    if value is None:
        return f"min_score {least:g} is not reached: there is nothing to score"
    # A score is a sum of products of fractions: the last digit is not the agent's.
    return f"score {value:.4g} is below min_score {least:g}" if value < least - 1e-9 else None
