"""What gates come to: passed, failed, or inconclusive wherever something was not measured."""

from typing import Any

import pytest

from atp.stats.suite_gates import GateResult, evaluate_gates
from atp.stats.summary import Summary
from atp.suite.gates import RunGate
from atp.suite.result import CaseResult, Transcript, TrialResult, Usage

ERROR: dict[str, Any] = {"status": "error", "blame": "environment"}


def trial(passed: bool = True, usd: float | None = None, **given: Any) -> TrialResult:
    seen = Transcript(usage=Usage(cost_usd=usd))
    found = {"key": "k", "agent": "a", "case": "c", "status": "passed" if passed else "failed", "transcript": seen}
    return TrialResult(**{**found, **given})


def case(*trials: TrialResult, number: int = 0, **given: Any) -> CaseResult:
    status = next((one.status for one in trials if one.status != "passed"), "passed")
    found = {"agent": "a", "case": f"c{number}", "index": number, "status": status, "trials": list(trials)}
    return CaseResult(**{**found, **given})


def cases(passed: int, of: int, **given: Any) -> list[CaseResult]:
    return [case(trial(number < passed), number=number, **given) for number in range(of)]


def evaluate(text: str, found: list[CaseResult], *, complete: bool = True, **scope: Any) -> list[GateResult]:
    summary = Summary()
    for one in found:
        summary.add_case(one)
    return evaluate_gates([RunGate(gate=text, **scope)], summary.numbers, complete=complete)


def only(text: str, found: list[CaseResult], *, complete: bool = True) -> GateResult:
    (result,) = evaluate(text, found, complete=complete)
    return result


@pytest.mark.parametrize(
    ("text", "passed", "outcome"),
    [
        ("pass_rate >= 0.9", 9, "passed"),
        ("pass_rate >= 0.91", 9, "failed"),
        ("pass_rate >= 1", 10, "passed"),
        ("pass_rate >= 0.5 confidence 0.95", 10, "passed"),
        ("pass_rate >= 0.9 confidence 0.95", 10, "inconclusive"),
        ("pass_rate >= 0.9 confidence 0.95", 0, "failed"),
        ("pass_rate >= 0.9 confidence 0.95 margin 0.4", 10, "passed"),
    ],
)
def test_pass_rates(text: str, passed: int, outcome: str) -> None:
    found = only(text, cases(passed, 10))
    assert (found.outcome, found.value, found.cases) == (outcome, passed / 10, 10)
    assert found.basis == ("approximate" if "confidence" in text else "observed")
    assert found.interval is not None
    assert (found.interval[0] or 0) <= passed / 10 <= (found.interval[1] or 1)


def test_a_rate_is_the_mean_of_case_rates_and_not_pooled() -> None:
    often = case(*[trial() for _ in range(9)])
    assert only("pass_rate >= 0.6", [often, case(trial(False), number=1)]).value == 0.5


def test_below_five_cases_a_confidence_decides_nothing() -> None:
    found = only("pass_rate >= 0.5 confidence 0.9", cases(4, 4))
    assert (found.outcome, found.interval) == ("inconclusive", None)
    assert found.reason == "a confidence needs 5 cases, and there are 4"


def test_errors_that_are_not_the_agents_count_against_either_decision() -> None:
    found = [*cases(8, 8), *[case(trial(**ERROR), number=number) for number in (8, 9)]]
    assert only("pass_rate >= 0.8", found).outcome == "passed"
    open_one = only("pass_rate >= 0.9", found)
    assert (open_one.outcome, open_one.value) == ("inconclusive", 1.0)
    assert open_one.reason == "errors that are not the agent's leave it open"
    assert (open_one.known_cases, open_one.cases, open_one.judged_runs, open_one.errors) == (8, 10, 8, 2)
    assert open_one.with_errors == (0.8, 1.0)
    failing = [*cases(3, 8), *found[8:]]
    assert only("pass_rate >= 0.9", failing).outcome == "failed"


def test_an_incomplete_case_never_passes_and_fails_only_if_its_runs_could_not_help() -> None:
    blocked = case(trial(status="blocked"), number=20)
    found = only("pass_rate >= 0.1", [*cases(9, 10), blocked])
    assert (found.outcome, found.reason) == ("inconclusive", "1 run never came to an end")
    assert only("pass_rate >= 0.9", [*cases(5, 10), blocked]).outcome == "failed"
    assert only("pass_rate >= 0.9", [*cases(8, 9), blocked]).outcome == "inconclusive"


def test_a_run_that_was_stopped_decides_nothing() -> None:
    for passed in (0, 10):
        found = only("pass_rate >= 0.5", cases(passed, 10), complete=False)
        assert (found.outcome, found.reason) == ("inconclusive", "the run did not come to its end")


def test_pass_hat_k_and_pass_at_k() -> None:
    runs = [case(trial(), trial(), trial(False)), case(trial(), trial(), trial(), number=1)]
    assert only("pass^2 >= 0.6", runs).value == pytest.approx((1 / 3 + 1) / 2)
    assert only("pass@2 >= 1", runs).outcome == "passed"
    assert only("pass^3 >= 0.6", runs).outcome == "failed"
    short = only("pass^4 >= 0.1", runs)
    assert (short.outcome, short.value) == ("inconclusive", None)
    assert short.reason == "it needs 4 judged runs of every case, and one has 3"


def test_pass_hat_k_with_an_error() -> None:
    runs = [case(trial(), trial(), trial(), trial(**ERROR))]
    assert only("pass^3 >= 0.2", runs).outcome == "passed"
    assert only("pass^3 >= 0.9", runs).outcome == "inconclusive"


def test_a_mean_needs_the_value_of_every_run() -> None:
    paid = [case(trial(usd=0.01 * (number + 1)), number=number) for number in range(5)]
    found = only("cost_usd <= 0.03", paid)
    assert (found.outcome, found.basis) == ("passed", "observed")
    assert found.value == pytest.approx(0.03)
    assert only("cost_usd <= 0.029", paid).outcome == "failed"
    unpaid = only("cost_usd <= 0.03", [*paid, case(trial(), number=5)])
    assert (unpaid.outcome, unpaid.reason) == ("inconclusive", "1 run did not report `cost_usd`")


def test_percentiles_take_an_unknown_value_for_the_worst() -> None:
    paid = [case(trial(usd=0.01), number=number) for number in range(30)]
    assert only("cost_usd p90 <= 0.01", paid).outcome == "passed"
    some_unknown = [*paid, case(trial(), number=30), case(trial(), number=31)]
    assert only("cost_usd p90 <= 0.01", some_unknown).outcome == "passed"
    assert only("cost_usd p95 <= 0.01", some_unknown).outcome == "inconclusive"
    assert only("cost_usd p50 <= 0.009", some_unknown).outcome == "failed"
    assert only("cost_usd p50 >= 0.011", some_unknown).outcome == "failed"


def test_a_percentile_with_a_confidence_is_exact_for_one_run_a_case() -> None:
    paid = [case(trial(usd=0.01), number=number) for number in range(60)]
    found = only("cost_usd p95 <= 0.01 confidence 0.95", paid)
    assert (found.outcome, found.basis) == ("passed", "exact")
    few = only("cost_usd p95 <= 0.01 confidence 0.95", paid[:20])
    assert few.outcome == "inconclusive"
    assert few.reason == "it takes at least 59 cases to be so sure, and there are 20"
    assert only("cost_usd p95 <= 0.009 confidence 0.95", paid).outcome == "failed"
    twice = [case(*one.trials, *one.trials, number=one.index) for one in paid]
    assert only("cost_usd p95 <= 0.01 confidence 0.95", twice).basis == "approximate"


def test_a_metric_that_nobody_reports_is_inconclusive() -> None:
    found = only("cost_us mean <= 1", cases(10, 10))
    assert (found.outcome, found.value) == ("inconclusive", None)
    assert found.reason == "no run reported `cost_us`; did you mean `cost_usd`?"


def test_tags_files_and_agents_are_selected() -> None:
    found = [
        *cases(5, 5, tags=["refund"], file="a.yaml"),
        *cases(0, 5, tags=["other"], file="b.yaml"),
    ]
    assert only("[refund] pass_rate >= 1", found).outcome == "passed"
    assert only("[other] pass_rate >= 1", found).outcome == "failed"
    missing = only("[refunds] pass_rate >= 1", found)
    assert (missing.outcome, missing.cases) == ("inconclusive", 0)
    assert missing.reason == "no case that ran has the tag `refunds`; did you mean `refund`?"
    (of_file,) = evaluate("pass_rate >= 1", found, of_suite=True, file="a.yaml")
    assert (of_file.outcome, of_file.cases, of_file.file) == ("passed", 5, "a.yaml")


def test_every_agent_has_to_pass() -> None:
    found = [*cases(5, 5, agent="good"), *cases(1, 5, agent="bad")]
    results = evaluate("pass_rate >= 0.9", found)
    assert [(one.agent, one.outcome) for one in results] == [("good", "passed"), ("bad", "failed")]
    assert only("[agent:good] pass_rate >= 0.9", found).outcome == "passed"


def test_a_gate_that_can_not_be_read_never_passes() -> None:
    found = only("nonsense", cases(5, 5))
    assert (found.outcome, found.reason) == ("inconclusive", "the gate can't be read")


def test_variations_weigh_the_same() -> None:
    mixed = case(*[trial(variation=0) for _ in range(8)], trial(False, variation=1), trial(False, variation=1))
    assert only("pass_rate >= 0.5", [mixed]).value == 0.5


def test_an_open_gate_says_what_would_decide_it() -> None:
    found = only("pass_rate >= 0.9 confidence 0.95 margin 0.1", cases(8, 10))
    assert found.outcome == "inconclusive"
    assert found.reason is not None
    assert found.reason.startswith("it passes when the whole interval is above 0.8, and fails when it is below 0.9; ")
