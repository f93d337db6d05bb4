"""What is known of a case's long-run pass rate: its interval, and the decision of its gate."""

from collections.abc import Iterable, Iterator

from atp.stats.case_counts import CaseCounts, case_counts
from atp.stats.gates import decide
from atp.stats.intervals import Interval, case_interval
from atp.stats.sequential import decide_in_order
from atp.stats.stability import is_judged, is_other_error
from atp.suite.result import CaseResult, Decision, TrialResult


def observed_interval(counts: CaseCounts) -> Interval | None:
    """Where a case's long-run pass rate lies with 95% confidence, to show; None if no trial came to an end."""
    if not counts.judged + counts.errors:
        return None
    return case_interval(counts.passed, counts.judged, counts.errors)


def decide_case(case: CaseResult, *, complete: bool) -> Decision | None:
    """The decision of a case's gate, where the number of runs was fixed beforehand; None if no trial was judged.

    By the exact test if all runs that were planned are there. After a stop, or where the run went on with another
    number of runs, by the sequential test, which is valid whenever it is looked at. A case of which a trial was
    blocked, cancelled, skipped or never run can't pass.
    """
    gate, counts = case.gate, case_counts(case)
    assert gate.rate is not None
    if not counts.judged:
        return None
    complete = complete and counts.judged + counts.errors == len(case.trials)
    if complete and not case.other_runs:
        return decide(counts.passed, counts.judged, counts.errors, gate.rate, gate.margin, gate.alpha)
    results = results_in_order(case.trials, case.variations)
    decision = decide_in_order(results, gate.rate, gate.margin, gate.alpha, case.variations)
    return decision if complete or decision == "failed" else "inconclusive"


def results_in_order(trials: Iterable[TrialResult], variations: int) -> Iterator[tuple[bool, bool]]:
    """The results as the sequential test takes them, in run order, up to the first run that is not whole."""
    found = {(trial.run, trial.variation): as_result(trial) for trial in trials}
    for run in range(1, max((run for run, _ in found), default=0) + 1):
        results = [found.get((run, variation)) for variation in range(variations)]
        if None in results:
            return
        yield from (one for one in results if one is not None)


def as_result(trial: TrialResult) -> tuple[bool, bool] | None:
    """Whether a trial passed, where the gate would pass and where it would fail; None if it came to no result.

    The two differ for an error that is not the agent's: it counts against either decision.
    """
    if is_judged(trial):
        return (trial.status == "passed",) * 2
    return (False, True) if is_other_error(trial) else None
