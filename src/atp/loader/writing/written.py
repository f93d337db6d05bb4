"""What comes of writing a suite: the text, and in words what could not be said in it."""

from collections.abc import Callable
from dataclasses import dataclass

from atp.suite.case import Case


@dataclass(frozen=True, slots=True)
class Written:
    """A suite as the text of a file."""

    text: str
    """The file. Empty when the format can't say any of the cases."""
    losses: list[str]
    """What the format can't say, each as `case …: key (why)` or `suite: key (why)`."""


class Losses(list[str]):
    """The losses of one suite, collected while it is written. Keys are those that `atp show --json` prints."""

    def suite(self, key: str, why: str = "") -> None:
        """Something that all cases share is lost."""
        self.append(f"suite: {key}{f' ({why})' if why else ''}")

    def case(self, case: Case, key: str, why: str = "") -> None:
        """Something of a case is lost."""
        self.append(f"case `{case.id}`: {key}{f' ({why})' if why else ''}")

    def secret(self, case: Case | None = None) -> Callable[[str, str], None]:
        """Hears of the secrets that a variable stands for now, in a case or in what all cases share."""

        def tell(place: str, variable: str) -> None:
            why = f"a secret: ${{{variable}}} stands there"
            self.suite(place, why) if case is None else self.case(case, place, why)

        return tell
