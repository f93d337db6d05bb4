"""Counts the runs of a case that say something of the agent, variation by variation."""

from collections.abc import Sequence
from typing import NamedTuple

from atp.stats.averages import mean
from atp.stats.stability import is_judged, is_other_error, missed_score, passed_trials
from atp.suite.result import CaseResult, TrialResult


class VariationCounts(NamedTuple):
    """The runs of one variation of a prompt."""

    passed: int
    """Runs that passed."""
    judged: int
    """Runs that say something of the agent: passed, failed, timeout, error of the agent."""
    errors: int
    """Runs that ended in an error that is not the agent's."""


class CaseCounts(NamedTuple):
    """The runs of a case."""

    variations: Sequence[VariationCounts]
    """The runs of each variation that has a judged run or an error; a case without variations has one variation."""
    missing: int
    """Runs that were planned and never came to an end: blocked, cancelled, never begun."""
    estimate: float | None = None
    """The estimate of the long-run pass rate, where the number of runs was not fixed beforehand."""
    first: Sequence[VariationCounts] | None = None
    """The runs that were sure to be there, where their number was not fixed beforehand: `pass^k` is about these."""

    @property
    def total(self) -> VariationCounts:
        """The runs of all variations together."""
        if len(self.variations) == 1:
            return self.variations[0]
        return VariationCounts(self.passed, self.judged, self.errors)

    @property
    def passed(self) -> int:
        """Runs that passed."""
        return sum(one.passed for one in self.variations)

    @property
    def judged(self) -> int:
        """Runs that say something of the agent."""
        return sum(one.judged for one in self.variations)

    @property
    def errors(self) -> int:
        """Runs that ended in an error that is not the agent's."""
        return sum(one.errors for one in self.variations)

    @property
    def rate(self) -> float | None:
        """The pass rate of the judged runs: the mean over the variations. None without a judged run."""
        if self.estimate is not None:
            return self.estimate
        return mean([one.passed / one.judged for one in self.variations if one.judged])

    @property
    def lowest(self) -> float | None:
        """The pass rate if every run in error had failed; the estimate, if there is one. None without a run."""
        if self.estimate is not None:
            return self.estimate
        return mean([one.passed / (one.judged + one.errors) for one in self.variations])

    @property
    def highest(self) -> float | None:
        """The pass rate if every run in error had passed; the estimate, if there is one. None without a run."""
        if self.estimate is not None:
            return self.estimate
        return mean([(one.passed + one.errors) / (one.judged + one.errors) for one in self.variations])


def case_counts(case: CaseResult) -> CaseCounts:
    """Count the runs of a case, surplus ones left out.

    Runs that passed below a `min_score` that the case missed count as failed.
    """
    missed, counted = missed_score(case), case.counted
    known = _by_variation(counted, missed)
    missing = len(counted) - sum([one.judged + one.errors for one in known]) + case.missing
    first = None
    if case.min_runs:
        first = _by_variation([trial for trial in counted if trial.run <= case.min_runs], missed)
    return CaseCounts(known, missing, case.estimate, first)


def _by_variation(trials: Sequence[TrialResult], missed: float | None) -> list[VariationCounts]:
    if len(trials) == 1 and trials[0].status == "passed" and missed is None:
        return [_PASSED_ONCE]
    groups: dict[int, list[TrialResult]] = {}
    for trial in trials:
        groups.setdefault(trial.variation, []).append(trial)
    found = [_count(some, missed) for some in groups.values()]
    return [one for one in found if one.judged or one.errors]


_PASSED_ONCE = VariationCounts(passed=1, judged=1, errors=0)
"""What most cases of most runs come to."""


def _count(trials: list[TrialResult], missed: float | None) -> VariationCounts:
    judged = [trial for trial in trials if is_judged(trial)]
    return VariationCounts(passed_trials(judged, missed), len(judged), sum(map(is_other_error, trials)))
