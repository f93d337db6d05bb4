"""How often a comparison is wrong, and how often it finds what is there: 30 cases, 1 to 20 runs or `--runs auto`.

Simulated, seeded. Beside each share stands that of the naive way, which pools all runs of all cases and compares two
shares as if every run were a case of its own. `drift`: each case changed by up to 25 points to either side, in the mean
by nothing, as after a new prompt that helps some cases and hurts others. Last: how long the overall test takes.
"""

import sys
import time
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from random import Random
from typing import Literal

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from atp.stats import compare
from atp.stats.compare import Counts, classify_cases, overall_interval, overall_p_value, sign_flip
from atp.stats.sequential import Design, SequentialTest

CASES = 30
REPEATS = 2_000
Change = Callable[[Random, float], float]
Runs = int | Literal["auto"]


def nothing(_random: Random, _rate: float) -> float:
    return 0.0


def drift(random: Random, rate: float) -> float:
    return random.choice((-1, 1)) * min(0.25, rate, 1 - rate)


def all_worse(_random: Random, rate: float) -> float:
    return max(-0.1, -rate)


def some_broken(random: Random, rate: float) -> float:
    return min(0.0, 0.05 - rate) if random.random() < 0.1 else 0.0


AUTO = Design(0.9, 0.1, 0.05, min_runs=5, max_runs=200)


def side(random: Random, rate: float, runs: Runs) -> tuple[Counts, float]:
    """The runs of a case in A or B, and its rate: an estimate where the results decided how many runs there are."""
    if runs != "auto":
        counts = Counts(sum(random.random() < rate for _ in range(runs)), runs)
        return counts, counts.passed / runs
    test, passed = SequentialTest(AUTO), 0
    while not test.stop:
        result = random.random() < rate
        passed += result
        test.add(result, result)
    assert test.estimate is not None
    return Counts(passed, test.runs, sequential=True), test.estimate


def pooled(pairs: list[tuple[Counts, Counts]]) -> bool:
    """The naive way: two shares of all runs, z-test at 5%."""
    a, b = (
        Counts(sum(one.passed for one in side), sum(one.judged for one in side)) for side in zip(*pairs, strict=True)
    )
    share = (a.passed + b.passed) / (a.judged + b.judged)
    error = sqrt(share * (1 - share) * (1 / a.judged + 1 / b.judged))
    return error > 0 and abs(a.passed / a.judged - b.passed / b.judged) / error > 1.96


def simulate(runs_a: Runs, runs_b: Runs, change: Change) -> dict[str, float]:
    """Shares of the repeats, in percent: alarms of the overall test and of the naive way, wrong cases, coverage."""
    random = Random(f"{runs_a} {runs_b} {change.__name__}")
    found = dict.fromkeys(("overall", "worse", "naive", "wrong", "found", "covered", "margin"), 0.0)
    for _ in range(REPEATS):
        rates = [random.betavariate(4, 1) for _ in range(CASES)]
        changes = [change(random, rate) for rate in rates]
        both = zip(rates, changes, strict=True)
        sides = [(side(random, rate, runs_a), side(random, rate + by, runs_b)) for rate, by in both]
        pairs = [(a, b) for (a, _), (b, _) in sides]
        differences = [after - before for (_, before), (_, after) in sides]
        is_alarm = overall_p_value(pairs, differences) <= compare.ALPHA
        interval = overall_interval(differences, [min(a.judged, b.judged) for a, b in pairs])
        assert interval is not None
        found["overall"] += is_alarm
        found["worse"] += is_alarm and sum(differences) < 0
        found["naive"] += pooled(pairs)
        found["margin"] += interval.low > sum(changes) / CASES
        found["covered"] += interval.low <= sum(changes) / CASES <= interval.high
        classes = [kind for kind, _ in classify_cases(pairs)]
        named = [by for by, kind in zip(changes, classes, strict=True) if kind in ("regressed", "improved")]
        found["wrong"] += sum(not by for by in named) / len(named) if named else 0
        found["found"] += sum(by < -0.5 for by in named) / max(1, sum(by < -0.5 for by in changes))
    return {name: 100 * count / REPEATS for name, count in found.items()}


NO_CHANGE: dict[str, Change] = {"nothing": nothing, "drift": drift}
DECLINE: dict[str, Change] = {"all worse": all_worse, "some broken": some_broken}
SIDES: list[tuple[Runs, Runs]] = [(1, 1), (5, 5), (20, 20), (20, 5), (1, 5), ("auto", "auto"), (20, "auto")]
MOST = 6.5
"""Percent of false alarms: 5, and what 2,000 repeats add by chance."""


def false_alarms() -> bool:
    """Print the first table. Returns whether there were too many."""
    print("| change | runs | overall: alarm | of these worse | naive: alarm | share of wrong cases | interval covers |")
    print("|---|---|---|---|---|---|---|")
    too_many = False
    for name, change in NO_CHANGE.items():
        for a, b in SIDES:
            one = simulate(a, b, change)
            wrong = f"{one['wrong']:.1f}" if change is nothing else "–"
            cells = (
                f"{one['overall']:.1f}",
                f"{one['worse']:.1f}",
                f"{one['naive']:.1f}",
                wrong,
                f"{one['covered']:.1f}",
            )
            print(f"| {name} | {a} and {b} | {' | '.join(cells)} |", flush=True)
            too_many |= one["overall"] > MOST or one["covered"] < 100 - MOST
            too_many |= change is nothing and one["wrong"] > MOST
    return too_many


def power() -> None:
    """Print the second table. A margin is shown wrongly if B is just as much worse as the margin."""
    print("\n| change | runs | overall: worse | broken cases found | interval covers | margin shown wrongly |")
    print("|---|---|---|---|---|---|")
    for name, change in DECLINE.items():
        for a, b in (one for one in SIDES if one[0] == one[1]):
            one = simulate(a, b, change)
            broken = f"{one['found']:.1f}" if change is some_broken else "–"
            cells = (f"{one['worse']:.1f}", broken, f"{one['covered']:.1f}", f"{one['margin']:.1f}")
            print(f"| {name} | {a} and {b} | {' | '.join(cells)} |", flush=True)


def main() -> int:
    print(f"{CASES} cases, {REPEATS:,} repeats, percent of the repeats\n")
    usual = compare.FLIPS
    # The p-value of 2,000 flips is as right as that of 100,000, only coarser: (b + 1) / (B + 1).
    compare.FLIPS = 2_000
    too_many = false_alarms()
    power()
    compare.FLIPS = usual
    random = Random(1)
    print()
    for cases in (30, 1_000, 10_000):
        differences = [random.gauss(0, 1) for _ in range(cases)]
        start = time.perf_counter()
        sign_flip(differences)
        print(f"The overall test of {cases:,} cases that all differ: {time.perf_counter() - start:.2f} s")
    return int(too_many)


if __name__ == "__main__":
    sys.exit(main())
