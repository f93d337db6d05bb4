"""The records of what the verdicts of judges are worth: raw and corrected rates, and how right a judge is."""

from typing import Self

from msgspec import UNSET, UnsetType

from atp.report.records.record import Count, Interval, Percent, Record, percents
from atp.report.records.stability import FlipsRecord
from atp.stats.calibration import Accuracy, Share
from atp.stats.judges import JudgeFigures


class MeasuredShareRecord(Record, kw_only=True):
    """A share that labels give, in percent, and where it lies with 95% confidence."""

    value: Percent
    interval: Interval
    labels: Count

    @classmethod
    def of(cls, share: Share) -> Self:
        """The record of a share."""
        return cls(value=round(100 * share.value, 1), interval=percents(share.interval), labels=share.labels)


class KappaRecord(Record, kw_only=True):
    """Cohen's κ, and where it lies with 95% confidence."""

    value: float
    interval: tuple[float, float]


class CalibrationRecord(Record, kw_only=True):
    """How right a judge was measured to be. `tpr` and `tnr` are there if the labelled checks were drawn at random."""

    name: str
    labels: Count
    cases: Count
    at_random: bool
    agreement: MeasuredShareRecord | UnsetType = UNSET
    kappa: KappaRecord | UnsetType = UNSET
    tpr: MeasuredShareRecord | UnsetType = UNSET
    tnr: MeasuredShareRecord | UnsetType = UNSET

    @classmethod
    def of(cls, name: str, found: Accuracy) -> Self:
        """The record of a calibration."""
        made = cls(name=name, labels=found.labels, cases=found.cases, at_random=found.at_random)
        for key in ("agreement", "tpr", "tnr"):
            if (share := getattr(found, key)) is not None:
                setattr(made, key, MeasuredShareRecord.of(share))
        if (kappa := found.kappa) is not None:
            limits = round(kappa.low, 3), round(kappa.high, 3)
            made.kappa = KappaRecord(value=round(kappa.value, 3), interval=limits)
        return made


class CorrectedRecord(Record, kw_only=True):
    """The share of good answers that follows from the raw rate, in percent."""

    rate: Percent
    interval: Interval


class JudgeRecord(Record, kw_only=True):
    """The verdicts of a judge by a criterion, in percent. Without a `criterion`: by all of its criteria together.

    `warnings` say why there is no corrected rate, or why to doubt it.
    """

    judge: str
    model: str | UnsetType = UNSET
    votes: Count
    criterion: str | UnsetType = UNSET
    passed: Count
    judged: Count
    unjudged: Count
    rate: Percent | None
    corrected: CorrectedRecord | None
    votes_differ: Count | UnsetType = UNSET
    judge_flips: FlipsRecord | UnsetType = UNSET
    calibration: CalibrationRecord | None
    warnings: list[str]

    @classmethod
    def of(cls, figures: JudgeFigures) -> Self:
        """The record of a judge's figures."""
        counts, verdicts, corrected = figures.counts, figures.counts.verdicts, figures.corrected
        made = cls(
            judge=counts.judge.name,
            model=counts.judge.model or UNSET,
            votes=counts.judge.votes,
            criterion=UNSET if counts.criterion is None else counts.criterion,
            passed=verdicts.passed,
            judged=verdicts.judged,
            unjudged=verdicts.unjudged,
            rate=None if verdicts.rate is None else round(100 * verdicts.rate, 1),
            corrected=None,
            votes_differ=counts.split if counts.voted else UNSET,
            judge_flips=FlipsRecord.of(counts.flips) if counts.flips.pairs else UNSET,
            calibration=None,
            warnings=figures.warnings,
        )
        if corrected is not None:
            limits = percents((corrected.low, corrected.high))
            made.corrected = CorrectedRecord(rate=round(100 * corrected.rate, 1), interval=limits)
        if figures.accuracy is not None:
            made.calibration = CalibrationRecord.of(figures.calibration or "", figures.accuracy)
        return made
