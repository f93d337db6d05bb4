"""Figures of groups of cases: which cases they are of, and that their intervals cover what they promise."""

from random import Random
from typing import Any

import pytest

from atp.stats.group_figures import group_figures, run_groups
from atp.stats.intervals import percentile_interval
from atp.stats.run_numbers import RunNumbers
from atp.stats.suite_gates import evaluate_gates
from atp.stats.summary import Summary
from atp.suite.gates import RunGate
from atp.suite.result import CaseResult, TrialResult


def trial(passed: bool = True, value: float | None = None, **given: Any) -> TrialResult:
    metrics = {} if value is None else {"recall": value}
    found = {"key": "k", "agent": "a", "case": "c", "status": "passed" if passed else "failed", "metrics": metrics}
    return TrialResult(**{**found, **given})


def case(number: int, *trials: TrialResult, **given: Any) -> CaseResult:
    return CaseResult(**{"agent": "a", "case": f"c{number}", "index": number, "trials": list(trials), **given})


def numbers_of(*cases: CaseResult) -> RunNumbers:
    summary = Summary()
    for one in cases:
        summary.add_case(one)
    return summary.numbers


def test_the_groups_of_a_run() -> None:
    found = run_groups(
        numbers_of(
            *(case(number, trial(number > 0, 0.1 * number), tags=["x"], file="a.yaml") for number in range(5)),
            case(5, trial(False), tags=["y", "y"], file="b.yaml"),
            case(6, trial(status="skipped"), status="skipped", tags=["z"], file="c.yaml"),
        )
    )
    assert found.all.cases == 6
    assert found.all.pass_rate == pytest.approx(4 / 6)
    assert {name: one.cases for name, one in found.tags.items()} == {"x": 5, "y": 1}
    assert {name: one.cases for name, one in found.files.items()} == {"a.yaml": 5, "b.yaml": 1}
    assert found.tags["x"].interval is not None
    assert found.tags["y"].interval is None
    recall = found.all.metrics["recall"]
    assert (recall.cases, recall.runs, recall.median) == (5, 5, 0.2)
    assert recall.mean == pytest.approx(0.2)


def test_a_case_of_two_agents_is_one_case() -> None:
    by_one = [case(number, trial(), agent="one") for number in range(6)]
    by_two = [case(number, trial(False), agent="two") for number in range(6)]
    found = run_groups(numbers_of(*by_one, *by_two))
    assert (found.all.cases, found.all.pass_rate) == (6, 0.5)
    assert {name: one.pass_rate for name, one in found.agents.items()} == {"one": 1.0, "two": 0.0}
    doubled = run_groups(numbers_of(*by_one, *(case(number, trial(), agent="two") for number in range(6)))).all
    assert doubled.interval == found.agents["one"].interval  # a second agent is no further case


def test_errors_that_are_not_the_agents_widen_the_interval_and_leave_the_rate() -> None:
    broken = trial(status="error", blame="environment")
    found = group_figures(numbers_of(*(case(number, trial(), broken) for number in range(8))), range(8))
    assert found.pass_rate == 1
    assert found.interval is not None
    assert found.interval.low < 0.5 < found.interval.high == 1


def test_the_standard_error_over_runs_needs_two_runs_of_each_case() -> None:
    twice = [case(number, trial(), trial(False)) for number in range(5)]
    assert run_groups(numbers_of(*twice)).all.se_runs == pytest.approx(0.5 / 5**0.5)
    assert run_groups(numbers_of(*twice, case(5, trial()))).all.se_runs is None


def test_runs_without_a_fixed_number_count_by_their_estimate() -> None:
    auto = case(0, *(trial(run=run) for run in (1, 2, 3)), min_runs=2, estimate=0.75)
    surplus = trial(False, run=4, surplus=True)
    auto.trials.append(surplus)
    numbers = numbers_of(auto)
    assert run_groups(numbers).all.pass_rate == 0.75
    (short,) = evaluate_gates([RunGate(gate="pass^3 >= 0.1")], numbers, complete=True)
    assert (short.outcome, short.value) == ("inconclusive", None)
    (enough,) = evaluate_gates([RunGate(gate="pass^2 >= 1")], numbers, complete=True)
    assert enough.outcome == "passed"


@pytest.mark.parametrize("runs", [1, 4])
@pytest.mark.parametrize("alike", [0.0, 0.9])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_percentile_intervals_cover_the_percentile_of_runs_within_cases(share: float, alike: float, runs: int) -> None:
    """Runs of a case are alike; the interval must hold the percentile of all runs of all such cases."""
    random = Random(f"{share} {alike} {runs}")
    truth = {0.5: 0.0, 0.9: 1.2815515655446004}[share]
    held, rounds = 0, 400
    for _ in range(rounds):
        values = []
        for _ in range(60):
            own = random.gauss()
            values += [alike**0.5 * own + (1 - alike) ** 0.5 * random.gauss() for _ in range(runs)]
        interval = percentile_interval(values, share, cases=60)
        assert interval is not None
        held += interval.low <= truth <= interval.high
    assert held / rounds >= 0.93


MIXES = {"mostly easy": [1.0] * 8 + [0.9, 0.5], "half and half": [1.0, 0.95, 0.8, 0.2, 0.0], "all alike": [0.8]}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize(("cases", "runs"), [(5, 1), (10, 3), (30, 1), (100, 2)])
def test_a_suite_at_its_limit_passes_and_fails_rarely(mix: str, cases: int, runs: int) -> None:
    """The gate is approximate: at the limit, either wrong decision is made about as rarely as was asked for."""
    random = Random(f"{mix} {cases} {runs}")
    rates = MIXES[mix]
    truth = sum(rates) / len(rates)
    margin = 0.1
    outcomes = {"passed": 0, "failed": 0, "inconclusive": 0}
    rounds = 200
    gates = [
        RunGate(gate=f"pass_rate >= {min(truth + margin, 0.999)} confidence 0.95 margin {margin}"),  # too bad by right
        RunGate(gate=f"pass_rate >= {truth} confidence 0.95"),  # good by right
    ]
    for _ in range(rounds):
        summary = Summary()
        for number in range(cases):
            rate = random.choice(rates)
            summary.add_case(case(number, *(trial(random.random() < rate) for _ in range(runs))))
        too_bad, good = evaluate_gates(gates, summary.numbers, complete=True)
        outcomes["passed"] += too_bad.outcome == "passed" and truth + margin < 0.999
        outcomes["failed"] += good.outcome == "failed"
    assert outcomes["passed"] / rounds <= 0.1
    assert outcomes["failed"] / rounds <= 0.1
