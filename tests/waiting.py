"""How tests wait: for a condition, with a limit that is reached only when the condition never comes true."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

WAIT_LIMIT = 300.0
"""Seconds after which a test gives up. No test that passes waits for this long, however busy the machine is."""
INTERVAL = 0.01
"""Seconds between two looks at a condition that another thread or process brings about."""


def until(condition: Callable[[], Result]) -> Result:
    """Wait until a condition holds, and return what `condition` returned then."""
    deadline = time.monotonic() + WAIT_LIMIT
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"the condition did not hold within {WAIT_LIMIT:g} s")
        time.sleep(INTERVAL)
    return found


async def until_async(condition: Callable[[], Result]) -> Result:
    """Wait until a condition holds, while the event loop runs."""
    deadline = time.monotonic() + WAIT_LIMIT
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"the condition did not hold within {WAIT_LIMIT:g} s")
        await asyncio.sleep(INTERVAL)
    return found
