"""The judges that the checks of one trial may ask, what a judge decides, and how several votes are combined."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from dataclasses import field as data_field
from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atp.base.errors import ConfigurationError
from atp.suite.result import Usage

if TYPE_CHECKING:
    from atp.roles.ask import RoleClient
    from atp.roles.judge.assessor import Assessor
    from atp.roles.judge.validator import Validator

HOW_TO_SET = "name one with `--assessor`, with `assessor:` in the file, or in atp.toml"
"""How to name a judge, as a hint."""


@dataclass(slots=True, kw_only=True)
class Judges:
    """The judges of one trial, and what judging it used."""

    assessor: "Callable[[str | None], Assessor]"
    """Finds the assessor of this name; without a name, the one of the run or the file. Raises `ConfigurationError`."""
    validator: "Callable[[str], Validator]"
    """Finds the agent that an `agent` assertion names. Raises `ConfigurationError`."""
    secrets: Collection[str] = ()
    """The secrets of the run, which no judge is shown."""
    run: int = 1
    """Which repeat of the trial is judged, from 1."""
    usage: Usage = data_field(default_factory=Usage)
    """What the judges have used so far."""
    warnings: list[str] = data_field(default_factory=list)
    """Warnings about the judging of this trial."""

    def warn(self, text: str) -> None:
        """Add a warning, unless the trial has it already."""
        if text not in self.warnings:
            self.warnings.append(text)


def check_fit(client: "RoleClient", *, allow_unfit: bool) -> None:
    """Raise `ConfigurationError` if a client must not judge."""
    if client.unfit_to_judge is not None and not allow_unfit:
        raise ConfigurationError(
            f"{client.name} must not judge: {client.unfit_to_judge}",
            "name another judge with `--assessor` or `assessor:`, or allow this one with --weak-judge",
        )


class Judgement(Struct, kw_only=True):
    """A judge's decision on one expectation or criterion."""

    met: bool | None = None
    """True if the expectation is met; none if it could not be judged or was scored."""
    score: float | None = None
    """From 0 to 1, for a criterion."""
    reason: str = ""
    """The reason for the decision, or why there is none."""
    evidence: list[str] = field(default_factory=list)
    """Quotations from the record."""
    votes: list["Judgement"] = field(default_factory=list)
    """The single votes on a criterion, if there were several."""

    @property
    def judged(self) -> bool:
        """True if there is a decision."""
        return self.met is not None or self.score is not None


class Assessment(Struct, kw_only=True):
    """A judge's decisions on all that it was asked."""

    judgements: list[Judgement]
    """One for each expectation, in their order."""
    usage: Usage = field(default_factory=Usage)
    """What the judge used, which doesn't count for the agent."""
    notes: list[str] = field(default_factory=list)
    """What the judge was not shown."""


def outcome_of_votes(votes: Sequence[Judgement], threshold: float = 1.0) -> Judgement:
    """The median of the scores, if a majority of all votes is on one side of the `threshold`; else unjudged.

    The median of an even number of scores is a score that nobody gave: it must not pass or fail a check on which the
    votes are divided.
    """
    if len(votes) == 1:
        return votes[0]
    listed = ", ".join("unjudged" if vote.score is None else f"{vote.score:.3g}" for vote in votes)
    scores = [vote.score for vote in votes if vote.score is not None]
    passing = sum(score >= threshold for score in scores)
    if max(passing, len(scores) - passing) * 2 > len(votes):
        middle = median(scores)
        speaker = min((vote for vote in votes if vote.score is not None), key=lambda vote: _apart(vote, middle))
        reason = f"median of {listed}: {speaker.reason}"
        return Judgement(score=middle, reason=reason, evidence=speaker.evidence, votes=list(votes))
    missing = next((f": {vote.reason}" for vote in votes if not vote.judged), "")
    return Judgement(reason=f"the votes give no majority: {listed}{missing}", votes=list(votes))


def _apart(vote: Judgement, middle: float) -> float:
    return abs((vote.score or 0.0) - middle)
