"""What a case leans on that an agent must be able to report.

A limit, or a check that something did *not* happen, would hold because nobody looked. That is found before a run.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from atp.agents.adapter import Capabilities
from atp.checks.polarity import turns_round
from atp.suite.assertion import Assertion, Behavior, Group, NotToolCalled, ToolCalled, ToolOrder, ToolResult
from atp.suite.case import Case


class Need(NamedTuple):
    """Something that must be seen, and what for."""

    what: str
    """A field of `Capabilities`."""
    why: str
    """In words, for the message."""


def needs(case: Case) -> Iterator[Need]:
    """What the case can't do without seeing."""
    limits = case.limits
    if limits.allowed_tools is not None:
        yield Need("tool_calls", "which tools it called (`allowed_tools`)")
    if limits.max_steps is not None:
        yield Need("steps", "its steps (`max_steps`)")
    if limits.max_tokens is not None:
        yield Need("tokens", "its tokens (`max_tokens`)")
    if limits.budget_usd is not None:
        yield Need("cost", "its cost (`budget_usd`)")
    yield from _of_assertions(_checked(case), False)


def met(need: Need, capabilities: Capabilities) -> bool:
    """Whether an agent can report it."""
    if need.what == "steps":
        return capabilities.steps or capabilities.tool_calls
    if need.what == "cost":
        return capabilities.cost
    return bool(getattr(capabilities, need.what))


def _checked(case: Case) -> list[Assertion]:
    """What a case checks exactly, expectations in words that have an exact meaning included."""
    if not case.expectations:
        return case.asserted
    from atp.checks.expectations.compile import compile_expectation  # a grammar, which only some suites need

    return [*case.asserted, *filter(None, map(compile_expectation, case.expectations))]


def _of_assertions(assertions: Iterable[Assertion], turned: bool) -> Iterator[Need]:
    """`turned`: a group around them turns their verdicts round."""
    for assertion in assertions:
        if isinstance(assertion, Group):
            yield from _of_assertions(assertion.assertions, turned ^ turns_round(assertion))
        elif _is_about_tools(type(assertion)):
            yield from _of_assertion(assertion, turned ^ assertion.negate)


@cache
def _is_about_tools(kind: type[Assertion]) -> bool:
    return issubclass(kind, (Behavior, NotToolCalled, ToolCalled, ToolOrder, ToolResult))


def _of_assertion(assertion: Assertion, turned: bool) -> Iterator[Need]:
    """`turned`: the verdict is turned round, by itself or by a group around it."""
    match assertion:
        case Behavior():
            yield Need("tool_calls", f"its tool calls (`behavior` {assertion.check or 'rules'})")
        case NotToolCalled() if not turned:
            yield Need("tool_calls", f"its tool calls (`not_tool_called` {assertion.name})")
        case ToolCalled() if turned or assertion.times == 0:
            yield Need("tool_calls", f"its tool calls (`tool_called` {assertion.name}, negated)")
        case ToolOrder() | ToolResult() if turned:
            yield Need("tool_calls", f"its tool calls (`{assertion.type}`, negated)")
