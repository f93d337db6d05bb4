"""Secrets that were filled in when a suite was loaded must not come out again: a variable takes their place."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from atp.base.secrets import is_number, secret_numbers
from atp.loader.variables import is_secret


class Hiding:
    """Puts `${NAME}` where a secret stands, the same name for the same secret throughout a file."""

    def __init__(self, secrets: Iterable[str], escape: Callable[[str], str] = str) -> None:
        """`escape` is what the format does to text that only looks like a variable."""
        longest_first = sorted(secrets, key=len, reverse=True)  # one secret may hold another
        # A dollar sign right before a variable would make it plain text, so it goes with the secret.
        self._secret = re.compile("|".join(rf"\$*{re.escape(one)}" for one in longest_first)) if longest_first else None
        self._numbers = secret_numbers(longest_first)
        self._escape = escape
        self._names: dict[str, str] = {}

    def hide(self, value: Any, tell: Callable[[str, str], None], place: tuple[str, ...] = ()) -> Any:
        """The value without secrets. `tell` hears the keys that lead to each, and the name that stands there now."""
        if isinstance(value, str):
            return self._text(value, tell, place, self._escape)
        if isinstance(value, list):
            return [self.hide(item, tell, place) for item in value]
        if isinstance(value, dict):
            return {
                self._text(key, tell, place, str): self.hide(item, tell, (*place, key)) for key, item in value.items()
            }
        if self._numbers and is_number(value) and value in self._numbers:
            return self._text(self._numbers[value], tell, place, self._escape)
        return value

    def _text(
        self, text: str, tell: Callable[[str, str], None], place: tuple[str, ...], escape: Callable[[str], str]
    ) -> str:
        if self._secret is None:
            return escape(text)
        parts, end = [], 0
        for found in self._secret.finditer(text):
            name = self._name(found.group(), place)
            tell(".".join(place), name)
            parts += [escape(text[end : found.start()]), f"${{{name}}}"]
            end = found.end()
        return "".join([*parts, escape(text[end:])])

    def _name(self, secret: str, place: tuple[str, ...]) -> str:
        if secret not in self._names:
            name = re.sub(r"[^A-Z0-9]+", "_", place[-1].upper() if place else "").strip("_")
            if not name or name[0].isdigit() or not is_secret(name, secret):
                name = f"{name}_SECRET" if name and not name[0].isdigit() else "SECRET"
            taken = set(self._names.values())
            numbered = (f"{name}_{number}" for number in range(2, len(taken) + 3))
            self._names[secret] = name if name not in taken else next(one for one in numbered if one not in taken)
        return self._names[secret]
