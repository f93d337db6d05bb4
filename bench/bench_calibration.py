"""Calibration with scripted judges of known error rates: how often each interval holds the truth, and how wide it is.

People label 100 checks of a run, drawn as `atp calibrate sample` draws them, and are always right. Runs differ in how
many answers are good, how right the judge is, how many cases there are with how many runs, and how much the runs of a
case are alike. `other`: the corrected rate is that of another run by the same judge. Each interval must hold the truth
in 95% of simulations, less what chance explains.
"""

import sys
from dataclasses import dataclass
from itertools import product
from math import sqrt
from random import Random

from atp.stats.calibration import LabelledVerdict, VerdictCounts, corrected_rate, draw, measure

SIMULATED = 400
LABELS = 100
GOOD = (0.5, 0.8, 0.95)
JUDGES = ((0.95, 0.9), (0.85, 0.7))
"""True-positive and true-negative rates."""
RUNS = ((300, 1, 0.0), (100, 5, 0.3), (30, 10, 0.5))
"""Cases, runs of each, and how much the runs of a case are alike."""
LEAST = 0.95 - 3 * sqrt(0.95 * 0.05 / SIMULATED)


@dataclass(frozen=True)
class World:
    """What is true, and not known to whoever measures."""

    good: float
    tpr: float
    tnr: float
    cases: int
    runs: int
    alike: float

    def verdicts(self, dice: Random) -> list[tuple[int, bool, bool]]:
        """The verdicts of a run: case, what the judge says, what is true."""
        found = []
        for case in range(self.cases):
            spread = 1 / self.alike - 1 if self.alike else 0.0
            rate = dice.betavariate(self.good * spread, (1 - self.good) * spread) if self.alike else self.good
            for _ in range(self.runs):
                truth = dice.random() < rate
                found.append((case, dice.random() < (self.tpr if truth else 1 - self.tnr), truth))
        return found


def counts_of(verdicts: list[tuple[int, bool, bool]]) -> VerdictCounts:
    """The verdicts, counted case by case."""
    cases: dict[int, list[bool]] = {}
    for case, judged, _ in verdicts:
        cases.setdefault(case, []).append(judged)
    counts = VerdictCounts()
    for own in cases.values():
        counts.add(sum(own), len(own))
    return counts


def simulate(world: World) -> bool:
    """Print how often the intervals hold the truth in one world; True if all do often enough."""
    dice = Random(str(world))
    held = dict.fromkeys(("agreement", "kappa", "tpr", "tnr", "corrected", "other"), 0)
    known, width = dict.fromkeys(held, 0), 0.0
    passed = world.tpr * world.good + (1 - world.tnr) * (1 - world.good)
    agreement = world.tpr * world.good + world.tnr * (1 - world.good)
    chance = passed * world.good + (1 - passed) * (1 - world.good)
    truth = {"agreement": agreement, "kappa": (agreement - chance) / (1 - chance), "tpr": world.tpr, "tnr": world.tnr}
    truth |= {"corrected": world.good, "other": world.good}
    for _ in range(SIMULATED):
        run = world.verdicts(dice)
        strata = {says: [one for one in run if one[1] == says] for says in (True, False)}
        sample = [LabelledVerdict(*one, weight=weight) for _, weight, one in draw(strata, LABELS, dice)]
        found = measure(sample, at_random=True)
        corrected = corrected_rate(counts_of(run), found)
        other = corrected_rate(counts_of(world.verdicts(dice)), found)
        intervals = {"agreement": found.agreement, "kappa": found.kappa, "tpr": found.tpr, "tnr": found.tnr}
        for name, one in {**intervals, "corrected": corrected, "other": other}.items():
            if one is not None:
                known[name] += 1
                held[name] += one.low - 1e-9 <= truth[name] <= one.high + 1e-9
        width += corrected.high - corrected.low if corrected is not None else 0.0
    shares = {name: held[name] / known[name] for name in held if known[name]}
    cells = "  ".join(f"{name} {share:6.1%}" for name, share in shares.items())
    defined = known["corrected"] / SIMULATED
    print(
        f"good {world.good:4.0%}  judge {world.tpr:.2f}/{world.tnr:.2f}  {world.cases:>3} × {world.runs:<2} "
        f"alike {world.alike:.1f}  {cells}  corrected in {defined:4.0%}, width {width / max(known['corrected'], 1):.2f}"
    )
    return min(shares.values()) >= LEAST


def main() -> int:
    """Simulate all worlds."""
    print(f"{SIMULATED} simulations each; every share must be at least {LEAST:.1%}\n")
    worlds = [
        World(good, tpr, tnr, cases, runs, alike)
        for good, (tpr, tnr), (cases, runs, alike) in product(GOOD, JUDGES, RUNS)
    ]
    met = [simulate(world) for world in worlds]
    print(f"\n{sum(met)} of {len(met)} worlds hold their level")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
