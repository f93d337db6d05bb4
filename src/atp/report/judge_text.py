"""Words for what the verdicts of judges are worth: raw and corrected rates, how right and how constant a judge is."""

from collections.abc import Iterator, Sequence

from atp.base.numbers import between_text, counted, percent_text
from atp.report.facts import flip_text
from atp.stats.calibration import Accuracy, Share
from atp.stats.judges import JudgeCounts, JudgeFigures
from atp.suite.result import JudgedBy

MOST_CRITERIA = 8
"""Criteria of a judge that a report for people names. JSON has all."""


def by_judge(figures: Sequence[JudgeFigures]) -> Iterator[tuple[JudgedBy, list[JudgeFigures], int]]:
    """The figures to show of each judge, the doubtful and the frequent first, and how many criteria are left out."""
    groups: dict[str, list[JudgeFigures]] = {}
    for one in figures:
        groups.setdefault(one.counts.judge.digest, []).append(one)
    for group in groups.values():
        whole = [one for one in group if one.counts.criterion is None]
        criteria = sorted(
            (one for one in group if one.counts.criterion is not None), key=lambda one: -one.counts.verdicts.judged
        )
        yield group[0].counts.judge, [*whole, *criteria[:MOST_CRITERIA]], max(0, len(criteria) - MOST_CRITERIA)


def judge_title(judge: JudgedBy) -> str:
    """`gpt (gpt-5), 3 votes`."""
    model = f" ({judge.model})" if judge.model and judge.model != judge.name else ""
    return f"{judge.name}{model}{f', {judge.votes} votes' if judge.votes > 1 else ''}"


def criterion_title(counts: JudgeCounts) -> str:
    """The criterion, or that the line is about all of them."""
    return counts.criterion if counts.criterion is not None else "all criteria"


def verdicts_text(figures: JudgeFigures) -> str:
    """`83% of 500 passed, corrected 80% (74% – 87%); votes differ on 12 of 500; never calibrated`."""
    verdicts, parts = figures.counts.verdicts, []
    if verdicts.rate is not None:
        raw = f"{percent_text(verdicts.rate)} of {verdicts.judged:,} passed"
        if (one := figures.corrected) is not None:
            raw += f", corrected {percent_text(one.rate)} ({percent_text(one.low)} – {percent_text(one.high)})"
        parts.append(raw)
    return "; ".join(filter(None, [*parts, more_text(figures)]))


def more_text(figures: JudgeFigures) -> str:
    """`votes differ on 12 of 500; never calibrated`: what there is to know beside the rates."""
    counts = figures.counts
    parts = []
    if counts.verdicts.unjudged:
        parts.append(f"{counts.verdicts.unjudged:,} not judged")
    if counts.voted:
        parts.append(f"votes differ on {counts.split:,} of {counts.voted:,}")
    if counts.flips.pairs:
        parts.append(flip_text(counts.flips))
    parts += figures.warnings
    if figures.accuracy is None and counts.gates:
        parts.append(f"{counted(counts.gates, 'gate')} of cases rest{'s' if counts.gates == 1 else ''} on it")
    return "; ".join(parts)


def left_out_text(left: int) -> str:
    """`… and 12 more criteria`, if some are left out."""
    return f"… and {left:,} more {'criterion' if left == 1 else 'criteria'}" if left else ""


def accuracy_lines(accuracy: Accuracy) -> Iterator[tuple[str, str]]:
    """What labels say of a judge: a name and a figure with its interval a line."""
    if accuracy.agreement is not None:
        yield "agreement", _share_text(accuracy.agreement)
    if (kappa := accuracy.kappa) is not None:
        yield "Cohen's κ", f"{kappa.value:.2f} ({kappa.low:.2f} – {kappa.high:.2f})"
    if accuracy.tpr is not None:
        yield "passes what people pass (TPR)", _share_text(accuracy.tpr)
    if accuracy.tnr is not None:
        yield "fails what people fail (TNR)", _share_text(accuracy.tnr)


def _share_text(share: Share) -> str:
    return f"{percent_text(share.value)}, {between_text(share.interval)}"


def labels_text(accuracy: Accuracy) -> str:
    """`100 labels of 80 cases: both pass 70, both fail 20, only the judge passes 4, only people pass 6`."""
    return (
        f"{counted(accuracy.labels, 'label')} of {counted(accuracy.cases, 'case')}: both pass {accuracy.both_passed}, "
        f"both fail {accuracy.both_failed}, only the judge passes {accuracy.only_judge}, "
        f"only people pass {accuracy.only_people}"
    )
