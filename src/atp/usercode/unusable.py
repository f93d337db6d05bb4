"""An agent that can't be used as it is configured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Unusable(Exception):
    """What is wrong, and what helps."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        word: str | None = None,
        known: Iterable[str] = (),
        missing: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        """How to fix it."""
        self.word = word
        """A name that isn't there, for whoever can guess what was meant."""
        self.known = list(known)
        """The names that are there."""
        self.missing = missing
        """The package that the environment lacks."""

    def wire(self) -> dict[str, Any]:
        """All of it, to be sent."""
        return {
            "message": str(self),
            "hint": self.hint,
            "word": self.word,
            "known": self.known,
            "missing": self.missing,
        }

    @classmethod
    def read(cls, sent: dict[str, Any]) -> Unusable:
        """What was sent."""
        return cls(
            sent["message"],
            sent["hint"],
            word=sent["word"],
            known=sent["known"],
            missing=sent["missing"],
        )
