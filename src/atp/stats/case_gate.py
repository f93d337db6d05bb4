"""What is known of a case's long-run pass rate: the counts, the interval, the decision of its gate, and a sentence."""

from collections.abc import Iterable, Iterator
from math import ceil

from atp.base.numbers import between_text, counted, percent_text
from atp.stats.case_counts import CaseCounts, case_counts
from atp.stats.gates import MOST_RUNS, decide, runs_to_tell
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


def case_text(case: CaseResult) -> str | None:
    """What the runs of a case say of its long-run pass rate, in a sentence for people; None if none came to an end."""
    counts = case_counts(case)
    observed = observed_interval(counts)
    if observed is None:
        return None
    interval = observed if case.interval is None else Interval(*case.interval)
    text = rate_text(counts.passed, counts.judged, interval, counts.errors, case.estimate)
    if case.status != "inconclusive":
        return text
    more = _undecided_text(case) if case.min_runs else _more_text(case, counts)
    return f"{text}; {more}"


def rate_text(
    passed: int, judged: int, interval: Interval | None, other_errors: int = 0, estimate: float | None = None
) -> str:
    """`passed 9 of 10; between 60% and 98% in the long run`: a rate, and how sure it is.

    Where the runs stopped because of their results, the observed share is biased, and the sentence has the `estimate`.
    """
    errors = f" and {counted(other_errors, 'error')} that {'is' if other_errors == 1 else 'are'} not the agent's"
    text = f"passed {passed:,} of {judged:,}{errors if other_errors else ''}"
    if interval is None:
        return text
    about = "" if estimate is None else f"about {percent_text(estimate)}, "
    return f"{text}; {about}{between_text(interval)} in the long run"


def _more_text(case: CaseResult, counts: CaseCounts) -> str:
    """`about 20 more runs would tell`: what it would take to decide a gate that is inconclusive."""
    gate = case.gate
    assert gate.rate is not None
    if case.missing or counts.judged + counts.errors < len(case.trials):
        return "not all of its trials came to an end, so it can't pass"
    more = runs_to_tell(counts.passed, counts.judged, gate.rate, gate.margin, gate.alpha)
    if more is None:
        return f"too near to the {percent_text(gate.rate)} asked for: not even {MOST_RUNS:,} runs would tell"
    if more:
        return f"about {counted(ceil(more / case.variations), 'more run')} would tell"
    if case.other_runs:
        return "it takes more, because the number of runs was changed after a look at them"
    return "the errors leave it open"


def _undecided_text(case: CaseResult) -> str:
    """Why a case whose number of runs was not fixed is inconclusive, and what would help."""
    if case.stopped_by in ("max-runs", "futility"):
        return f"{counted(case.planned_runs, 'run')} did not decide; a greater --max-runs or a wider margin would help"
    if case.stopped_by == "errors":
        return "its first runs all ended in errors that are not the agent's; --resume runs it again"
    if case.stopped_by is None:  # judged again, with another outcome
        return f"the {counted(case.planned_runs, 'recorded run')} did not decide; run the case again"
    return "the run was stopped before it was decided; --resume goes on"
