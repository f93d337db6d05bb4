"""Numbers: what counts as one in values of agents, scripts and judges, and counts in words."""

import math
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value is a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
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
