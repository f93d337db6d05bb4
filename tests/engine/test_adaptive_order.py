"""`--runs auto`: in whatever order results come in, a case comes to the decision of its runs in order."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.engine.adaptive import AdaptiveRuns
from atp.engine.planned_trial import Trial
from atp.engine.prepare.prepare import prepare
from atp.engine.prepare.sources import Input
from atp.journal.records import Case
from atp.stats.sequential import Design, SequentialTest
from atp.suite.result import TrialResult

CASES = 3
ERRORS = 0.05
"""The share of trials that end in an error that is not the agent's."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """The first trials of three cases."""
    folder = tmp_path_factory.mktemp("adaptive")
    Path(folder, "agent.py").write_text("def answer(prompt):\n    return prompt\n")
    Path(folder, "cases.jsonl").write_text("".join(f'{{"id": "c{n}", "input": "hi"}}\n' for n in range(CASES)))
    flags = {"name": [f"{folder}/agent.py:answer"], "runs": "auto", "pass_rate": 0.9, "margin": 0.1, "max_runs": 100}
    return list(prepare(Input((), (str(folder / "cases.jsonl"),)), flags).plan.trials())


def outcome(trial: Trial, rate: float, seed: int) -> TrialResult:
    """The result of a trial, which only its case and run decide."""
    dice = Random(f"{trial.case.id} {trial.run} {seed}")
    result = TrialResult(key=trial.key, agent=trial.agent, case=trial.case.id, run=trial.run)
    if dice.random() < ERRORS:
        result.status, result.blame = "error", "environment"
    elif dice.random() >= rate:
        result.status = "failed"
    return result


def simulate(trials: list[Trial], workers: int, rate: float, seed: int) -> Iterator[tuple[Case, int]]:
    """Run trials, several at a time, of which those that fail take longer. Yields the lines and the open cases."""
    plan, adaptive, order = iter(trials), AdaptiveRuns(lambda _: None), Random(seed)
    under_way: list[tuple[Trial, TrialResult]] = []
    while True:
        while len(under_way) < workers:
            trial = adaptive.next()
            if trial is None:
                first = next(plan, None)
                if first is None:
                    break
                adaptive.open(first, plan)
                continue
            under_way.append((trial, outcome(trial, rate, seed)))
        if not under_way:
            return
        slow = [1.0 if result.status == "passed" else 0.1 for _, result in under_way]
        ended = order.choices(range(len(under_way)), slow)[0]
        trial, result = under_way.pop(ended)
        if (line := adaptive.add(trial, result, ran=True)) is not None:
            yield line, len(adaptive._open)


@given(
    rate=st.sampled_from([0.5, 0.8, 0.85, 0.9, 1.0]),
    workers=st.integers(1, 20),
    seed=st.integers(0, 10_000),
)
def test_the_order_of_arrival_changes_no_decision(trials: list[Trial], rate: float, workers: int, seed: int) -> None:
    found = list(simulate(trials, workers, rate, seed))
    assert {line.case for line, _ in found} == {"c0", "c1", "c2"}
    for line, others in found:
        test = SequentialTest(Design(0.9, 0.1, 0.05, 5, 100))
        first = next(one for one in trials if one.case.id == line.case)
        while not test.stop:
            result = outcome(first.of_run(test.runs + 1), rate, seed)
            test.add(result.status == "passed", result.status in ("passed", "error"))
        assert (line.decision, line.stopped_by, line.runs) == (test.decision or "inconclusive", test.stop.by, test.runs)
        assert line.estimate == test.estimate
        assert line.surplus_runs >= 0
        assert others < CASES
        if workers == 1:
            assert line.surplus_runs == 0
