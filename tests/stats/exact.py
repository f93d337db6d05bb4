"""Probabilities for tests that try every outcome instead of drawing some."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from typing import NamedTuple

import numpy as np
from scipy import stats

from atp.stats.sequential import Design, first_run_passed


@lru_cache(5000)
def binomial(n: int, share: float) -> list[float]:
    """The probability of each number of successes, from 0 to `n`."""
    return [float(chance) for chance in np.asarray(stats.binom.pmf(np.arange(n + 1), n, share))]


class Ends(NamedTuple):
    """How a case of `--runs auto` ends: the probability of each end."""

    passed: float
    failed: float
    inconclusive: float
    runs: float
    """The mean number of runs."""
    estimate: float
    """The mean of the estimate, where every end has one."""
    still_running: float
    """The probability that no end was reached."""
    counts: dict[tuple[int, int], float]
    """The probability of each end, as (passed, trials); errors that are not the agent's count as failed."""


def sequential_ends(design: Design, rates: Sequence[float], errors: float = 0.0, most: int = 10_000) -> Ends:
    """How a case ends whose variations have the given pass rates, by following every count with its probability.

    `errors` is the share of trials that end in an error that is not the agent's.
    """
    a_run = {(0, 0): 1.0}
    for rate in rates:
        a_run = _convolved(a_run, {(1, 1): rate * (1 - errors), (0, 1): errors, (0, 0): (1 - rate) * (1 - errors)})
    going, ended = {(0, 0): 1.0}, dict.fromkeys(("passed", "failed", None), 0.0)
    counts: dict[tuple[int, int], float] = defaultdict(float)
    runs = estimate = 0.0
    for run in range(1, min(most, design.max_runs or most) + 1):
        after, going = _convolved(going, a_run), {}
        for (low, high), chance in after.items():
            stop = design.look(run, low, high)
            if stop is None:
                going[low, high] = chance
                continue
            ended[stop.decision] += chance
            counts[low, run * len(rates)] += chance
            runs += run * chance
            if len(rates) == 1 and not errors:
                estimate += chance * first_run_passed(design, run, low)
    return Ends(ended["passed"], ended["failed"], ended[None], runs, estimate, fsum(going.values()), counts)


def _convolved(one: dict[tuple[int, int], float], other: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    made: dict[tuple[int, int], float] = {}
    for (low, high), chance in one.items():
        for (more_low, more_high), share in other.items():
            if share:
                key = low + more_low, high + more_high
                made[key] = made.get(key, 0.0) + chance * share
    return made
