"""How the agent worked: repeated actions, efficient use of tools, errors, rules about tools."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from atp.base.json.canonical import canonical
from atp.base.numbers import counted
from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.tools import (
    arguments_of,
    first_call,
    in_words,
    out_of_order,
    unfinished_call,
    unless_calls_are_unreported,
    unread_arguments,
)
from atp.checks.verdicts import SHORT, failed, passed, show
from atp.suite.assertion import Assertion, Need
from atp.suite.record import Names, Whole
from atp.suite.result import Event, Outcome, ToolCall, Verdict


class Repeats(NamedTuple):
    """Calls of the same tool with the same arguments as an earlier call."""

    places: list[int]
    """The indexes of the repeated calls. A retry right after an error does not count."""
    unique: int
    """How many different calls there were."""


def repeats(calls: list[ToolCall]) -> Repeats:
    """Find the repeated calls."""
    seen: set[tuple[str, str]] = set()
    places: list[int] = []
    before: tuple[str, str] | None = None
    for place, call in enumerate(calls):
        action = (call.name, canonical(arguments_of(call)))
        retry = action == before and calls[place - 1].error is not None
        if action in seen and not retry:
            places.append(place)
        seen.add(action)
        before = action
    return Repeats(places, len(seen))


_OPTION_OF = {
    "max_repeats": "no_repeated_actions",
    "max_redundant_calls": "efficient_tool_use",
    "allow_recovered": "no_errors",
}
"""The named check that each option belongs to."""


class Behavior(Assertion):
    """How the agent worked: a named check, rules about tools, or both."""

    type: Literal["behavior"]
    """Always `behavior`."""
    check_: Literal["no_repeated_actions", "efficient_tool_use", "no_errors"] | None = Field(
        default=None, validation_alias="check", serialization_alias="check"
    )
    """The named check."""
    max_repeats: Whole = 0
    """For `no_repeated_actions`: how many repeats are allowed."""
    max_redundant_calls: Whole = 0
    """For `efficient_tool_use`: how many repeated calls are allowed."""
    allow_recovered: bool = False
    """For `no_errors`: an error that the agent recovered from doesn't count."""
    must_use_tools: Names | None = None
    """Each of these was called."""
    forbidden_tools: Names | None = None
    """None of these was called."""
    min_tool_calls: Whole | None = None
    """At least so many calls."""
    max_tool_calls: Whole | None = None
    """At most so many calls; `efficient_tool_use` takes the case's `max_steps` otherwise."""
    tool_order: Names | None = None
    """These were called in this order, others between them allowed."""

    @model_validator(mode="after")
    def _says_something(self) -> "Behavior":
        rules = (self.must_use_tools, self.forbidden_tools, self.min_tool_calls, self.max_tool_calls, self.tool_order)
        if self.check_ is None and all(rule is None for rule in rules):
            raise PydanticCustomError("missing_check", "`behavior` needs a `check` or a rule about tools")
        for key, check in _OPTION_OF.items():
            if self.check_ != check and getattr(self, key) != type(self).model_fields[key].default:
                message = "`{key}` has no effect: it belongs to the check `{check}`"
                raise PydanticCustomError("without_effect", message, {"key": key, "check": check})
        return self

    def needs(self, negated: bool) -> Iterator[Need]:
        yield Need("tool_calls", f"its tool calls (`behavior` {self.check_ or 'rules'})")

    def check(self, evidence: Evidence) -> Verdict:
        calls = evidence.tool_calls
        named = _NAMED[self.check_](self, evidence) if self.check_ is not None else Named([])
        seen, missing = [*named.problems, *_broken(self, calls)], list(_missing(self, calls))
        where = "tool calls" if evidence.turn is None else f"tool calls of turn {evidence.turn}"
        expected = self.check_ or "rules about tools"
        if problems := [*seen, *missing]:
            found = in_words(calls)
            verdict = failed("; ".join(problems), expected=expected, found=found, where=where, score=named.score)
        else:
            verdict = passed(f"{expected}: it holds", expected=expected, where=where, score=named.score)
        sure: list[Outcome] = []
        if not _forbids(self, evidence):
            sure.append("passed")
        if seen and not self.allow_recovered:  # a later call may have made up for it
            sure.append("failed")
        compares = self.check_ in ("no_repeated_actions", "efficient_tool_use")
        unreadable = unread_arguments(calls) if compares else None
        if self.check_ == "no_errors":
            unreadable = unfinished_call(calls)
        return unless_calls_are_unreported(
            verdict, self, evidence, f"whether it kept to `{expected}`", sure, unreadable
        )


def _forbids(assertion: Behavior, evidence: Evidence) -> bool:
    """Whether a further call that the agent did not describe could break a rule."""
    most = assertion.max_tool_calls
    too_many = most is not None and (evidence.transcript.usage.tool_calls or 0) > most
    return assertion.check_ is not None or bool(assertion.forbidden_tools) or too_many


class Named(NamedTuple):
    """What a named check found."""

    problems: list[str]
    """What is wrong, a sentence each."""
    score: float | None = None
    """From 0 to 1, where the check gives one."""


def _no_repeated_actions(assertion: Behavior, evidence: Evidence) -> Named:
    calls = evidence.tool_calls
    found = repeats(calls).places
    if len(found) <= assertion.max_repeats:
        return Named([])
    allowed = f", {assertion.max_repeats} allowed" if assertion.max_repeats else ""
    return Named([f"{counted(len(found), 'repeated action')}{allowed}: {_call(found[0], calls)}"])


def _efficient_tool_use(assertion: Behavior, evidence: Evidence) -> Named:
    calls = evidence.tool_calls
    found = repeats(calls)
    problems = []
    if len(found.places) > assertion.max_redundant_calls:
        allowed = f", {assertion.max_redundant_calls} allowed" if assertion.max_redundant_calls else ""
        first = _call(found.places[0], calls)
        problems.append(f"{counted(len(found.places), 'redundant call')}{allowed}: {first}")
    most = evidence.case.limits.max_steps if assertion.max_tool_calls is None else None
    own = calls if evidence.turn is not None else evidence.transcript.tool_calls  # befores have limits of their own
    if most is not None and len(own) > most:
        problems.append(f"{counted(len(own), 'tool call')}, at most {most} allowed (max_steps)")
    return Named(problems, found.unique / len(calls) if calls else None)


def _no_errors(assertion: Behavior, evidence: Evidence) -> Named:
    problems = []
    forgiving = assertion.allow_recovered
    calls = evidence.tool_calls
    late = {call.name: place for place, call in enumerate(calls) if call.error is None}
    for place, call in enumerate(calls):
        if call.error is not None and not (forgiving and late.get(call.name, -1) > place):
            problems.append(f"{_call(place, calls)} failed: {show(call.error, SHORT)}")
    for event in evidence.events:
        if event.type == "error" and not (forgiving and _recovered(event, evidence)):
            said = event.payload.get("message") or event.payload.get("error_type") or "no message"
            problems.append(f"error in turn {event.turn}: {show(said, SHORT)}")
    more = [f"and {len(problems) - 3} more"] if len(problems) > 3 else []
    return Named(problems[:3] + more)


def _recovered(event: Event, evidence: Evidence) -> bool:
    """Whether an error, which the agent itself calls recoverable, was followed by an answer."""
    if event.payload.get("recoverable") is not True:
        return False
    return any(turn.turn == event.turn and turn.output is not None for turn in evidence.turns)


_NAMED: dict[str, Callable[[Behavior, Evidence], Named]] = {
    "no_repeated_actions": _no_repeated_actions,
    "efficient_tool_use": _efficient_tool_use,
    "no_errors": _no_errors,
}


def _broken(rules: Behavior, calls: list[ToolCall]) -> Iterator[str]:
    """Say which calls break the rules about tools."""
    for tool in rules.forbidden_tools or ():
        place = first_call(calls, tool)
        if place is not None:
            yield f"forbidden tool used: {_call(place, calls)}"
    if rules.max_tool_calls is not None and len(calls) > rules.max_tool_calls:
        yield f"{counted(len(calls), 'tool call')}, at most {rules.max_tool_calls} allowed"


def _missing(rules: Behavior, calls: list[ToolCall]) -> Iterator[str]:
    """Say which calls the rules about tools ask for and are missing."""
    for tool in rules.must_use_tools or ():
        if first_call(calls, tool) is None:
            yield f"`{tool}` was not used"
    if rules.min_tool_calls is not None and len(calls) < rules.min_tool_calls:
        yield f"{counted(len(calls), 'tool call')}, at least {rules.min_tool_calls} wanted"
    if rules.tool_order:
        missing = out_of_order(rules.tool_order, calls)
        if missing is not None:
            yield f"the order {' → '.join(rules.tool_order)} is broken at `{missing}`"


def _call(place: int, calls: list[ToolCall]) -> str:
    call = calls[place]
    return f"call {place + 1}, {cut(call.name, 60)}({show(arguments_of(call), SHORT)}) in turn {call.turn}"
