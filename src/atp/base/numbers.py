"""Numbers in what others wrote: agents, scripts, judges. Neither `true`, nor infinity, nor NaN is one."""

import math
from typing import Any, TypeGuard


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether something is a number that one can count with."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that is larger than any fraction
        return False


def is_score(value: Any) -> TypeGuard[int | float]:
    """Whether something is a score: a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1
