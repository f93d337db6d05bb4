"""Checks of the tools that the agent called: tool_called, not_tool_called, tool_result, tool_order.

An agent may report more calls than it told of. What would speak for it only because a call was not seen is unjudged
then: nobody can say what the others were.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from atp.base.found_json import MISSING, read_whole
from atp.base.text import cut
from atp.checks.compare import difference
from atp.checks.evidence import Evidence
from atp.checks.json_paths import look_up
from atp.checks.output import has, has_match, is_ready, is_value
from atp.checks.polarity import welcome
from atp.checks.run_check import check
from atp.checks.subject import Subject
from atp.checks.verdicts import SHORT, failed, passed, show, unjudged
from atp.suite.assertion import Assertion, NotToolCalled, ToolCalled, ToolOrder, ToolResult
from atp.suite.result import Outcome, ToolCall, Transcript, Verdict

MOST_NAMED = 10
"""Calls that a message lists."""


def is_tool(called: str, wanted: str) -> bool:
    """Whether a tool that was called is the one meant: `server__tool` also answers to `tool`."""
    return called == wanted or (called.endswith(wanted) and called[1 : -len(wanted)].endswith("__"))


def arguments_of(call: ToolCall) -> Any:
    """What a tool was called with; models write it as a JSON text."""
    given = call.arguments
    if isinstance(given, str):
        read = read_whole(given)
        return given if read is MISSING else read
    return {} if given is None else given


def called_with(call: ToolCall, arguments: dict[str, Any] | None) -> bool:
    """Whether the arguments that are asked for are among those of a call."""
    return arguments is None or difference(arguments, arguments_of(call), subset=True) is None


def in_words(calls: Sequence[ToolCall]) -> str:
    """The calls of an agent, in a line."""
    if not calls:
        return "no tool calls"
    names = [cut(call.name, 60) for call in calls[:MOST_NAMED]]
    more = f" and {len(calls) - MOST_NAMED} more" if len(calls) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"


def first_call(calls: Sequence[ToolCall], tool: str) -> int | None:
    """The place of the first call of a tool, from 0."""
    return next((place for place, call in enumerate(calls) if is_tool(call.name, tool)), None)


def untold(transcript: Transcript) -> str | None:
    """That an agent reports more calls than it told of, in words. Nobody knows which, nor in which turn."""
    claimed, told = transcript.usage.tool_calls or 0, len(transcript.tool_calls)
    if claimed <= told:
        return None
    return f"the agent says it made {claimed} tool call{'' if claimed == 1 else 's'} but told of {told or 'none'}"


def if_shown(verdict: Verdict, assertion: Assertion, evidence: Evidence, what: str, sure: Sequence[Outcome]) -> Verdict:
    """The verdict, unless it speaks for the agent and further calls could have turned it.

    `what` would be shown by it; the `sure` outcomes stand, whatever else was called.
    """
    gap = untold(evidence.transcript)
    if gap is None or verdict.outcome in sure:
        return verdict
    if verdict.outcome != welcome(assertion):
        return verdict
    return unjudged(f"{gap}, so {what} can't be shown", where=verdict.where)


@check("tool_called")
def tool_called(assertion: ToolCalled, evidence: Evidence) -> Verdict:
    """The agent called a tool, so often, with such arguments, before or after another."""
    verdict, count = _looked_for(assertion, evidence)
    sure: list[Outcome] = []
    if assertion.before is None:  # else a call of that other tool may have come earlier
        if assertion.times is None:
            sure = ["passed"]
        elif count > assertion.times:
            sure = ["failed"]
    often = f" {_times(assertion.times)}" if assertion.times else ""
    called = "called" if verdict.passed and assertion.times != 0 else "not called"
    what = f"that `{assertion.name}` was {called}{often}{_when(assertion)}"
    return if_shown(verdict, assertion, evidence, what, sure)


def _looked_for(assertion: ToolCalled, evidence: Evidence) -> tuple[Verdict, int]:
    """The verdict by the calls that were told of, and how many of them are meant."""
    calls, name = evidence.tool_calls, assertion.name
    begin, end = 0, len(calls)
    if assertion.after is not None:
        first = first_call(calls, assertion.after)
        if first is None:
            return _never(assertion, assertion.after, evidence), 0
        begin = first + 1
    if assertion.before is not None:
        first = first_call(calls, assertion.before)
        if first is None:
            return _never(assertion, assertion.before, evidence), 0
        end = first
    matching = [
        place
        for place in range(begin, end)
        if is_tool(calls[place].name, name) and called_with(calls[place], assertion.arguments)
    ]
    enough = bool(matching) if assertion.times is None else len(matching) == assertion.times
    if enough:
        where = _call_place(matching[0], calls) if matching else _where(evidence)
        verdict = passed(
            f"`{name}` was called {_times(len(matching))}",
            expected=_wanted(assertion),
            found=arguments_of(calls[matching[0]]) if matching else in_words(calls),
            where=where,
        )
        return verdict, len(matching)
    return _not_called(assertion, len(matching), evidence), len(matching)


def _never(assertion: ToolCalled, other: str, evidence: Evidence) -> Verdict:
    message = f"expected `{assertion.name}` to be called{_when(assertion)}, but `{other}` was never called"
    found = in_words(evidence.tool_calls)
    return failed(message, expected=_wanted(assertion), found=found, where=_where(evidence))


def _not_called(assertion: ToolCalled, count: int, evidence: Evidence) -> Verdict:
    calls, name = evidence.tool_calls, assertion.name
    times = "" if assertion.times is None else f" {_times(assertion.times)}"
    arguments = f" with {show(assertion.arguments, SHORT)}" if assertion.arguments is not None else ""
    expected = f"expected `{name}` to be called{times}{arguments}{_when(assertion)}"
    others = [call for call in calls if is_tool(call.name, name)]
    if count or not others:
        found = f"found {_times(count)} of {in_words(calls)}" if calls else "found no tool calls"
    else:
        shown = "; ".join(show(arguments_of(call), SHORT) for call in others[:3])
        found = f"found it called with {shown}" if arguments else f"found {in_words(calls)}"
    return failed(
        f"{expected}, {found}",
        expected=_wanted(assertion),
        found=[arguments_of(call) for call in others[:MOST_NAMED]] or in_words(calls),
        where=_where(evidence),
    )


def _wanted(assertion: ToolCalled) -> dict[str, Any]:
    wanted: dict[str, Any] = {"name": assertion.name}
    for key in ("arguments", "times", "before", "after"):
        value = getattr(assertion, key)
        if value is not None:
            wanted[key] = value
    return wanted


def _when(assertion: ToolCalled) -> str:
    before = f" before `{assertion.before}`" if assertion.before else ""
    return before + (f" after `{assertion.after}`" if assertion.after else "")


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _where(evidence: Evidence) -> str:
    return "tool calls" if evidence.turn is None else f"tool calls of turn {evidence.turn}"


def _call_place(place: int, calls: Sequence[ToolCall]) -> str:
    return f"tool call {place + 1} (turn {calls[place].turn})"


@check("not_tool_called")
def not_tool_called(assertion: NotToolCalled, evidence: Evidence) -> Verdict:
    """The agent did not call a tool, or not with such arguments."""
    calls, name = evidence.tool_calls, assertion.name
    for place, call in enumerate(calls):
        if is_tool(call.name, name) and called_with(call, assertion.arguments):
            found = arguments_of(call)
            message = f"expected `{name}` not to be called, found it called with {show(found, SHORT)}"
            return failed(message, expected=name, found=found, where=_call_place(place, calls))
    verdict = passed(f"`{name}` was not called", expected=name, found=in_words(calls), where=_where(evidence))
    return if_shown(verdict, assertion, evidence, f"that `{name}` was not called", ())


@check("tool_result")
def tool_result(assertion: ToolResult, evidence: Evidence) -> Verdict:
    """A tool that the agent called gave a result."""
    return if_shown(_given(assertion, evidence), assertion, evidence, f"what `{assertion.name}` gave", ["passed"])


def _given(assertion: ToolResult, evidence: Evidence) -> Verdict:
    calls = evidence.tool_calls
    verdict = None
    for place, call in enumerate(calls):
        if is_tool(call.name, assertion.name):
            verdict = _result(assertion, call, _call_place(place, calls))
            if verdict.passed:
                return verdict
    if verdict is not None:
        return verdict
    message = f"expected a result of `{assertion.name}`, found {in_words(calls)}"
    return failed(message, expected=assertion.name, found=in_words(calls), where=_where(evidence))


def _result(assertion: ToolResult, call: ToolCall, where: str) -> Verdict:
    """Whether one call gave what is wanted. Of a call that failed, the error is the result."""
    name = assertion.name
    wanted = None if assertion.status is None else assertion.status == "success"
    if wanted is not None and wanted != (call.error is None):
        ended = "success" if call.error is None else f"the error {show(call.error, SHORT)}"
        message = f"expected `{name}` to end with {assertion.status}, found {ended}"
        return failed(message, expected=assertion.status, found=call.error or call.result, where=where)
    result = call.result if call.result is not None else call.error
    subject = Subject(result, f"the result of `{name}`", where)
    rules = list(_rules(assertion, subject)) if result is not None else []
    for verdict in rules:
        if not verdict.passed:
            return verdict
    if result is None and (wanted is None or _asks_for_content(assertion)):
        return failed(f"expected a result of `{name}`, but the agent reported none", where=where)
    return rules[0] if rules else passed(f"`{name}` gave a result", found=result, where=where)


def _asks_for_content(assertion: ToolResult) -> bool:
    return bool({"value", "contains", "pattern", "path"} & assertion.model_fields_set)


def _rules(assertion: ToolResult, subject: Subject) -> Iterator[Verdict]:
    given = assertion.model_fields_set
    path = assertion.path
    if path is not None:
        yield is_ready(path, assertion.value if "value" in given else MISSING, subject)
        found = look_up(path, subject.json) if subject.json is not MISSING else MISSING
        if found is MISSING:
            return
        subject = Subject(found, path, f"{subject.where}, {path}")
    elif "value" in given:
        yield is_value(assertion.value, subject, subset=isinstance(assertion.value, dict))
    if "contains" in given:
        yield has(assertion.contains, subject)
    if assertion.pattern is not None:
        yield has_match(assertion.pattern, subject)


def out_of_order(tools: Sequence[str], calls: Sequence[ToolCall]) -> str | None:
    """The first tool that was not called when its turn came, others between them being allowed."""
    rest = iter(calls)
    return next((tool for tool in tools if not any(is_tool(call.name, tool) for call in rest)), None)


@check("tool_order")
def tool_order(assertion: ToolOrder, evidence: Evidence) -> Verdict:
    """Tools were called in this order; others may stand between them."""
    calls, tools = evidence.tool_calls, assertion.tools
    missing = out_of_order(tools, calls)
    if missing is None:
        return passed("the tools were called in order", expected=tools, found=in_words(calls), where=_where(evidence))
    order = " → ".join(tools)
    message = f"expected the tools in the order {order}, but `{missing}` is missing in {in_words(calls)}"
    verdict = failed(message, expected=tools, found=in_words(calls), where=_where(evidence))
    return if_shown(verdict, assertion, evidence, "that the tools were not called in this order", ())
