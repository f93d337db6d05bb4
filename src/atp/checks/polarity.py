"""Whether it speaks for the agent that an assertion holds, or that it does not.

`negate` turns a verdict round, and so does a `none_of` around it. A check that can't be sure of what it found needs to
know which of its verdicts would be in the agent's favour.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from atp.suite.assertion import Assertion, Group
from atp.suite.result import Outcome

_turned: ContextVar[bool] = ContextVar("turned", default=False)


@contextmanager
def inside(group: Group) -> Iterator[None]:
    """While the parts of a group are checked."""
    token = _turned.set(_turned.get() ^ turns_round(group))
    try:
        yield
    finally:
        _turned.reset(token)


def turns_round(group: Group) -> bool:
    """Whether a group turns the verdicts of its parts round."""
    return group.negate ^ (group.type == "none_of")


def welcome(assertion: Assertion) -> Outcome:
    """The verdict of the check itself, before `negate`, that is in the agent's favour."""
    return "failed" if _turned.get() ^ assertion.negate else "passed"
