"""The result of writing a suite: the text, what the format can't say, and secrets replaced by variables."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from atp.base.secret_values import is_secret
from atp.base.secrets import secret_numbers, secrets_of
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
        """Note the loss of a key that all cases share."""
        self.append(f"suite: {key}{f' ({why})' if why else ''}")

    def case(self, case: Case, key: str, why: str = "") -> None:
        """Note the loss of a case's key."""
        self.append(f"case `{case.id}`: {key}{f' ({why})' if why else ''}")

    def secret(self, case: Case | None = None) -> Callable[[str, str], None]:
        """A function that notes a secret that was replaced by a variable, in a case or in what all cases share."""

        def note(place: str, variable: str) -> None:
            why = f"a secret: ${{{variable}}} stands there"
            self.suite(place, why) if case is None else self.case(case, place, why)

        return note


class SecretHider:
    """Replaces secrets by `${NAME}`, in every form that is masked. A text has one name throughout a file."""

    def __init__(self, secrets: Iterable[str], escape: Callable[[str], str] = str) -> None:
        """`escape` is how the format writes text that only looks like a variable."""
        self._secrets = secrets_of(secrets)
        self._numbers = secret_numbers(self._secrets)
        self._escape = escape
        self._names: dict[str, str] = {}

    def hide(self, value: Any, note: Callable[[str, str], None], place: tuple[str, ...] = ()) -> Any:
        """The value without secrets. `note` is called with the keys that lead to a secret, and its variable's name."""
        if isinstance(value, str):
            return self._text(value, note, place, self._escape)
        if isinstance(value, list):
            return [self.hide(item, note, place) for item in value]
        if isinstance(value, dict):
            return {
                self._text(key, note, place, str): self.hide(item, note, (*place, key)) for key, item in value.items()
            }
        if self._numbers and isinstance(value, int | float) and value in self._numbers:
            return self._text(self._numbers[value], note, place, self._escape)
        return value

    def _text(
        self, text: str, note: Callable[[str, str], None], place: tuple[str, ...], escape: Callable[[str], str]
    ) -> str:
        parts, last = [], 0
        for begin, end in self._secrets.spans(text):
            # A dollar sign right before a variable would make it plain text, so it goes with the secret.
            before = text[last:begin].rstrip("$")
            name = self._name(text[last + len(before) : end], place)
            note(".".join(place), name)
            parts += [escape(before), f"${{{name}}}"]
            last = end
        return "".join([*parts, escape(text[last:])])

    def _name(self, secret: str, place: tuple[str, ...]) -> str:
        if secret not in self._names:
            name = re.sub(r"[^A-Z0-9]+", "_", place[-1].upper() if place else "").strip("_")
            if not name or name[0].isdigit() or not is_secret(name, secret):
                name = f"{name}_SECRET" if name and not name[0].isdigit() else "SECRET"
            taken = set(self._names.values())
            numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
            self._names[secret] = name if name not in taken else next(one for one in numbered if one not in taken)
        return self._names[secret]
