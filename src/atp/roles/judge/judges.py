"""Who judges in a run: what the checks need to know of it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from atp.base.errors import ConfigurationError
from atp.roles.player import RoleClient
from atp.suite.result import Usage

if TYPE_CHECKING:
    from atp.roles.judge.assessor import Assessor
    from atp.roles.judge.validator import Validator

HOW_TO_SET = "name one with `--assessor`, with `assessor:` in the file, or in atp.toml"
"""What to do when there is no judge."""


def check_fit(client: RoleClient, *, allow_unfit: bool) -> None:
    """Raise `ConfigurationError` if a client must not judge."""
    if client.unfit_to_judge is not None and not allow_unfit:
        raise ConfigurationError(
            f"{client.name} must not judge: {client.unfit_to_judge}",
            "name another judge with `--assessor` or `assessor:`, or allow this one with --weak-judge",
        )


class Judges(Protocol):
    """The judges of a run, made when they are first needed and shared by all trials."""

    @property
    def hidden(self) -> frozenset[str]:
        """The secrets of the run, which no record shows."""

    @property
    def assessor(self) -> "Assessor | None":
        """Who judges expectations, and criteria that name no judge of their own; nobody if none is set.

        Raises as `named` does.
        """

    def named(self, judge: str) -> "Assessor":
        """The judge that an `llm_eval` names: an agent or a connector. Raises `ConfigurationError`."""

    def validator(self, use: str) -> "Validator":
        """The agent that an `agent` assertion names, as it is written there. Raises as `named` does."""


@dataclass(slots=True, kw_only=True)
class Judging:
    """Who judges a trial, and where what comes of that beside verdicts is written."""

    judges: Judges
    """Those who judge."""
    run: int = 1
    """Which repeat of the trial it is."""
    usage: Usage = field(default_factory=Usage)
    """What judging has used so far."""
    warnings: list[str] = field(default_factory=list)
    """What to know about the judging of this trial."""

    def warn(self, text: str) -> None:
        """Say something, once."""
        if text not in self.warnings:
            self.warnings.append(text)
