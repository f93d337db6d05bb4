"""Expectations in words, and what stands behind them in brackets: `the door was opened (turns: own)`."""

import re
from typing import NamedTuple

_TURNS = re.compile(r"(?<=\S)\s*\(\s*turns\s*:\s*(?P<turns>own|all)\s*\)\s*(?P<end>[.!]?)\s*$", re.IGNORECASE)
_LONGEST_TURNS = 100
"""Characters at the end of a text in which `(turns: own)` is looked for."""


class Expectation(NamedTuple):
    """An expectation, and what is looked at for it."""

    words: str
    """What is expected."""
    own_turns: bool
    """True if only the case's own turns are looked at, not those of its befores."""


def read_expectation(text: str) -> Expectation:
    """The expectation in a text that may end in `(turns: own)` or `(turns: all)`."""
    begin = max(len(text) - _LONGEST_TURNS, 0)
    found = _TURNS.search(text, begin)
    if found is None:
        return Expectation(text, False)
    return Expectation(text[: found.start()] + found["end"], found["turns"].lower() == "own")
