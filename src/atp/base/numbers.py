"""Numbers: what counts as one in values of agents, scripts and judges, and counts and shares in words."""

import math
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any fraction
        return False


def is_score(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


def counted(number: int, noun: str) -> str:
    """`1 case`, `2,000 cases`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent_text(share: float) -> str:
    """A share in whole percents; in tenths where it would be rounded to 0% or 100% and is neither."""
    text = f"{100 * share:.0f}%"
    return text if share in (0, 1) or text not in ("0%", "100%") else f"{min(max(100 * share, 0.1), 99.9):.1f}%"


def between_text(interval: tuple[float, float]) -> str:
    """`between 60% and 98%`: the limits of a share."""
    low, high = map(percent_text, interval)
    return f"between {low} and {high}"
