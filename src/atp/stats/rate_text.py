"""What the runs of a case say of its long-run pass rate, in a sentence for people who know no statistics."""

from math import ceil

from atp.base.numbers import between_text, counted, percent_text
from atp.stats.case_counts import CaseCounts, case_counts
from atp.stats.case_gate import observed_interval
from atp.stats.gates import MOST_RUNS, runs_to_tell
from atp.stats.intervals import Interval
from atp.suite.result import CaseResult


def case_rate_text(case: CaseResult) -> str | None:
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
    That of a run that was cut short is the mean of a few first runs, and can lie outside of what all runs say: then the
    interval says more.
    """
    errors = f" and {counted(other_errors, 'error')} that {'is' if other_errors == 1 else 'are'} not the agent's"
    text = f"passed {passed:,} of {judged:,}{errors if other_errors else ''}"
    if interval is None:
        return text
    fits = estimate is not None and interval.low <= estimate <= interval.high
    about = f"about {percent_text(estimate)}, " if estimate is not None and fits else ""
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
