"""Counts and exit codes of a run (rulings §1)."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.stats.stability import case_stability, case_status
from atp.stats.suite_gates import GateResult
from atp.stats.summary import Summary, percent
from atp.suite.result import Blame, CaseResult, Status, Transcript, TrialResult, Turn

Outcome = tuple[Status, Blame | None]


def case(*outcomes: Outcome | Status, rate: float | None = None) -> CaseResult:
    trials = []
    for one in outcomes:
        status, blame = one if isinstance(one, tuple) else (one, None)
        trials.append(TrialResult(key="k", agent="a", case="c", status=status, blame=blame))
    return CaseResult(agent="a", case="c", trials=trials, status=case_status(trials, rate))


def summary(*cases: CaseResult, skipped: int = 0) -> Summary:
    made = Summary()
    for one in cases:
        made.add_case(one)
    for _ in range(skipped):
        made.add_skipped()
    return made


@pytest.mark.parametrize(
    ("outcomes", "counted"),
    [
        (["passed"], "passed"),
        (["failed"], "failed"),
        (["timeout"], "failed"),
        ([("error", "agent")], "failed"),
        ([("error", "judge")], "errors"),
        ([("error", "environment")], "errors"),
        ([("error", "simulator")], "errors"),
        ([("error", "internal")], "errors"),
        ([("error", None)], "errors"),
        ([("error", "judge"), ("error", "agent")], "failed"),
        ([("error", "judge"), "passed"], "errors"),
        (["blocked"], "blocked"),
        (["cancelled"], "cancelled"),
        (["passed", "failed"], "failed"),
        (["passed", "passed"], "passed"),
        (["skipped"], "skipped"),
    ],
)
def test_where_a_case_is_counted(outcomes: list[Any], counted: str) -> None:
    counts = summary(case(*outcomes)).counts()
    names = ("passed", "failed", "errors", "blocked", "cancelled", "skipped")
    assert {name: counts[name] for name in names} == {name: int(name == counted) for name in names}
    assert counts["total"] == 1


def test_document_4_s_summary() -> None:
    made = summary(*[case("passed")] * 40, *[case("failed")] * 2)
    counts = made.counts()
    assert (counts["total"], counts["passed"], counts["failed"], counts["skipped"]) == (42, 40, 2, 0)
    assert counts["overall_pass_rate"] == 95.2
    repeated = summary(*[case("passed", "passed", "passed")] * 38, *[case("passed", "failed", "passed")] * 4).counts()
    assert (repeated["total_cases"], repeated["total_runs"]) == (42, 126)
    assert (repeated["stable_cases"], repeated["unstable_cases"]) == (38, 4)
    assert repeated["overall_pass_rate"] == 96.8


@given(st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=4), st.floats(0, 100), st.sampled_from([None, 0.5]))
def test_a_case_that_fails_by_its_score_has_no_full_rates(
    scores: list[float | None], least: float, rate: float | None
) -> None:
    """Whatever the figures are called, a failed case is never stable, and its pass rate is below 100%."""
    trials = [TrialResult(key="k", agent="a", case="c", score=one) for one in scores]
    status = case_status(trials, rate, least)
    made = CaseResult(
        agent="a", case="c", trials=trials, status=status, min_score=least, required_rate=rate, planned=len(trials)
    )
    counts, found = summary(made).counts(), case_stability(made)
    if status == "failed":
        assert (counts["failed"], counts["stable_cases"], found.stable) == (1, 0, False)
        assert counts["overall_pass_rate"] < 100
        assert found.pass_rate < 100
    else:
        assert (counts["passed"], counts["overall_pass_rate"], found.pass_rate) == (1, 100, 100)
    assert counts["passed_runs"] == found.passed


PASSED, FAILED = case("passed"), case("failed")
ERROR, BLOCKED = case(("error", "environment")), case("blocked")


GOOD, BAD, OPEN = (GateResult(gate="g", outcome=one) for one in ("passed", "failed", "inconclusive"))


@pytest.mark.parametrize(
    ("cases", "skipped", "more", "code"),
    [
        ([PASSED], 0, {}, 0),
        ([PASSED], 3, {}, 0),
        ([PASSED, FAILED], 0, {}, 1),
        ([FAILED, ERROR, BLOCKED], 0, {"stopped": True, "unwritten": True}, 1),
        ([case("timeout")], 0, {}, 1),
        ([case(("error", "agent"))], 0, {}, 1),
        ([PASSED, ERROR], 0, {}, 3),
        ([PASSED, BLOCKED], 0, {}, 3),
        ([PASSED, case("cancelled")], 0, {}, 3),
        ([PASSED], 0, {"stopped": True}, 3),
        ([PASSED], 0, {"unwritten": True}, 3),
        ([], 0, {"stopped": True}, 3),
        # Nothing ran.
        ([], 0, {}, 2),
        ([], 3, {}, 2),
        # Enough of the trials passed.
        ([case("passed", ("error", "environment"), rate=0.5)], 0, {}, 0),
        ([FAILED], 0, {"interrupted": True}, 130),
        # Gates.
        ([PASSED], 0, {"gates": [GOOD]}, 0),
        ([PASSED], 0, {"gates": [GOOD, BAD, OPEN]}, 1),
        ([PASSED], 0, {"gates": [OPEN]}, 4),
        ([PASSED, ERROR], 0, {"gates": [OPEN]}, 3),
        ([PASSED, ERROR], 0, {"gates": [BAD]}, 1),
        ([FAILED], 0, {"gates": [GOOD]}, 1),
    ],
)
def test_exit_codes(cases: list[CaseResult], skipped: int, more: dict[str, Any], code: int) -> None:
    assert summary(*cases, skipped=skipped).exit_code(**more) == code


STATUSES: st.SearchStrategy[Status] = st.sampled_from(["passed", "failed", "timeout", "error", "blocked", "cancelled"])
BLAMES: st.SearchStrategy[Blame | None] = st.sampled_from(["agent", "judge", "environment", None])
CASES = st.lists(st.tuples(STATUSES, BLAMES), min_size=1, max_size=4)


@given(st.lists(CASES, max_size=12), st.integers(0, 3))
def test_no_case_leaves_the_denominator(cases: list[list[Outcome]], skipped: int) -> None:
    made = summary(*[case(*outcomes) for outcomes in cases], skipped=skipped)
    counts = made.counts()
    parts = ("passed", "failed", "errors", "blocked", "cancelled", "skipped")
    assert counts["total"] == sum(counts[name] for name in parts) == len(cases) + skipped
    assert counts["total_runs"] == sum(len(outcomes) for outcomes in cases)
    assert counts["stable_cases"] + counts["unstable_cases"] == sum(len(outcomes) > 1 for outcomes in cases)
    everything_passed = bool(cases) and all(status == "passed" for outcomes in cases for status, _ in outcomes)
    assert (made.exit_code() == 0) == everything_passed


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_share_is_never_rounded_up_to_a_whole_number(part: int, whole: int) -> None:
    part = min(part, whole)
    found = percent(part, whole)
    assert abs(found - 100 * part / whole) <= 0.1 + 1e-9
    for gate in (50, 80, 100):
        assert (found >= gate) == (100 * part / whole >= gate)


def test_memory_does_not_grow_with_cases() -> None:
    made = Summary()
    turns = [Turn(turn=1, input="x", output="y" * 10_000)]

    def feed(count: int) -> None:
        for number in range(count):
            text = "".join(one.output for one in turns) + str(number)
            result = TrialResult(
                key="k", agent="a", case=str(number), transcript=Transcript(turns=[Turn(turn=1, input="", output=text)])
            )
            made.add_case(CaseResult(agent="a", case=str(number), trials=[result]))

    feed(10)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    feed(500)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 100_000
    assert made.counts()["passed"] == 510
