"""`all_of`, `any_of`, `none_of`, `at_least`: three-valued logic."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.conftest import make_assertion

from atp.checks.evidence import Evidence
from atp.checks.run_check import run_check
from atp.checks.verdicts import failed, passed, unjudged
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case
from atp.suite.result import Outcome, Transcript, Verdict

Judge = Callable[..., Verdict]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "unjudged")
asked: list[str] = []


class Given(Assertion):
    """An assertion whose outcome is given."""

    type: Literal["given_outcome"]
    """Always `given_outcome`."""
    outcome: Outcome
    """What comes of it."""

    def check(self, evidence: Evidence) -> Verdict:
        asked.append(self.type)
        return {"passed": passed("yes"), "failed": failed("no"), "unjudged": unjudged("who knows")}[self.outcome]


class GivenJudged(Given):
    judged = True
    type: Literal["given_judged"]  # type: ignore[assignment]


@pytest.fixture(autouse=True, scope="module")
def kinds() -> Iterator[None]:
    """Two more kinds, as a plugin would add them, and gone afterwards."""
    ASSERTIONS.register(Given)
    ASSERTIONS.register(GivenJudged)
    yield
    ASSERTIONS.unregister("given_outcome", "given_judged")


def group(kind: str, outcomes: tuple[Outcome, ...], **more: Any) -> Verdict:
    parts = [{"type": "given_outcome", "outcome": outcome} for outcome in outcomes]
    assertion = make_assertion({"type": kind, "assertions": parts, **more})
    return asyncio.run(run_check(assertion, Evidence(case=Case(id="a"), transcript=Transcript())))


@pytest.mark.parametrize("outcomes", [one for size in (1, 2, 3) for one in product(OUTCOMES, repeat=size)])
def test_truth_tables(outcomes: tuple[Outcome, ...]) -> None:
    def expect(wanted: bool, excluded: bool) -> Outcome:
        return "passed" if wanted else "failed" if excluded else "unjudged"

    everything = all(one == "passed" for one in outcomes)
    something = "passed" in outcomes
    assert group("all_of", outcomes).outcome == expect(everything, "failed" in outcomes)
    nothing = all(one == "failed" for one in outcomes)
    assert group("any_of", outcomes).outcome == expect(something, nothing)
    assert group("none_of", outcomes).outcome == expect(nothing, something)
    for k in range(1, len(outcomes) + 1):
        enough = outcomes.count("passed") >= k
        impossible = len(outcomes) - outcomes.count("failed") < k
        assert group("at_least", outcomes, k=k).outcome == expect(enough, impossible)


@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5), st.data())
def test_an_unjudged_part_never_decides(outcomes: list[Outcome], data: st.DataObject) -> None:
    """Whatever the unjudged parts had been, a group that is decided would have been decided in the same way."""
    k = data.draw(st.integers(1, len(outcomes)))
    decided = group("at_least", tuple(outcomes), k=k).outcome
    for filled in ("passed", "failed"):
        known = group("at_least", tuple(filled if one == "unjudged" else one for one in outcomes), k=k).outcome
        assert decided in (known, "unjudged")


@pytest.mark.parametrize("kind", ["all_of", "any_of", "none_of"])
def test_negate_turns_a_group_round_but_not_what_is_unjudged(kind: str) -> None:
    for outcomes in product(OUTCOMES, repeat=2):
        plain, turned = group(kind, outcomes).outcome, group(kind, outcomes, negate=True).outcome
        assert turned == {"passed": "failed", "failed": "passed", "unjudged": "unjudged"}[plain]


def test_parts_are_reported_and_named() -> None:
    verdict = group("all_of", ("passed", "failed"))
    assert [part.outcome for part in verdict.parts] == ["passed", "failed"]
    assert "given_outcome: no" in verdict.message


@pytest.mark.parametrize(
    ("kind", "exact", "asks"),
    [
        ("all_of", "failed", False),
        ("all_of", "passed", True),
        ("any_of", "passed", False),
        ("any_of", "failed", True),
        ("none_of", "passed", False),
        ("none_of", "failed", True),
        ("all_of", "unjudged", True),
    ],
)
def test_a_judge_is_only_asked_while_the_outcome_is_open(kind: str, exact: str, asks: bool) -> None:
    asked.clear()
    parts = [{"type": "given_judged", "outcome": "passed"}, {"type": "given_outcome", "outcome": exact}]
    assertion = make_assertion({"type": kind, "assertions": parts})
    asyncio.run(run_check(assertion, Evidence(case=Case(id="a"), transcript=Transcript())))
    assert ("given_judged" in asked) is asks


def test_a_critical_part_makes_a_failed_group_critical() -> None:
    parts = [{"type": "given_outcome", "outcome": "failed", "critical": True}]
    evidence = Evidence(case=Case(id="a"), transcript=Transcript())
    for kind, critical in (("all_of", True), ("any_of", True), ("none_of", False)):
        assertion = make_assertion({"type": kind, "assertions": parts})
        assert asyncio.run(run_check(assertion, evidence)).critical is critical


def test_groups_nest(judge: Judge) -> None:
    contains = {"type": "contains", "value": "a"}
    nested = {"type": "any_of", "assertions": [{"type": "none_of", "assert": [contains]}, contains]}
    assert judge({"type": "all_of", "assertions": [nested, nested]}, "abc").passed
