"""Pairing the cases of two runs, and what a comparison records of them."""

from math import isfinite
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atp.base.diagnostics import LoadError
from atp.history.compare import compare_runs
from atp.history.figures import Answer, CaseFigures, Figure, RunFigures
from atp.stats.comparison import Comparison, combined_exit_code
from atp.suite.metrics import LARGEST

METRIC = st.floats(-LARGEST, LARGEST)


def case(id: str, passed: int = 5, judged: int = 5, **given: Any) -> CaseFigures:  # noqa: A002
    rate = passed / judged if judged else None
    status: Any = "passed" if passed == judged else "failed"
    usual = {"agent": "bot", "file": "a.yaml", "case_digest": "1", "status": status, "rate": rate}
    return CaseFigures(**{"id": id, "passed": passed, "judged": judged, **usual, **given})


def run(*cases: CaseFigures, **given: Any) -> RunFigures:
    return RunFigures(**{"run": "r", "at": 0.0, "host": "h", "cases": list(cases), **given})


def compare(a: RunFigures, b: RunFigures, agents: tuple[str, str] | None = None, **given: Any) -> Comparison:
    return compare_runs(a, b, ("A", "B"), agents, **given)


def classes(found: Comparison) -> dict[str, str]:
    return {one.id: one.kind for one in found.cases}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"case_digest": "2"}, "the case changed"),
        ({"judge_digest": "2"}, "its judge changed"),
        ({"judge_digest": "2", "simulator_digest": "3"}, "its judge and the simulated user changed"),
        ({"golden_digests": {0: "1", 1: "3"}}, "its golden files changed"),
    ],
)
def test_what_decides_a_case_must_be_the_same(change: dict[str, Any], why: str) -> None:
    before = case("x", golden_digests={0: "1", 1: "2"})
    found = compare(run(before, case("y")), run(case("x", 0, **change), case("y")))
    assert (found.cases[0].kind, found.cases[0].why, found.cases[0].p_value) == ("changed", why, None)
    assert (found.overall.cases, found.regressed) == (1, 0)


def test_a_journal_of_an_early_version_is_compared_with_a_note() -> None:
    found = compare(run(case("x", case_digest=None)), run(case("x", 0)))
    assert classes(found) == {"x": "regressed"}
    assert found.notes == ["1 case may have changed: an early version of ATP did not record that"]


def test_cases_are_paired_by_file_first() -> None:
    a = run(case("x", file="a.yaml"), case("x", 0, file="b.yaml"), case("z", file="a.yaml"))
    b = run(case("x", 0, file="b.yaml"), case("x", file="a.yaml"), case("z", file="c.yaml"), case("new"))
    found = compare(a, b)
    assert [(one.id, one.file, one.kind) for one in found.cases] == [
        ("x", "b.yaml", "same"),
        ("x", "a.yaml", "same"),
        ("z", "c.yaml", "same"),
        ("new", "a.yaml", "only in B"),
    ]
    ambiguous = compare(run(case("x", file="1"), case("x", file="2")), run(case("x", file="3")))
    assert [one.kind for one in ambiguous.cases] == ["only in B", "only in A", "only in A"]


def test_agents_are_compared_each_with_itself_or_with_the_one_that_is_named() -> None:
    both = run(case("x", agent="one"), case("x", 0, agent="two"))
    assert {(one.agent, one.kind) for one in compare(both, both).cases} == {("one", "same"), ("two", "same")}
    named = compare(both, both, ("one", "two"))
    assert [(one.agent, one.kind) for one in named.cases] == [("two", "regressed")]
    assert (named.a.agent, named.b.agent, named.a.pass_rate, named.b.pass_rate) == ("one", "two", 100, 0)
    with pytest.raises(LoadError, match="A has no agent `three`"):
        compare(both, both, ("three", "two"))
    columns = run(case("x", agent="bot [a=1]"), case("x", agent="bot [a=2]"), case("x", agent="bat"))
    with pytest.raises(LoadError) as error:
        compare(columns, columns, ("bot", "bat"))
    assert error.value.diagnostics[0].hint == "name one of its columns: `bot [a=1]`, `bot [a=2]`"


def test_rates_are_means_over_variations() -> None:
    found = compare(run(case("x", 5, 10, rate=0.6)), run(case("x", 5, 10, rate=0.4)))
    assert (found.cases[0].difference, found.cases[0].observed) == (-20, "worse")


def test_durations_are_compared_under_the_same_conditions_only() -> None:
    def slow(factor: float) -> list[CaseFigures]:
        spent = {name: Figure(median=factor * 100, runs=5) for name in ("duration_ms", "tokens")}
        return [case(str(number), figures=spent) for number in range(8)]

    found = compare(run(*slow(1)), run(*slow(2)))
    assert [(one.name, one.shift, one.scale) for one in found.figures] == [
        ("duration_ms", 100, "percent"),
        ("tokens", 100, "percent"),
    ]
    assert found.figures[0].p_value == pytest.approx(2 / 2**8)
    for change, why in (
        ({"parallel": 4}, "A ran 1 trial at a time, B 4"),
        ({"host": "other"}, "the runs were on different machines"),
    ):
        found = compare(run(*slow(1)), run(*slow(2), **change))
        assert [one.name for one in found.figures] == ["tokens"]
        assert found.notes == [f"durations are not compared: {why}"]


def test_figures_that_can_be_0_are_compared_by_their_differences() -> None:
    def scored(*scores: float) -> list[CaseFigures]:
        return [case(str(place), figures={"score": Figure(median=one, runs=5)}) for place, one in enumerate(scores)]

    (found,) = compare(run(*scored(90, 80, 70)), run(*scored(80, 70, 0))).figures
    assert (found.scale, found.shift, found.interval, found.cases) == ("difference", -25, None, 3)


@given(st.lists(st.tuples(METRIC, METRIC), min_size=1, max_size=8))
@example([(1e100, 1e-300), (1e-300, 1e100)])
@example([(1e100, -1e100)] * 6)
def test_metrics_of_any_size_are_compared_by_finite_numbers(values: list[tuple[float, float]]) -> None:
    def measured(side: int) -> list[CaseFigures]:
        figures = [Figure(median=pair[side], runs=1) for pair in values]
        return [case(str(number), figures={"m": one}) for number, one in enumerate(figures)]

    (found,) = compare(run(*measured(0)), run(*measured(1))).figures
    assert all(map(isfinite, [found.a, found.b, found.shift, found.p_value, *(found.interval or ())]))


@pytest.mark.parametrize(
    ("a", "b", "fail_on", "code"),
    [
        ([case("x")], [case("x")], "regression", 0),
        ([case("x")], [case("x", 0)], "regression", 1),
        ([case("x")], [case("x", 4)], "regression", 0),
        ([case("x")], [case("x", 4)], "observed", 1),
        ([case("x")], [case("y")], "regression", 2),
        ([case("x")], [case("x", 0, 0, errors=5)], "regression", 2),
        ([case("x")], [case("x", 4, 4, errors=1)], "regression", 3),
        ([case("x", missing=1)], [case("x")], "regression", 3),
        ([case("x"), case("y", errors=1)], [case("x", 0), case("y")], "regression", 1),
    ],
)
def test_exit_codes(a: list[CaseFigures], b: list[CaseFigures], fail_on: Any, code: int) -> None:
    assert compare(run(*a), run(*b)).exit_code(fail_on) == code


def test_the_exit_code_of_a_run_is_never_made_weaker() -> None:
    pairs = {(0, 0): 0, (0, 4): 4, (0, 3): 3, (0, 2): 2, (0, 1): 1, (4, 0): 4, (4, 3): 3, (4, 1): 1}
    pairs |= {(1, other): 1 for other in range(5)} | {(130, other): 130 for other in range(5)}
    pairs |= {(3, 0): 3, (3, 1): 1, (3, 2): 3, (3, 4): 3, (2, 0): 2, (2, 1): 2, (2, 3): 2}
    assert {pair: combined_exit_code(*pair) for pair in pairs} == pairs


def test_answers_show_what_passed_beside_what_did_not() -> None:
    answers = {"passed": Answer(outputs=["good"]), "failed": Answer(outputs=["bad"], error="no")}
    a, b = run(case("x", 4, answers=answers)), run(case("x", 1, answers=answers))
    assert not compare(a, b).cases[0].answers
    shown = compare(a, b, answers=True).cases[0].answers
    assert shown
    assert {side: (one.outputs, one.passed) for side, one in shown.items()} == {
        "A": (["good"], True),
        "B": (["bad"], False),
    }
    shown = compare(b, a, answers=True).cases[0].answers
    assert shown
    assert [one.passed for one in shown.values()] == [False, True]


def test_a_case_in_quarantine_is_not_compared_whatever_it_came_to() -> None:
    others = [case(str(number)) for number in range(6)]
    for passed in (0, 5):
        found = compare(
            run(case("x"), *others), run(case("x", passed, 5 + passed, errors=1, quarantined=True), *others)
        )
        assert classes(found)["x"] == "quarantined"
        assert (found.overall.cases, found.regressed, found.in_error, found.exit_code()) == (6, 0, [], 0)


def test_why_little_is_said_of_single_cases_of_runs_auto() -> None:
    first, second = case("x", 30, 31, sequential=True), case("x", 2, 5, sequential=True)
    (note,) = compare(run(first), run(second)).notes
    assert "--runs auto stops a case because of its results" in note
    assert compare(run(first), run(first)).notes == []
    assert compare(run(case("x", 5, 6)), run(case("x", 4, 6))).notes == []
