"""The records of what differs between the trials of a case: its stability, its flakiness, and its judge's verdicts."""

from collections.abc import Sequence
from typing import Any, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from atp.report.records.record import Count, Number, Percent, Record, Share, percents
from atp.stats.case_counts import case_counts
from atp.stats.flaky import FlakyBlame
from atp.stats.self_consistency import Flips, check_flips, trial_flips
from atp.stats.stability import Classification, Stability, by_variation, case_stability
from atp.stats.summary import percent
from atp.suite.result import CaseResult, TrialResult


class VariationRecord(Record, kw_only=True):
    """The stability of one variation of a prompt."""

    variation: Count
    runs: Count
    planned: Count | UnsetType = UNSET
    passed: Count
    failed: Count
    pass_rate: Percent
    consistency: Share
    output_consistency: Share | None
    stable: bool
    classification: Classification | None
    avg_duration_ms: Count
    min_duration_ms: Count
    max_duration_ms: Count
    std_deviation_ms: Number
    std_deviation_score: Number | UnsetType = UNSET


class FlipsRecord(Record, kw_only=True):
    """How often a judge came to another verdict on the same conversation; of a check, or of a case as a whole."""

    check: str | UnsetType = UNSET
    judgings: Count
    flip_rate: Percent
    interval: tuple[Percent, Percent]

    @classmethod
    def of(cls, flips: Flips) -> Self:
        """The record of judgings that came to a verdict at least twice."""
        low, high = percents(flips.interval)
        rate = round(100 * (flips.rate or 0.0), 1)
        return cls(check=flips.check or UNSET, judgings=flips.judgings, flip_rate=rate, interval=(low, high))


class SelfConsistencyRecord(FlipsRecord, kw_only=True):
    """What `atp recheck --runs` tells of the judge of a case. The instability of the agent is not in it."""

    checks: list[FlipsRecord]


class FlakyRecord(Record, kw_only=True):
    """A case whose runs differ, and whose fault that is."""

    blame: FlakyBlame


def judge_consistency(trials: Sequence[TrialResult]) -> SelfConsistencyRecord | None:
    """How often the judge of a case changed its verdict; None if nothing was judged twice."""
    flips = trial_flips(trials)
    if not flips.pairs:
        return None
    checks = [FlipsRecord.of(check) for check in check_flips(trials)]
    return SelfConsistencyRecord(**asdict(FlipsRecord.of(flips)), checks=checks)


def stability_fields(case: CaseResult) -> dict[str, Any]:
    """The stability fields of a case that ran more than once, and of each of its variations."""
    from atp.stats.case_gate import observed_interval  # only cases that ran more than once need the statistics

    made = _stability_fields(case_stability(case))
    counts = case_counts(case)
    made["judged_runs"] = counts.judged
    if (interval := observed_interval(counts)) is not None:
        made["pass_rate_interval"] = percents(interval)
    if case.min_runs:
        made["stopped_by"] = case.stopped_by
        made["estimate"] = None if case.estimate is None else round(100 * case.estimate, 1)
        made["estimate_interval"] = None if case.interval is None else percents(case.interval)
        made["surplus_runs"] = len(case.trials) - len(case.counted)
    variations = by_variation(case)
    if len(variations) > 1:
        made["iterations"] = len(variations)
        made["variations"] = [
            VariationRecord(variation=number, **_stability_fields(found)) for number, found in variations.items()
        ]
    return made


def _stability_fields(found: Stability) -> dict[str, Any]:
    same = found.output_consistency
    made: dict[str, Any] = {
        "runs": found.runs,
        **({"planned": found.planned} if found.planned > found.runs else {}),
        "passed": found.passed,
        "failed": found.failed,
        "pass_rate": percent(found.passed, found.planned),
        "consistency": round(found.consistency, 2),
        "output_consistency": None if same is None else round(same, 2),
        "stable": found.stable,
        "classification": found.classification,
        "avg_duration_ms": round(found.avg_duration_ms),
        "min_duration_ms": round(found.min_duration_ms),
        "max_duration_ms": round(found.max_duration_ms),
        "std_deviation_ms": round(found.std_deviation_ms, 1),
    }
    if found.std_deviation_score is not None:
        made["std_deviation_score"] = round(found.std_deviation_score, 2)
    return made
