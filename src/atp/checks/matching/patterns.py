"""Searches what an agent wrote within a time limit: with regular expressions, and by whatever else may take long.

A pattern that is harmless on what its author had in mind can take years on what an agent sends (`(a|aa)+$`), and `re`
can't be interrupted. So searches are done by the `regex` package, which reads the same syntax and can: each check has
little time on the event loop, then, in a thread, `LONGEST` seconds, and then it is unjudged. Searches written in Python
(a JSONPath, a glob) run inside `time_limit` and call `check_time` as they go.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from time import perf_counter
from typing import Any

AT_ONCE = 0.02
"""Seconds a check may search while everything else waits."""
LONGEST_AT_ONCE = 65_536
"""Characters of a text that is searched while everything else waits: on long ones `regex` looks at the clock seldom."""
LONGEST = 2.0
"""Seconds a check may search at all."""


class TooSlow(Exception):
    """The check has used up its time for searching."""


class SearchTime:
    """How many seconds of searching are left, and how long a text may be."""

    __slots__ = ("left", "longest_text", "until")

    def __init__(self, left: float, longest_text: float) -> None:
        self.left = left
        self.longest_text = longest_text
        self.until = math.inf
        """When the search that is running must have ended."""


_time: ContextVar[SearchTime | None] = ContextVar("search_time", default=None)


def allow_short_searches() -> None:
    """Limit all searches of this task from now on to what the event loop can wait for."""
    _time.set(SearchTime(AT_ONCE, LONGEST_AT_ONCE))


def allow_searching(seconds: float = LONGEST) -> None:
    """Limit all searches of this task or thread from now on to so many seconds together."""
    _time.set(SearchTime(seconds, math.inf))


def search(pattern: str, text: str) -> Any:
    """The first match, or none. Raises `TooSlow`."""
    return run(_compiled(pattern).search, text)


@contextmanager
def time_limit() -> Iterator[None]:
    """Count the time of a search that is written in Python. Raises `TooSlow` if there is none left."""
    time = _time.get()
    if time is None:
        _time.set(time := SearchTime(LONGEST, math.inf))
    if time.left <= 0:
        raise TooSlow
    began = perf_counter()
    time.until = began + time.left
    try:
        yield
    finally:
        time.left -= perf_counter() - began
        time.until = math.inf


def check_time() -> None:
    """Raise `TooSlow` if the time of the `time_limit` around this call is used up."""
    time = _time.get()
    if time is not None and perf_counter() > time.until:
        raise TooSlow


def run(method: Any, text: str) -> Any:
    """Call a method of a compiled pattern within the time that is left."""
    time = _time.get()
    if time is None:
        time = SearchTime(LONGEST, math.inf)
    elif time.left <= 0 or len(text) > time.longest_text:
        raise TooSlow
    began = perf_counter()
    try:
        return method(text, timeout=time.left)
    except TimeoutError:
        raise TooSlow from None
    finally:
        time.left -= perf_counter() - began


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Any:
    import regex  # type: ignore[import-untyped]  # loaded for the first search

    return regex.compile(_as_re_reads_it(pattern))


_PARTS = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|\{(?!\d*,?\d*\})", re.DOTALL)
_IN_SET = re.compile(r"\\.|\[", re.DOTALL)


def _as_re_reads_it(pattern: str) -> str:
    """Take away the meanings that `regex` gives to two forms which are plain text to `re`.

    `x{e}` would match anything nearly like `x`, and `[[:alpha:]]` is a set of letters.
    """
    return _PARTS.sub(_plain_part, pattern) if "{" in pattern or "[" in pattern else pattern


def _plain_part(part: "re.Match[str]") -> str:
    text = part[0]
    if text == "{":
        return r"\{"
    if text[0] == "[":
        return "[" + _IN_SET.sub(lambda one: one[0] if one[0] != "[" else r"\[", text[1:])
    return text
