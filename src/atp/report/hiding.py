"""What keeps secrets out of a report: every text that leaves goes through here."""

from collections.abc import Callable, Iterable
from typing import Any

from atp.base.secrets import mask

Hide = Callable[[Any], Any]
"""Gives a value without secrets in it."""


def hider(secrets: Iterable[str]) -> Hide:
    """Hides these secrets; costs a call and nothing more when there are none."""
    known = tuple(secrets)
    return (lambda value: mask(value, known, numbers=False)) if known else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value
