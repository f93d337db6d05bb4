"""Whose fault it is that runs of a case differ: by what was said, by which checks failed, by what judges said twice."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.stats.flaky import flakiness
from atp.suite.result import CaseResult, Rejudged, Status, Transcript, TrialResult, Verdict

HELLO = ("user", "hello")


def verdict(outcome: Literal["passed", "failed"], *, judged: bool = False, type: str = "contains") -> Verdict:  # noqa: A002
    return Verdict(type="expectation" if judged else type, outcome=outcome, judged=judged)


def trial(status: Status, *said: tuple[str, str], run: int = 1, variation: int = 0, **more: Any) -> TrialResult:
    messages = [{"role": role, "content": content} for role, content in said or (HELLO, ("assistant", status))]
    return TrialResult(
        key="k", agent="a", case="c", status=status, run=run, variation=variation,
        transcript=Transcript(messages=messages), **more,
    )  # fmt: skip


def blame(*trials: TrialResult) -> str | None:
    found = flakiness(CaseResult(agent="a", case="c", trials=list(trials), planned=len(trials)))
    return found.blame if found is not None else None


def test_runs_that_agree_are_not_flaky() -> None:
    assert blame(trial("passed"), trial("passed", run=2)) is None
    assert blame(trial("failed"), trial("timeout", run=2)) is None
    assert blame(trial("passed")) is None


def test_errors_that_are_not_the_agents_are_no_flakiness() -> None:
    assert blame(trial("passed"), trial("error", run=2, blame="environment"), trial("cancelled", run=3)) is None
    assert blame(trial("passed"), trial("error", run=2, blame="agent")) == "agent"


def test_variations_of_the_prompt_may_differ() -> None:
    assert blame(trial("passed"), trial("failed", variation=1)) is None


def test_exact_checks_blame_the_agent() -> None:
    failing = trial("failed", run=2, verdicts=[verdict("failed"), verdict("failed", judged=True)])
    assert blame(trial("passed", verdicts=[verdict("passed"), verdict("passed", judged=True)]), failing) == "agent"


def test_a_script_is_no_judge() -> None:
    failing = trial("failed", run=2, verdicts=[Verdict(type="script", outcome="failed", judged=True)])
    assert blame(trial("passed"), failing) == "agent"


@pytest.mark.parametrize("status", ["timeout", "error"])
def test_a_run_that_no_check_failed_blames_the_agent(status: Status) -> None:
    assert blame(trial("passed"), trial(status, run=2, blame="agent", verdicts=[])) == "agent"


def judged(status: Status, *again: Status, run: int = 1) -> TrialResult:
    outcome: Literal["passed", "failed"] = "passed" if status == "passed" else "failed"
    return trial(
        status, run=run, verdicts=[verdict("passed"), verdict(outcome, judged=True)],
        rejudged=[Rejudged(status=one) for one in again],
    )  # fmt: skip


def test_a_judge_that_was_never_asked_twice_is_in_doubt() -> None:
    assert blame(judged("passed"), judged("failed", run=2)) == "agent or judge"
    assert blame(judged("passed"), judged("failed", "failed", run=2)) == "agent or judge"
    assert blame(judged("passed"), judged("failed", "error", run=2)) == "agent or judge"


def test_a_judge_that_changed_its_verdict_is_to_blame() -> None:
    assert blame(judged("passed", "passed"), judged("failed", "passed", run=2)) == "judge"
    assert blame(judged("passed", "failed", "passed"), judged("failed", "failed", run=2)) == "judge"


def test_a_judge_that_never_changed_its_verdict_clears_itself() -> None:
    assert blame(judged("passed", "passed"), judged("failed", "failed", run=2)) == "agent"


def test_parts_of_groups_are_looked_at() -> None:
    parts = [verdict("passed"), verdict("failed", judged=True)]
    group = Verdict(type="all_of", outcome="failed", judged=True, parts=parts)
    assert blame(judged("passed"), trial("failed", run=2, verdicts=[group])) == "agent or judge"
    group.parts.append(verdict("failed"))
    assert blame(judged("passed"), trial("failed", run=2, verdicts=[group])) == "agent"


ASKS, WANTS = ("assistant", "what for?"), ("user", "a room")


def test_the_first_message_that_differs_tells_the_simulator_from_the_agent() -> None:
    passing = trial("passed", HELLO, ASKS, WANTS, ("assistant", "booked"))
    by_user = trial("failed", HELLO, ASKS, ("user", "nothing"), ("assistant", "bye"), run=2)
    by_agent = trial("failed", HELLO, ("assistant", "go away"), ("user", "oh"), run=2)
    gave_up = trial("failed", HELLO, ASKS, run=2)
    assert blame(passing, by_user) == "simulator"
    assert blame(passing, by_agent) == "agent"
    assert blame(passing, gave_up) == "simulator"  # the user said no more
    assert blame(passing, by_user, by_agent) == "agent"


def test_a_run_is_compared_with_the_one_that_it_has_most_in_common_with() -> None:
    near = trial("passed", HELLO, ASKS, WANTS, ("assistant", "booked"))
    far = trial("passed", ("user", "hi"), ASKS, WANTS, ("assistant", "booked"), run=2)
    failing = trial("failed", HELLO, ASKS, WANTS, ("assistant", "no"), run=3)
    assert blame(far, near, failing) == "agent"


STATUSES = st.sampled_from(["passed", "failed", "timeout", "error", "blocked", "cancelled"])


@given(st.lists(st.tuples(STATUSES, st.booleans(), st.integers(0, 1), st.lists(STATUSES, max_size=2)), max_size=6))
def test_a_blame_is_given_whenever_runs_differ_and_never_else(
    made: list[tuple[Status, bool, int, list[Status]]],
) -> None:
    trials = [
        trial(status, run=number, variation=variation, blame="agent" if status == "error" else None,
              verdicts=[verdict("passed" if status == "passed" else "failed", judged=is_judged)],
              rejudged=[Rejudged(status=one) for one in again])
        for number, (status, is_judged, variation, again) in enumerate(made, 1)
    ]  # fmt: skip
    differs = any(
        {"passed"}
        < {one.status for one in trials if one.variation == number and one.status not in ("blocked", "cancelled")}
        for number in (0, 1)
    )
    found = blame(*trials)
    assert (found is not None) == differs
    if found == "judge":
        assert any(one.rejudged for one in trials)
    if found == "agent or judge":
        assert any(one.verdicts[0].judged for one in trials)
