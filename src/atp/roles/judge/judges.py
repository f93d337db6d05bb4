"""The judges that the checks of one trial may ask."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    secrets: frozenset[str] = frozenset()
    """The secrets of the run, which no judge is shown."""
    run: int = 1
    """Which repeat of the trial is judged, from 1."""
    usage: Usage = field(default_factory=Usage)
    """What the judges have used so far."""
    warnings: list[str] = field(default_factory=list)
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
