"""Makes verdicts, with every value in them cut to a readable size.

A check says only what it found. `run_check` adds what every assertion has: type, name, weight, `negate`, `message`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from atp.base.text import cut, masked_beginning
from atp.suite.assertion import Assertion, Group
from atp.suite.result import Outcome, Verdict

READABLE = 300
"""Characters of a value that a verdict shows."""
SHORT = 100
"""Characters of a value in a sentence."""
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "), default=repr).encode
_WIDEST_INT = 64
"""Bits; a longer number is shown as text, because JSON readers in other languages can't represent it."""


def passed(
    message: str = "",
    *,
    expected: Any = None,
    found: Any = None,
    where: str | None = None,
    score: float | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Verdict:
    """The assertion holds; `metrics` are named numbers that the check measured."""
    verdict = _verdict("passed", message, expected, found, where, score)
    if metrics:
        verdict.metrics = dict(metrics)
    return verdict


def failed(
    message: str,
    *,
    expected: Any = None,
    found: Any = None,
    where: str | None = None,
    score: float | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Verdict:
    """The assertion does not hold; `metrics` are named numbers that the check measured."""
    verdict = _verdict("failed", message, expected, found, where, score)
    if metrics:
        verdict.metrics = dict(metrics)
    return verdict


def unjudged(reason: str, *, where: str | None = None) -> Verdict:
    """Whether the assertion holds can't be decided, for this reason."""
    return Verdict(type="", outcome="unjudged", message=cut(reason), where=where)


def _verdict(
    outcome: Outcome, message: str, expected: Any, found: Any, where: str | None, score: float | None
) -> Verdict:
    return Verdict(
        type="",
        outcome=outcome,
        message=message,
        expected=small(expected),
        found=small(found),
        where=where,
        score=score,
    )


_negated: ContextVar[bool] = ContextVar("negated", default=False)
"""Whether the groups around the assertion that is being checked turn its verdict round."""


@contextmanager
def in_group(group: Group) -> Iterator[None]:
    """Note that the parts of a group are being checked, whose verdicts the group may turn round."""
    token = _negated.set(_negated.get() ^ group.negates_parts)
    try:
        yield
    finally:
        _negated.reset(token)


def favourable_outcome(assertion: Assertion) -> Outcome:
    """The outcome of the check itself, before `negate`, that is in the agent's favour.

    A check that can't be sure of what it found needs to know: such a doubt must not speak for the agent.
    """
    return "failed" if _negated.get() ^ assertion.negate else "passed"


def small(value: Any, most: int = READABLE) -> Any:
    """The value itself if its JSON is short, otherwise the beginning of its JSON."""
    if value is None or value is True or value is False or type(value) is float:
        return value
    if isinstance(value, str):
        return short(value, most)
    if type(value) is int:
        return _shown_int(value)
    text, whole = _text(value, most)
    return value if whole else text


def short(text: str, most: int) -> str:
    """The beginning of a text. The journal masks a whole secret, so only what is cut has to be masked here."""
    return text if len(text) <= most else cut(text, most)


def show(value: Any, most: int = READABLE) -> str:
    """The JSON of a value for a message, cut. Only what is shown is encoded."""
    return _text(value, most)[0]


def show_foreign(value: Any, most: int = READABLE) -> str:
    """The JSON of a value that the user's code returned. Methods of a class of the user's may raise anything."""
    try:
        return show(value, most)
    except BaseException:
        return f"a value of the class {type(value).__name__}"


def _text(value: Any, most: int) -> tuple[str, bool]:
    """The beginning of a value's JSON, and whether that is all of the value."""
    if isinstance(value, str):
        return _ENCODE(short(value, most)), len(value) <= most
    beginning, room = _beginning(value, most)
    text = _ENCODE(beginning)
    return cut(text, most), room > 0 and len(text) <= most


def _beginning(value: Any, room: int) -> tuple[Any, int]:
    """As much of a value as there is room for, or a little more, and the room that is left.

    Room is counted in the least characters that JSON needs, so what is left out here is past the end of what is shown.
    """
    kind = type(value)
    if kind is str:
        return value if len(value) < room else _masked(value, max(room, 1)), room - len(value) - 2
    if kind is dict:
        members: dict[str, Any] = {}
        for key, item in value.items():
            if room <= 0:
                break
            name = _masked(str(key), room)
            members[name], room = _beginning(item, room - len(name) - 5)
        return members, room - 2
    if kind is list or kind is tuple:
        items = []
        for item in value:
            if room <= 0:
                break
            one, room = _beginning(item, room - 1)
            items.append(one)
        return items, room - 2
    return _shown_int(value) if kind is int else value, room - 1


def _masked(text: str, longest: int) -> str:
    """The beginning of a text. Secrets are masked before the cut, which would leave half of one."""
    return text if len(text) <= longest else masked_beginning(text, longest)[:longest]


def _shown_int(value: int) -> int | str:
    return value if value.bit_length() <= _WIDEST_INT else f"a number of {value.bit_length()} bits"
