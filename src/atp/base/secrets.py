"""Masks secrets in everything that is shown or written."""

from collections.abc import Callable, Iterable
from typing import Any

MASK = "***"
SHORTEST_SECRET = 6
"""Shorter values are not masked: harmless text would be full of masks."""

Hide = Callable[[Any], Any]
"""Masks the secrets in a value."""


def mask(value: Any, secrets: Iterable[str], numbers: bool = True) -> Any:
    """The value with every secret in it replaced, also one that was read as a number.

    Without `numbers` numbers stay: among measured figures, a duration may by chance equal a secret.
    """
    found = sorted(secrets, key=len, reverse=True)  # the longest first: one secret may contain another
    return _mask(value, found, secret_numbers(found) if numbers else {}) if found else value


def hider(secrets: Iterable[str]) -> Hide:
    """A function that masks these secrets, but no numbers. Without secrets it costs a call and nothing more."""
    known = tuple(secrets)
    return (lambda value: mask(value, known, numbers=False)) if known else _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def secret_numbers(secrets: Iterable[str]) -> dict[float, str]:
    """The secrets that YAML reads as numbers, by their value."""
    found: dict[float, str] = {}
    for secret in secrets:
        number = _number(secret)
        if number is not None and len(str(number)) >= SHORTEST_SECRET:
            found[number] = secret
    return found


def is_number(value: Any) -> bool:
    """Whether a value is a number to JSON: in Python, true and false are too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    if not text.lstrip("+-.")[:1].isdigit():
        return None
    for base in (10, 0):
        try:
            return int(text, base)
        except ValueError:
            continue
    try:
        return float(text)
    except ValueError:
        return None


def _mask(value: Any, secrets: list[str], numbers: dict[float, str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {_mask(key, secrets, numbers): _mask(item, secrets, numbers) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask(item, secrets, numbers) for item in value]
    return MASK if numbers and is_number(value) and value in numbers else value
