"""What is counted of the verdicts of judges: by judge and criterion, inside groups, with votes and judgings."""

from typing import Any

from atp.stats.judges import JudgedVerdicts, criterion_text, judged_verdicts
from atp.stats.run_numbers import RunNumbers
from atp.stats.suite_gates import GateResult, judges_behind
from atp.stats.summary import Summary
from atp.suite.result import CaseResult, JudgedBy, Outcome, Rejudged, TrialResult, Verdict


def verdict(outcome: Outcome = "passed", criterion: str = "polite", judge: str = "j", **more: Any) -> Verdict:
    by = JudgedBy(name="judge", digest=judge, criterion=criterion)
    return Verdict(type="llm_eval", name=criterion, outcome=outcome, judged=True, judge=by, **more)


def case(*trials: list[Verdict], index: int = 0, **more: Any) -> CaseResult:
    found = [
        TrialResult(key=f"{index}-{run}", agent="bot", case=str(index), run=run, verdicts=verdicts, agent_digest="d1")
        for run, verdicts in enumerate(trials, 1)
    ]
    return CaseResult(agent="bot", case=str(index), index=index, file="f", trials=found, planned=len(found), **more)


def test_verdicts_are_counted_by_judge_and_by_criterion() -> None:
    judged = JudgedVerdicts()
    judged.add(case([verdict(), verdict("failed", "short")], [verdict("failed"), verdict("unjudged", "short")]))
    judged.add(case([verdict(), verdict(criterion="short", judge="other")], index=1))
    whole = judged.judges["j"].verdicts
    assert (whole.passed, whole.judged, whole.unjudged, whole.cases) == (2, 4, 1, 2)
    polite, short = (one.verdicts for _, one in judged.by_criterion("j"))
    assert (polite.passed, polite.judged, polite.cases) == (2, 3, 2)
    assert (short.passed, short.judged, short.unjudged, short.cases) == (0, 1, 1, 1)
    assert judged.judges["other"].verdicts.judged == 1
    assert judged.agents == {"bot": {"d1"}}


def test_verdicts_inside_groups_are_found_with_their_places_and_votes_are_not() -> None:
    votes = [Verdict(type="vote", outcome=one, judged=True) for one in ("passed", "failed", "passed")]
    inner = Verdict(type="all_of", outcome="passed", judged=True, parts=[verdict(parts=votes)])
    group = Verdict(
        type="any_of", outcome="passed", judged=True, parts=[Verdict(type="equals", outcome="failed"), inner]
    )
    verdicts = [Verdict(type="script", outcome="passed", judged=True), group, verdict(criterion="short")]
    assert [(place, criterion_text(one)) for place, one in judged_verdicts(verdicts)] == [
        ((1, 1, 0), "polite"),
        ((2,), "short"),
    ]
    judged = JudgedVerdicts()
    judged.add(case(verdicts))
    assert (judged.judges["j"].voted, judged.judges["j"].split) == (1, 1)


def test_surplus_trials_and_later_runs_of_adaptive_cases_are_left_out() -> None:
    adaptive = case([verdict()], [verdict()], [verdict("failed")], min_runs=2)
    judged = JudgedVerdicts()
    judged.add(adaptive)
    assert (judged.judges["j"].verdicts.passed, judged.judges["j"].verdicts.judged) == (2, 2)
    adaptive.trials[0].surplus = True
    judged = JudgedVerdicts()
    judged.add(adaptive)
    assert judged.judges["j"].verdicts.judged == 1


def test_judgings_of_the_same_conversation_give_flips() -> None:
    again = case([verdict(), verdict(criterion="short")])
    again.trials[0].rejudged = [Rejudged(outcomes=["failed", "passed"]), Rejudged(outcomes=["passed", "passed"])]
    judged = JudgedVerdicts()
    judged.add(again)
    polite, short = (one.flips for _, one in judged.by_criterion("j"))
    assert (polite.pairs, polite.differing) == (3, 2)
    assert (short.pairs, short.differing) == (3, 0)
    assert (judged.judges["j"].flips.pairs, judged.judges["j"].flips.differing) == (6, 2)


def numbers() -> RunNumbers:
    summary = Summary()
    summary.add_case(case([verdict()], tags=["soft"], status="passed"))
    summary.add_case(case([Verdict(type="equals", outcome="passed")], index=1, tags=["exact"], status="passed"))
    return summary.numbers


def test_a_gate_rests_on_the_judges_of_the_cases_that_it_is_about() -> None:
    found = numbers()
    for gate, rests in {
        "pass_rate >= 0.5": True,
        "pass^1 >= 0.5": True,
        "score mean >= 50": True,
        "[soft] pass_rate >= 0.5": True,
        "[exact] pass_rate >= 0.5": False,
        "cost_usd p95 <= 1": False,
        "no gate": False,
    }.items():
        result = GateResult(gate=gate, outcome="passed")
        assert bool(judges_behind(result, found)) == rests, gate


def test_a_case_with_a_pass_rate_rests_on_its_judges() -> None:
    judged = JudgedVerdicts()
    judged.add(case([verdict()], required_rate=0.9))
    judged.add(case([verdict()], index=1))
    assert judged.judges["j"].gates == 1
