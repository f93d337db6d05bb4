"""How often gates of cases are wrong, through the whole engine: a seeded suite of agents whose pass rate is known.

Each case is an agent of its own that passes at the worst rate for a decision: at `pass_rate` minus `margin`, where no
case should pass, or at `pass_rate`, where none should fail. Runs that fail are slower, and several run at a time.
"""

from statistics import NormalDist
from typing import Literal

import pytest

import atp

AGENT = """
import asyncio
import random


async def answer(prompt, context):
    rate = float(prompt.split()[0])
    passed = random.Random(f"{prompt} {context['run']}").random() < rate
    if not passed:
        for _ in range(20):  # other runs go on meanwhile
            await asyncio.sleep(0)
    return "yes" if passed else "no"
"""
CASES = 150
CONFIDENCE = 0.9


def decided(tmp_path_factory: pytest.TempPathFactory, rate: float, runs: Literal["auto"] | int) -> list[str]:
    """The statuses of cases whose agents have a pass rate."""
    folder = tmp_path_factory.mktemp("rates")
    (folder / "agent.py").write_text(AGENT)
    cases = [f'{{"id": "c{n}", "input": "{rate} {n}", "expected": "yes"}}\n' for n in range(CASES)]
    (folder / "cases.jsonl").write_text("".join(cases))
    entry = f"{folder}/agent.py:answer"
    options = atp.Options(name=[entry], parallel=8, runs=runs, pass_rate=0.9, margin=0.1, confidence=CONFIDENCE)
    report = atp.run_sync(atp.load(f"{folder}/cases.jsonl"), options)
    return [case.status for case in report.results]


@pytest.mark.parametrize(("rate", "wrong"), [(0.8, "passed"), (0.9, "failed")])
@pytest.mark.parametrize("runs", [5, 40, "auto"])
def test_no_more_decisions_are_wrong_than_the_confidence_allows(
    tmp_path_factory: pytest.TempPathFactory, rate: float, wrong: str, runs: Literal["auto"] | int
) -> None:
    found = decided(tmp_path_factory, rate, runs)
    assert len(found) == CASES
    level = 1 - CONFIDENCE
    # The results are the same each time: the limit is what a right gate stays below for 999 of 1,000 seeds.
    most = NormalDist(CASES * level, (CASES * level * (1 - level)) ** 0.5).inv_cdf(0.999)
    assert found.count(wrong) <= most
    if runs == "auto":  # and it does decide
        right = {"passed": "failed", "failed": "passed"}[wrong]
        assert found.count(right) > CASES / 2
