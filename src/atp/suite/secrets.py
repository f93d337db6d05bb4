"""Keeping secrets out of everything a person or a file gets to see."""

from collections.abc import Iterable
from typing import Any

MASK = "***"


def mask(value: Any, secrets: Iterable[str]) -> Any:
    """The value with every secret in its texts replaced."""
    found = sorted(secrets, key=len, reverse=True)  # the longest first: one secret may hold another
    return _mask(value, found) if found else value


def _mask(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, dict):
        return {_mask(key, secrets): _mask(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_mask(item, secrets) for item in value]
    return value
