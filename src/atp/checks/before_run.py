"""What is known about the checks of a case before it runs: what they need, who decides, and what can't be judged.

A limit, or a check that something did *not* happen, would hold because nobody looked. A judge that is missing would
leave a case unjudged after its agent was paid. Both are found before anything runs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from atp.base.errors import ConfigurationError
from atp.suite.assertion import Assertion, Decider, Need
from atp.suite.capabilities import Capabilities
from atp.suite.case import Case

EARLIER_MESSAGES = Need("history", "the earlier messages of the conversation")
"""What a case needs that begins with messages which nobody says in the trial."""
IN_WORDS = "its expectations in words"
"""Why a case needs the assessor, if some of its expectations have no exact meaning."""
_NEEDED_BY_LIMITS = {
    "allowed_tools": Need("tool_calls", "which tools it called (`allowed_tools`)"),
    "max_steps": Need("steps", "its steps (`max_steps`)"),
    "max_tokens": Need("tokens", "its tokens (`max_tokens`)"),
    "budget_usd": Need("cost", "its cost (`budget_usd`)"),
}
_ABOUT_TOOLS = ("tool_called", "not_tool_called", "tool_result")


def needs(case: Case) -> Iterator[Need]:
    """What an agent must be able to report, and to be given, for a case to mean anything."""
    if limits := case.limits.given():
        yield from (need for limit, need in _NEEDED_BY_LIMITS.items() if limit in limits)
    if len(case.messages) > 1:
        yield EARLIER_MESSAGES
    assertions = case.asserted
    if case.expectations:
        assertions = [*assertions, *compiled_expectations(case)[0].values()]
    for assertion in assertions:
        yield from assertion.needs(assertion.negate)


def met(need: Need, capabilities: Capabilities) -> bool:
    """Whether an agent can report, or is given, what is needed."""
    if need.what == "steps":
        return capabilities.steps or capabilities.tool_calls
    return bool(getattr(capabilities, need.what))


def deciders(case: Case) -> Iterator[Decider]:
    """The judges and validators that a case needs."""
    if compiled_expectations(case)[1]:
        yield Decider("assessor", None, IN_WORDS)
    for assertion in case.asserted:
        if assertion.needs_judge:
            yield from assertion.deciders()


def compiled_expectations(case: Case) -> tuple[dict[int, Assertion], list[int]]:
    """The expectations that have an exact meaning, as assertions by their place, and the places of the others."""
    if not case.expectations:
        return {}, []
    from atp.checks.expectations.compile import compile_expectation  # imported late: only some suites need it

    tools = known_tools(case)
    compiled = {place: compile_expectation(words, tools) for place, words in enumerate(case.expectations)}
    exact = {place: assertion for place, assertion in compiled.items() if assertion is not None}
    return exact, [place for place in compiled if place not in exact]


def pattern_mistakes(case: Case) -> Iterator[tuple[int, str]]:
    """The places of expectations with a regular expression that can't be compiled, each with why.

    No judge is asked about them: whoever writes a pattern means an exact check.
    """
    for place in compiled_expectations(case)[1]:
        from atp.checks.expectations.compile import pattern_mistake

        if (why := pattern_mistake(case.expectations[place])) is not None:
            yield place, why


def known_tools(case: Case) -> frozenset[str]:
    """The tools of a case's agents, and those that it names itself: in `allowed_tools`, in assertions about tools."""
    known = {*case.tools, *(case.limits.allowed_tools or ())}
    for one in case.assertions:
        if one.type in _ABOUT_TOOLS:
            name: str | list[str] = getattr(one, "name", [])
            known.update([name] if isinstance(name, str) else name)
    return frozenset(known)


class Wording(NamedTuple):
    """How an expectation is decided."""

    text: str
    """The expectation."""
    check: str | None
    """The exact check that it stands for, in short; None if the assessor decides."""
    exact_if: str | None
    """The expectation as it would be exact, if only a name in it is doubtful."""


def wordings(case: Case) -> list[Wording]:
    """How each expectation of a case is decided."""
    if not case.expectations:
        return []
    from atp.checks.expectations.compile import describe, exact_wording

    exact, _ = compiled_expectations(case)
    return [
        Wording(text, describe(exact[place]), None) if place in exact else Wording(text, None, exact_wording(text))
        for place, text in enumerate(case.expectations)
    ]


def unjudgeable(case: Case, folders: Sequence[Path]) -> Iterator[str]:
    """Why checks of a case can't be judged, whoever judges: there is no such script."""
    if not any(assertion.needs_judge for assertion in case.asserted):
        return
    from atp.checks.script import named_scripts
    from atp.usercode.code_path import find_script

    for script in named_scripts(case.asserted):
        try:
            find_script(script, folders)
        except ConfigurationError as error:
            yield error.with_hint
