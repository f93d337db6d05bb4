"""`--runs auto` against a fixed number of runs with the same error rates: runs, decisions, and calls and dollars saved.

The table of the statistics' design note: a gate of 0.9 with a margin of 0.1 at 95% confidence, at most 200 runs, for
agents whose long-run pass rate is known. Then a suite of such agents is run by ATP itself, several trials at a time.
"""

import random
import sys
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import atp
from atp.stats.gates import fixed_runs
from atp.stats.sequential import Design, SequentialTest

GATE = Design(0.9, 0.1, 0.05, 1, 200)
SIMULATED = 4_000
RATES = {0.5: 0.25, 0.8: 0.70, 0.9: 0.70, 0.99: 0.25}
"""Pass rates of agents, and how much of a fixed design's runs each may take in the mean."""
WRONG = {0.5: "passed", 0.8: "passed", 0.9: "failed", 0.99: "failed"}
CASES = 25
"""Cases of each rate in the suite that ATP runs."""
PRICE = 0.002
"""Dollars a call."""

AGENT = f"""
import random

def answer(prompt, context):
    rate = float(prompt.split()[0])
    passed = random.Random(f"{{prompt}} {{context['run']}}").random() < rate
    return {{"output": "yes" if passed else "no", "usage": {{"cost_usd": {PRICE}}}}}
"""


def simulate(rate: float, seed: int) -> SequentialTest:
    """The runs of one case, one after the other."""
    dice, test = random.Random(seed), SequentialTest(GATE)
    while not test.stop:
        passed = dice.random() < rate
        test.add(passed, passed)
    return test


def table(fixed: int) -> bool:
    """Print runs and decisions at each rate; True if all targets are met."""
    print(f"a fixed design of the same error rates: {fixed} runs\n")
    print("rate   runs  of fixed  at most   passed   failed  undecided    wrong  estimate")
    met = True
    for rate, most in RATES.items():
        tests = [simulate(rate, seed) for seed in range(SIMULATED)]
        runs = mean(test.runs for test in tests)
        shares = {one: sum(test.decision == one for test in tests) / SIMULATED for one in ("passed", "failed", None)}
        wrong = shares[WRONG[rate]]
        estimate = mean(test.estimate or 0.0 for test in tests)
        decided = f"{shares['passed']:>8.1%} {shares['failed']:>8.1%} {shares[None]:>10.1%} {wrong:>8.1%}"
        print(f"{rate:<5} {runs:>5.1f} {runs / fixed:>9.0%} {most:>8.0%} {decided} {estimate:>9.3f}")
        met = met and runs / fixed <= most and wrong <= GATE.alpha * 1.2 and abs(estimate - rate) < 0.02
    return met


def suite(fixed: int) -> None:
    """Run a suite with `--runs auto`, and print how many calls and dollars that took."""
    with TemporaryDirectory() as folder:
        Path(folder, "agent.py").write_text(AGENT)
        cases = [
            f'{{"id": "{rate}-{n}", "input": "{rate} {n}", "expected": "yes"}}\n'
            for rate in RATES
            for n in range(CASES)
        ]
        Path(folder, "cases.jsonl").write_text("".join(cases))
        entry = f"{folder}/agent.py:answer"
        options = atp.Options(name=[entry], runs="auto", pass_rate=0.9, margin=0.1, min_runs=1, parallel=8)
        report = atp.run_sync(atp.load(f"{folder}/cases.jsonl"), options)
    print(f"\na suite of {CASES} cases of each rate, run by ATP, 8 trials at a time")
    for rate in RATES:
        found = [case for case in report.results if case.case.startswith(f"{rate}-")]
        calls, surplus = (
            sum(len(case.trials) for case in found),
            sum(one.surplus for case in found for one in case.trials),
        )
        statuses = {one: sum(case.status == one for case in found) for one in ("passed", "failed", "inconclusive")}
        print(f"  {rate}: {calls / CASES:.1f} calls a case, {surplus} surplus, {statuses}")
    calls, same = sum(len(case.trials) for case in report.results), fixed * len(report.results)
    print(f"  {calls:,} calls, where the fixed design makes {same:,}: {1 - calls / same:.0%} saved")
    print(f"  ${calls * PRICE:.2f} instead of ${same * PRICE:.2f} at ${PRICE} a call")


def main() -> int:
    fixed = fixed_runs(GATE.p, GATE.margin, GATE.alpha)
    assert fixed is not None
    met = table(fixed)
    suite(fixed)
    print("\ntargets met" if met else "\ntargets missed")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
