"""How often a judge changes its verdict on the same conversation, from what `atp recheck --runs` has recorded."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from atp.stats.intervals import NOTHING_KNOWN, Interval, wilson_of_share
from atp.suite.result import Outcome, TrialResult

DECIDED = frozenset({"passed", "failed"})
"""What a judge decides. A judging that came to nothing is no other verdict."""


class Flips(Struct, kw_only=True):
    """The judgings of conversations that were judged at least twice."""

    check: str | None = None
    """The check that the judgings are about; None for the trial as a whole."""
    judgings: int = 0
    """Judgings that came to a verdict."""
    pairs: int = 0
    """Pairs of judgings of the same conversation."""
    differing: int = 0
    """Pairs that came to different verdicts."""
    independent: int = 0
    """Pairs without a judging in common. They are what the rate is worth: the other pairs only repeat them."""

    @property
    def rate(self) -> float | None:
        """The flip rate: how often two judgings of a conversation differ; None if there are no two."""
        return self.differing / self.pairs if self.pairs else None

    @property
    def interval(self) -> Interval:
        """The flip rate in the long run, 95%: Wilson, with as many observations as there are independent pairs."""
        return wilson_of_share(self.differing / self.pairs, self.independent) if self.pairs else NOTHING_KNOWN

    def add(self, outcomes: Iterable[str]) -> None:
        """Count the judgings of one conversation."""
        counts = Counter(one for one in outcomes if one in DECIDED)
        n = counts.total()
        if n > 1:
            self.judgings += n
            self.pairs += n * (n - 1) // 2
            self.differing += counts["passed"] * counts["failed"]
            self.independent += n // 2


def judge_changed(trial: TrialResult) -> bool | None:
    """Whether two judgings of a trial's conversation came to different verdicts; None if it was judged only once."""
    flips = trial_flips([trial])
    return flips.differing > 0 if flips.pairs else None


def trial_flips(trials: Iterable[TrialResult]) -> Flips:
    """How often judgings end a trial differently."""
    found = Flips()
    for trial in trials:
        if trial.rejudged:
            found.add([trial.status, *(one.status for one in trial.rejudged)])
    return found


def judgings(trial: TrialResult, place: int) -> list[Outcome]:
    """What all judgings of a trial came to in the check at this place."""
    further = [one.outcomes[place] for one in trial.rejudged if place < len(one.outcomes)]
    return [trial.verdicts[place].outcome, *further]


def check_flips(trials: Sequence[TrialResult]) -> list[Flips]:
    """How often judgings of each check differ, in the order of the checks, for checks that a judge decides."""
    found: dict[tuple[int, str], Flips] = {}
    for trial in trials:
        for place, verdict in enumerate(trial.verdicts if trial.rejudged else ()):
            if verdict.judged:
                name = f"{verdict.type}: {verdict.name}" if verdict.name else verdict.type
                found.setdefault((place, name), Flips(check=name)).add(judgings(trial, place))
    return [one for one in found.values() if one.pairs]
