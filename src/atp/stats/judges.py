"""The verdicts of each judge of a run, by criterion: how many passed, how often its votes and its judgings differ."""

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from atp.stats.calibration import Accuracy, Corrected, VerdictCounts
from atp.stats.self_consistency import Flips, judgings
from atp.suite.result import CaseResult, JudgedBy, TrialResult, Verdict

VOTE = "vote"
"""The type of the verdicts that are single votes of a judge."""
JudgeCriterion = tuple[str, str]
"""The digests of a judge and of a criterion."""
VerdictPlace = tuple[int, ...]
"""Where a verdict is among those of its trial, from 0, and inside groups, among the parts."""


class JudgeCounts(Struct, kw_only=True):
    """The verdicts of a judge by one criterion, or by all of its criteria."""

    judge: JudgedBy
    """The judge, as its first verdict names it."""
    criterion: str | None
    """What the judge was asked; None for all of its criteria together."""
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    """How many of its verdicts passed."""
    voted: int = 0
    """Verdicts by several votes."""
    split: int = 0
    """Those on which the votes were not unanimous."""
    gates: int = 0
    """Cases with a pass rate to reach whose trials it judged."""
    flips: Flips = field(default_factory=Flips)
    """How often it changed its verdict when the same conversations were judged again."""


class JudgeFigures(Struct, kw_only=True):
    """The verdicts of a judge by one criterion, or by all of its criteria."""

    counts: JudgeCounts
    """The judge, the criterion and the verdicts."""
    calibration: str | None = None
    """The name of the calibration that holds for them."""
    accuracy: Accuracy | None = None
    """What the calibration says of the judge."""
    corrected: Corrected | None = None
    """The share of good answers that follows, if one does."""
    warnings: list[str] = []
    """Why there is no corrected rate, or why to doubt it."""


class JudgedVerdicts:
    """Collects the verdicts of judges as cases end. A few numbers for each judge and criterion, not for each case."""

    def __init__(self) -> None:
        self.judges: dict[str, JudgeCounts] = {}
        """All verdicts of each judge, by the judge's digest."""
        self.criteria: dict[JudgeCriterion, JudgeCounts] = {}
        """The verdicts of each judge by each criterion, by the digests of both."""
        self.agents: dict[str, set[str]] = {}
        """By the name of an agent that was judged: the digests of its configurations."""

    def add(self, case: CaseResult) -> frozenset[JudgeCriterion]:
        """Add the verdicts of a case. Returns which judges decided by which criteria."""
        if not _is_judged(case):
            return _NOBODY
        found: dict[str | JudgeCriterion, list[int]] = {}
        for trial in trials_to_count(case):
            for place, verdict in judged_verdicts(trial.verdicts):
                judge = verdict.judge
                assert judge is not None
                self.agents.setdefault(trial.agent, set()).add(trial.agent_digest or "")
                both = (judge.digest, judge.criterion)
                whole = self.judges.get(judge.digest)
                if whole is None:
                    whole = self.judges[judge.digest] = JudgeCounts(judge=judge, criterion=None)
                part = self.criteria.get(both)
                if part is None:
                    part = self.criteria[both] = JudgeCounts(judge=judge, criterion=criterion_text(verdict))
                for key, one in ((judge.digest, whole), (both, part)):
                    _add_votes(one, verdict)
                    if trial.rejudged and len(place) == 1:
                        one.flips.add(judgings(trial, place[0]))
                    outcomes = found.setdefault(key, [0, 0, 0])
                    outcomes[("passed", "failed", "unjudged").index(verdict.outcome)] += 1
        for key, (passed, failed, unjudged) in found.items():
            one = self.judges[key] if isinstance(key, str) else self.criteria[key]
            one.verdicts.add(passed, passed + failed, unjudged)
            one.gates += case.required_rate is not None
        return frozenset(key for key in found if not isinstance(key, str))

    def by_criterion(self, judge: str) -> list[tuple[str, JudgeCounts]]:
        """The verdicts of a judge by each of its criteria, with the criterion's digest."""
        return [(criterion, one) for (digest, criterion), one in self.criteria.items() if digest == judge]


_NOBODY: frozenset[JudgeCriterion] = frozenset()


def _is_judged(case: CaseResult) -> bool:
    """True if a judge decided something. Written out: in most runs, this is all that is asked of every case."""
    for trial in case.trials:
        for verdict in trial.verdicts:
            if verdict.judged:
                return True
    return False


def trials_to_count(case: CaseResult) -> Iterator[TrialResult]:
    """The trials of a case whose verdicts are counted. Of a case with `--runs auto`, only the first runs.

    Cases that are hard to decide on have more runs than others, and would count more.
    """
    return (trial for trial in case.counted if not case.min_runs or trial.run <= case.min_runs)


def judged_verdicts(verdicts: Sequence[Verdict], above: VerdictPlace = ()) -> Iterator[tuple[VerdictPlace, Verdict]]:
    """The verdicts that a judge gave, those inside groups included, each with its place."""
    for number, verdict in enumerate(verdicts):
        if verdict.judge is not None:
            yield (*above, number), verdict
        elif verdict.judged and verdict.parts:
            yield from judged_verdicts(verdict.parts, (*above, number))


def criterion_text(verdict: Verdict) -> str:
    """What a judge was asked."""
    asked = verdict.judge.asked if verdict.judge is not None else None
    return asked or verdict.name or verdict.type


def votes_of(verdict: Verdict) -> list[Verdict]:
    """The single votes that a judge's verdict was made of; none if the judge was asked once."""
    return [part for part in verdict.parts if part.type == VOTE]


def _add_votes(counts: JudgeCounts, verdict: Verdict) -> None:
    if votes := votes_of(verdict):
        counts.voted += 1
        counts.split += len({vote.outcome for vote in votes}) > 1
