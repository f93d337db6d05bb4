"""The status of a case from its trials, and its stability over them, in the figures of the JSONL test package."""

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from atp.base.json.canonical import canonical
from atp.base.json.found import MISSING, SearchCutShort, read_whole
from atp.stats.averages import deviation, mean
from atp.stats.score import below
from atp.suite.result import CaseResult, CaseStatus, Decision, Status, TrialResult

Classification = Literal["stable", "mostly_stable", "unstable", "highly_unstable"]

WORST_FIRST: tuple[Status, ...] = ("failed", "timeout", "error", "blocked", "cancelled", "passed", "skipped")
"""A case has the first of these statuses that one of its trials has."""
_ROUNDING = 1e-9


def case_status(
    trials: Sequence[TrialResult],
    required_rate: float | None = None,
    min_score: float | None = None,
    decision: Decision | None = None,
) -> CaseStatus:
    """The status of a case: that of its worst trial, or `passed` when enough trials passed.

    Every trial counts, also one that ended in an error. The mean of the scores is compared with `min_score`. Where the
    gate of the case came to a `decision`, that is the status in place of what the trials come to.
    """
    worst: CaseStatus = decision or _worst(trials)
    if required_rate is not None and decision is None and worst not in ("passed", "skipped"):
        passed = sum(trial.status == "passed" for trial in trials)
        if passed >= required_rate * len(trials) - _ROUNDING:
            worst = "passed"
    if min_score is not None and worst == "passed" and below(case_score(trials), min_score):
        return "failed"
    return worst


def _worst(trials: Sequence[TrialResult]) -> Status:
    if len(trials) == 1:
        return trials[0].status
    seen = {trial.status for trial in trials}
    return next((status for status in WORST_FIRST if status in seen), "skipped")


def case_score(trials: Sequence[TrialResult]) -> float | None:
    """The mean of the trials' scores; trials in error have none."""
    if len(trials) == 1:
        return trials[0].score
    return mean([trial.score for trial in trials if trial.score is not None])


def blames_agent(trial: TrialResult) -> bool:
    """True for a trial that did not pass and that the agent is to blame for."""
    return trial.status in ("failed", "timeout") or (trial.status == "error" and trial.blame == "agent")


def is_judged(trial: TrialResult) -> bool:
    """True for a trial that says something of the agent: passed, failed, timeout, or an error of the agent."""
    return trial.status == "passed" or blames_agent(trial)


def is_other_error(trial: TrialResult) -> bool:
    """True for a trial that ended in an error that is not the agent's."""
    return trial.status == "error" and trial.blame != "agent"


class Stability(Struct, kw_only=True):
    """The stability metrics of the JSONL test package, unrounded."""

    runs: int
    """How many trials there were."""
    planned: int
    """How many trials were planned: more than `runs` if the run was stopped."""
    passed: int
    """How many trials passed. Where the case failed only by its `min_score`, those below it don't count."""
    failed: int
    """How many trials did not pass, for whatever reason."""
    pass_rate: float
    """The share of the planned trials that passed, in percent."""
    consistency: float
    """The share of trials with the most frequent status, from 0 to 1."""
    output_consistency: float | None
    """The share of trials with the most frequent answer, from 0 to 1; None if there was no answer."""
    stable: bool
    """True if all planned trials passed."""
    classification: Classification | None
    """By the pass rate: 100, from 80, from 50, below. None if not all planned trials ran."""
    avg_duration_ms: float
    """The mean duration."""
    min_duration_ms: float
    """The shortest duration."""
    max_duration_ms: float
    """The longest duration."""
    std_deviation_ms: float
    """The population's standard deviation of the duration."""
    std_deviation_score: float | None
    """The population's standard deviation of the scores."""


def missed_score(case: CaseResult) -> float | None:
    """The `min_score` of a case that failed for no other reason than its score; None for all other cases."""
    if case.min_score is None or case.status != "failed":
        return None
    without = case_status(case.counted, case.required_rate, decision=case.decision)
    return case.min_score if without == "passed" else None


def passed_trials(trials: Iterable[TrialResult], min_score: float | None = None) -> int:
    """How many trials passed; with a `min_score` that their case missed, only those that reach it."""
    passed = [one for one in trials if one.status == "passed"]
    return len(passed) if min_score is None else sum(below(one.score, min_score) is None for one in passed)


def case_stability(case: CaseResult) -> Stability:
    """The stability of a case over all its trials."""
    return stability(case.counted, case.planned, missed_score(case))


def stability(trials: Sequence[TrialResult], planned: int = 0, min_score: float | None = None) -> Stability:
    """The stability of a case, over all its trials or those of one variation; there is at least one.

    `planned` is how many there were to be, if the run may have been stopped before all of them had run; `min_score` the
    score that the case missed, if it did.
    """
    total = len(trials)
    planned = max(planned, total)
    passed = passed_trials(trials, min_score)
    pass_rate = 100 * passed / planned
    took = [trial.duration_ms for trial in trials]
    scores = [trial.score for trial in trials if trial.score is not None]
    answers = [answer_key(trial.transcript.output) for trial in trials if trial.transcript.turns]
    return Stability(
        runs=total,
        planned=planned,
        passed=passed,
        failed=total - passed,
        pass_rate=pass_rate,
        consistency=_most_frequent(trial.status for trial in trials) / total,
        output_consistency=_most_frequent(answers) / total if answers else None,
        stable=passed == planned,
        classification=classify(pass_rate) if total == planned else None,
        avg_duration_ms=mean(took) or 0.0,
        min_duration_ms=min(took),
        max_duration_ms=max(took),
        std_deviation_ms=deviation(took) or 0.0,
        std_deviation_score=deviation(scores),
    )


def by_variation(case: CaseResult) -> dict[int, Stability]:
    """The stability of each variation of the prompt: repeats of the same trial are one axis, variations another."""
    groups: dict[int, list[TrialResult]] = {}
    for trial in case.counted:
        groups.setdefault(trial.variation, []).append(trial)
    missed = missed_score(case)
    return {variation: stability(groups[variation], case.planned_runs, missed) for variation in sorted(groups)}


def classify(pass_rate: float) -> Classification:
    """The class of a pass rate in percent."""
    if pass_rate >= 100:
        return "stable"
    if pass_rate >= 80:
        return "mostly_stable"
    return "unstable" if pass_rate >= 50 else "highly_unstable"


def answer_key(output: Any) -> bytes:
    """A digest that is the same for equal answers: the same JSON value, or the same words."""
    if isinstance(output, str):
        try:
            value = read_whole(output)
        except SearchCutShort:
            value = MISSING
        text = f"text {' '.join(output.split())}" if value is MISSING else f"json {canonical(value)}"
    else:
        text = f"json {canonical(output)}"
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _most_frequent(values: Iterable[Hashable]) -> int:
    return max(Counter(values).values(), default=0)
