"""Asking again: what passes by itself is tried again after a while, as the server wishes."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar

from atp.models.limiter import Limiter
from atp.models.model import ModelError

PASSING = frozenset((429, 500, 502, 503, 504, 529))
"""HTTP statuses that may be gone at the next try."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
"""Seconds. Who asks for more is not waited for."""

Result = TypeVar("Result")


class Passing(ModelError):
    """A failure that may be gone at the next try."""

    def __init__(self, message: str, *, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(message, retryable=True, retry_after=retry_after, status=status)


async def attempts(once: Callable[[], Awaitable[Result]], limiter: Limiter, retries: int) -> Result:
    """Try until it works, fails for good, or was tried again `retries` times.

    The waiting is part of the turn: a provider in trouble doesn't get others' requests instead.
    """
    async with limiter.turn():
        for tried in range(retries + 1):
            halvings = limiter.halvings
            try:
                result = await once()
            except Passing as error:
                if error.status == 429:
                    limiter.too_many(halvings)
                seconds = _wait(tried) if error.retry_after is None else error.retry_after
                if tried == retries or seconds > LONGEST_WAIT:
                    raise _given_up(error, tried + 1) from error
                await asyncio.sleep(seconds)
            else:
                limiter.went_well()
                return result
    raise AssertionError("the last try returns or raises")


def _wait(tried: int) -> float:
    # Spread out, so that those who failed together don't come back together.
    return min(FIRST_WAIT * 2.0**tried, LONGEST_WAIT) * random.uniform(0.5, 1)  # noqa: S311  (nothing secret)


def _given_up(error: Passing, times: int) -> ModelError:
    tried = f" (tried {times} times)" if times > 1 else ""
    return ModelError(f"{error}{tried}", retryable=True, retry_after=error.retry_after, status=error.status)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the header `Retry-After` asks to wait: a number, or a date."""
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None
