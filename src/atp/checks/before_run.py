"""What is known about the checks of a case before it runs: what they need, who decides, and what can't be judged.

A limit, or a check that something did *not* happen, would hold because nobody looked. A judge that is missing would
leave a case unjudged after its agent was paid. Both are found before anything runs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from atp.base.errors import ConfigurationError
from atp.suite.assertion import Assertion, Decider, Need
from atp.suite.capabilities import Capabilities
from atp.suite.case import Case

EARLIER_MESSAGES = Need("history", "the earlier messages of the conversation")
"""What a case needs that begins with messages which nobody says in the trial."""


def needs(case: Case) -> Iterator[Need]:
    """What an agent must be able to report, and to be given, for a case to mean anything."""
    limits = case.limits
    if limits.allowed_tools is not None:
        yield Need("tool_calls", "which tools it called (`allowed_tools`)")
    if limits.max_steps is not None:
        yield Need("steps", "its steps (`max_steps`)")
    if limits.max_tokens is not None:
        yield Need("tokens", "its tokens (`max_tokens`)")
    if limits.budget_usd is not None:
        yield Need("cost", "its cost (`budget_usd`)")
    if len(case.messages) > 1:
        yield EARLIER_MESSAGES
    exact, _ = compiled_expectations(case)
    for assertion in [*case.asserted, *exact.values()]:
        yield from assertion.needs(assertion.negate)


def met(need: Need, capabilities: Capabilities) -> bool:
    """Whether an agent can report, or is given, what is needed."""
    if need.what == "steps":
        return capabilities.steps or capabilities.tool_calls
    return bool(getattr(capabilities, need.what))


def deciders(case: Case) -> Iterator[Decider]:
    """The judges and validators that a case needs."""
    if compiled_expectations(case)[1]:
        yield Decider("assessor", None, "its expectations in words")
    for assertion in case.asserted:
        if assertion.needs_judge:
            yield from assertion.deciders()


def compiled_expectations(case: Case) -> tuple[dict[int, Assertion], list[int]]:
    """The expectations that have an exact meaning, as assertions by their place, and the places of the others."""
    if not case.expectations:
        return {}, []
    from atp.checks.expectations.compile import compile_expectation  # imported late: only some suites need it

    compiled = {place: compile_expectation(words) for place, words in enumerate(case.expectations)}
    exact = {place: assertion for place, assertion in compiled.items() if assertion is not None}
    return exact, [place for place in compiled if place not in exact]


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
            yield f"{error} ({error.hint})" if error.hint else str(error)
