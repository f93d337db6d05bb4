"""Who must decide on a case beside exact rules: found before a run, so that none is missing when it is needed."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from atp.suite.assertion import AgentAssertion, Assertion, Group, LlmEval
from atp.suite.case import Case


class Decider(NamedTuple):
    """A judge or a validator that a case needs."""

    role: Literal["assessor", "validator"]
    """Which."""
    name: str | None
    """Its name; none means the one that judges where nobody is named."""
    why: str
    """What it is needed for, in words."""


def deciders(case: Case) -> Iterator[Decider]:
    """Who must decide on a case."""
    if case.expectations and _in_words(case.expectations):
        yield Decider("assessor", None, "its expectations in words")
    yield from _of(case.asserted)


def _in_words(expectations: list[str]) -> bool:
    """Whether any of them has no exact meaning."""
    from atp.checks.expectations.compile import compile_expectation  # a grammar, which only some suites need

    return any(compile_expectation(words) is None for words in expectations)


def _of(assertions: Iterable[Assertion]) -> Iterator[Decider]:
    for assertion in assertions:
        if isinstance(assertion, Group):
            yield from _of(assertion.assertions)
        elif not assertion.judged:
            continue
        elif isinstance(assertion, LlmEval):
            yield Decider("assessor", assertion.judge, "`llm_eval`")
        elif isinstance(assertion, AgentAssertion):
            yield Decider("validator", assertion.use.removeprefix("agents:"), "`agent`")
