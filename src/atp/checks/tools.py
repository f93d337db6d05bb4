"""Checks of the tools that the agent called: tool_called, not_tool_called, tool_result, tool_order.

An agent may report more calls than it described. A verdict in its favour that one of the other calls could have turned
is unjudged then.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from atp.base.json.found import MISSING, SearchCutShort, unread_json
from atp.base.text import cut
from atp.checks.evidence import Evidence, Subject
from atp.checks.matching.compare import difference, expects_absence
from atp.checks.matching.json_paths import look_up, may_find_nothing
from atp.checks.output import (
    Contained,
    Matched,
    has,
    has_match,
    is_at_path,
    is_value,
    needs_json,
    unless_json_is_unread,
)
from atp.checks.verdicts import SHORT, failed, favourable_outcome, passed, show, unjudged
from atp.models.parts import decode_arguments
from atp.suite.assertion import Assertion, Need
from atp.suite.matcher import check_matchers
from atp.suite.paths import JsonPathText
from atp.suite.record import JsonObject, NameOrNames, Regex, Text, Whole
from atp.suite.result import Outcome, ToolCall, Verdict

MOST_NAMED = 10
"""Calls that a message lists."""
_UNREAD = "an answer has tool calls in it that were not read (a warning says why)"


def arguments_of(call: ToolCall) -> Any:
    """The arguments of a call, decoded if they are JSON text, as models write them. Raises `SearchCutShort`."""
    with _naming_arguments(call):
        return decode_arguments(call.arguments)


@contextmanager
def _naming_arguments(call: ToolCall) -> Iterator[None]:
    try:
        yield
    except SearchCutShort as error:
        raise SearchCutShort(f"the arguments of `{cut(call.name, 60)}` could not be read: {error}") from error


def called_with(call: ToolCall, arguments: dict[str, Any] | None) -> bool:
    """Whether a call has these arguments, and perhaps more."""
    return arguments is None or difference(arguments, arguments_of(call), subset=True) is None


def unreadable_arguments(
    calls: Sequence[ToolCall], tool: str | list[str], arguments: dict[str, Any] | None
) -> str | None:
    """Say that a call of the tool, or of one of several, has arguments that may be any: not reported, or unread JSON.

    Without `arguments` to compare they don't matter.
    """
    if arguments is None:
        return None
    of_tool = [call for call in calls if _is_of_any(call, tool)]
    if arguments and (unreported := next((call for call in of_tool if call.arguments is None), None)):
        return f"the arguments of a call of `{cut(unreported.name, 60)}` were not reported"
    return unread_arguments(of_tool)


def unread_arguments(calls: Sequence[ToolCall]) -> str | None:
    """Say that the arguments of a call are a text with JSON in it, but not JSON as a whole.

    Raises `SearchCutShort`.
    """
    for call in calls:
        given = arguments_of(call)
        if not isinstance(given, str):
            continue
        with _naming_arguments(call):
            why = unread_json(given, as_a_whole=True)
        if why is None and given.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):  # nothing else can be meant by that here
            why = "broken JSON in it, so what it says is not known"
        if why is not None:
            return f"the text of the arguments of a call of `{cut(call.name, 60)}` has {why}"
    return None


def in_words(calls: Sequence[ToolCall]) -> str:
    """The names of the called tools, in a line."""
    if not calls:
        return "no tool calls"
    names = [cut(call.name, 60) for call in calls[:MOST_NAMED]]
    more = f" and {len(calls) - MOST_NAMED} more" if len(calls) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"


def first_call(calls: Sequence[ToolCall], tool: str) -> int | None:
    """The index of the first call of a tool."""
    return next((place for place, call in enumerate(calls) if call.is_of(tool)), None)


def unless_calls_are_unreported(
    verdict: Verdict,
    assertion: Assertion,
    evidence: Evidence,
    what: str,
    sure: Sequence[Outcome],
    unreadable: str | None = None,
) -> Verdict:
    """The verdict; unjudged if it is in the agent's favour and calls that the agent did not describe could change it.

    A verdict against the agent stands, because describing the calls is the agent's job; but not if the calls are in an
    answer, where ATP did not read them.

    `what` says what the verdict would show. The `sure` outcomes stand, whatever else was called. `unreadable` says that
    a call was described, but not so that it could be read.
    """
    gap = _UNREAD if evidence.has_unread_calls else evidence.unreported_calls or unreadable
    if gap is None or verdict.outcome in sure:
        return verdict
    if verdict.outcome != favourable_outcome(assertion) and not evidence.has_unread_calls:
        return verdict
    return unjudged(f"{gap}, so {what} can't be shown", where=verdict.where)


def _is_of_any(call: ToolCall, name: str | list[str]) -> bool:
    """Whether a call is of a tool, or of one of several."""
    return call.is_of(name) if isinstance(name, str) else any(call.is_of(one) for one in name)


def _quoted(name: str | list[str]) -> str:
    return f"`{name}`" if isinstance(name, str) else " or ".join(f"`{one}`" for one in name)


def _listed(name: str | list[str]) -> str:
    return name if isinstance(name, str) else ", ".join(name)


class ToolCalled(Assertion):
    """The agent called a tool."""

    type: Literal["tool_called"]
    """Always `tool_called`."""
    name: NameOrNames = Field(validation_alias=AliasChoices("name", "value"))
    """The tool's exact name, or a list of names of which one is enough; `server__tool` also answers to `tool`."""
    arguments: Annotated[JsonObject, AfterValidator(check_matchers)] | None = None
    """A recursive subset of the call's arguments."""
    times: Whole | None = None
    """Exactly so often; left out: at least once."""
    before: Text | None = None
    """And that before the first call of this tool."""
    after: Text | None = None
    """And that after the first call of this tool."""

    @model_validator(mode="before")
    @classmethod
    def _flatten_value(cls, raw: Any) -> Any:
        # Yao also writes `value: {name, arguments}`.
        value = raw.get("value") if type(raw) is dict else None
        if isinstance(value, dict) and "name" in value and value.keys() <= {"name", "arguments"}:
            return {**{key: item for key, item in raw.items() if key != "value"}, **value}
        return raw

    def needs(self, negated: bool) -> Iterator[Need]:
        if negated or self.times == 0:
            yield Need("tool_calls", f"its tool calls (`tool_called` {_listed(self.name)}, negated)")

    def check(self, evidence: Evidence) -> Verdict:
        verdict, count = _matching_calls(self, evidence)
        sure: list[Outcome] = []
        if self.before is None:  # else a call of that other tool may have come earlier
            if self.times is None:
                sure = ["passed"]
            elif count > self.times:
                sure = ["failed"]
        often = f" {_times(self.times)}" if self.times else ""
        called = "called" if verdict.passed and self.times != 0 else "not called"
        what = f"that {_quoted(self.name)} was {called}{often}{_when(self)}"
        unreadable = unreadable_arguments(evidence.tool_calls, self.name, self.arguments)
        return unless_calls_are_unreported(verdict, self, evidence, what, sure, unreadable)


def _matching_calls(assertion: ToolCalled, evidence: Evidence) -> tuple[Verdict, int]:
    """The verdict by the calls that the agent described, and how many of them match."""
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
        if _is_of_any(calls[place], name) and called_with(calls[place], assertion.arguments)
    ]
    enough = bool(matching) if assertion.times is None else len(matching) == assertion.times
    if enough:
        where = _call_place(matching[0], calls) if matching else _where(evidence)
        verdict = passed(
            f"{_quoted(name)} was called {_times(len(matching))}",
            expected=_wanted(assertion),
            found=arguments_of(calls[matching[0]]) if matching else in_words(calls),
            where=where,
        )
        return verdict, len(matching)
    return _not_called(assertion, len(matching), evidence), len(matching)


def _never(assertion: ToolCalled, other: str, evidence: Evidence) -> Verdict:
    message = f"expected {_quoted(assertion.name)} to be called{_when(assertion)}, but `{other}` was never called"
    found = in_words(evidence.tool_calls)
    return failed(message, expected=_wanted(assertion), found=found, where=_where(evidence))


def _not_called(assertion: ToolCalled, count: int, evidence: Evidence) -> Verdict:
    calls, name = evidence.tool_calls, assertion.name
    times = "" if assertion.times is None else f" {_times(assertion.times)}"
    arguments = f" with {show(assertion.arguments, SHORT)}" if assertion.arguments is not None else ""
    expected = f"expected {_quoted(name)} to be called{times}{arguments}{_when(assertion)}"
    others = [call for call in calls if _is_of_any(call, name)]
    if count or not others:
        found = f"found {_times(count)} of {in_words(calls)}" if calls else f"found no tool calls{_why_none(evidence)}"
    else:
        shown = "; ".join(show(arguments_of(call), SHORT) for call in others[:3])
        found = f"found it called with {shown}" if arguments else f"found {in_words(calls)}"
    return failed(
        f"{expected}, {found}",
        expected=_wanted(assertion),
        found=[arguments_of(call) for call in others[:MOST_NAMED]] or in_words(calls),
        where=_where(evidence),
    )


def _why_none(evidence: Evidence) -> str:
    """Say that the agent may have called tools without telling of it: it has told of nothing that it did."""
    if evidence.transcript.tells_of_actions:
        return ""
    return ": the agent reported none (a Python function returns them as `tool_calls`, beside `output`)"


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


class NotToolCalled(Assertion):
    """The agent did not call a tool."""

    type: Literal["not_tool_called"]
    """Always `not_tool_called`."""
    name: NameOrNames = Field(validation_alias=AliasChoices("name", "value"))
    """The tool's name, or a list of names of which none may be called."""
    arguments: Annotated[JsonObject, AfterValidator(check_matchers)] | None = None
    """Only calls with these arguments count."""

    def needs(self, negated: bool) -> Iterator[Need]:
        if not negated:
            yield Need("tool_calls", f"its tool calls (`not_tool_called` {_listed(self.name)})")

    def check(self, evidence: Evidence) -> Verdict:
        calls, name = evidence.tool_calls, self.name
        for place, call in enumerate(calls):
            if _is_of_any(call, name) and called_with(call, self.arguments):
                found = arguments_of(call)
                it = "it" if isinstance(name, str) else f"`{cut(call.name, 60)}`"
                message = f"expected {_quoted(name)} not to be called, found {it} called with {show(found, SHORT)}"
                return failed(message, expected=name, found=found, where=_call_place(place, calls))
        what = f"`{name}` was not called" if isinstance(name, str) else f"none of {_listed(name)} was called"
        verdict = passed(what, expected=name, found=in_words(calls), where=_where(evidence))
        unreadable = unreadable_arguments(calls, name, self.arguments)
        return unless_calls_are_unreported(verdict, self, evidence, f"that {what}", (), unreadable)


class ToolResult(Assertion):
    """A tool that the agent called gave a result."""

    type: Literal["tool_result"]
    """Always `tool_result`."""
    name: Text
    """The tool's name."""
    value: Matched = None
    """The expected result, an object being a recursive subset."""
    contains: Contained = None
    """Found in the result, as in `contains`."""
    pattern: Regex | None = Field(default=None, validation_alias=AliasChoices("pattern", "matches"))
    """Found in the result's text."""
    path: JsonPathText | None = None
    """Look there in the result."""
    status: Literal["success", "error"] | None = None
    """How the call ended."""

    @model_validator(mode="before")
    @classmethod
    def _flatten_value(cls, raw: Any) -> Any:
        # Yao writes `value: {tool, result}`; without a result, the call must have succeeded.
        value = raw.get("value") if type(raw) is dict and "name" not in raw else None
        if not isinstance(value, dict) or "tool" not in value or not value.keys() <= {"tool", "result"}:
            return raw
        rest = {key: item for key, item in raw.items() if key != "value"}
        expected = {"value": value["result"]} if value.get("result") is not None else {"status": "success"}
        return {"name": value["tool"], **expected, **rest}

    def needs(self, negated: bool) -> Iterator[Need]:
        if negated:
            yield Need("tool_calls", "its tool calls (`tool_result`, negated)")

    def check(self, evidence: Evidence) -> Verdict:
        what = f"what `{self.name}` gave"
        return unless_calls_are_unreported(
            _given(self, evidence), self, evidence, what, ["passed"], _unreported_result(self, evidence)
        )


def _given(assertion: ToolResult, evidence: Evidence) -> Verdict:
    calls = evidence.tool_calls
    unlike: Verdict | None = None
    open_question: Verdict | None = None
    for place, call in enumerate(calls):
        if call.is_of(assertion.name):
            verdict = _result(assertion, call, _call_place(place, calls))
            if verdict.passed:
                return verdict
            if verdict.outcome == "unjudged":
                open_question = open_question or verdict
            unlike = verdict
    if unlike is not None:
        return open_question or unlike
    message = f"expected a result of `{assertion.name}`, found {in_words(calls)}"
    return failed(message, expected=assertion.name, found=in_words(calls), where=_where(evidence))


def _unreported_result(assertion: ToolResult, evidence: Evidence) -> str | None:
    """Say that a call of the tool gave a result that may be any, because it was not reported."""
    for call in evidence.tool_calls:
        if not call.is_of(assertion.name):
            continue
        if call.unfinished:
            return _no_outcome(call)
        if call.result is None and call.error is None and (_asks_for_content(assertion) or assertion.status is None):
            return f"the agent reported no result of a call of `{cut(call.name, 60)}`"
    return None


def _no_outcome(call: ToolCall) -> str:
    return f"the agent reported no outcome of a call of `{cut(call.name, 60)}`"


def unfinished_call(calls: Iterable[ToolCall]) -> str | None:
    """Say that a call began whose outcome was never reported, if there is one."""
    return next((_no_outcome(call) for call in calls if call.unfinished), None)


def _result(assertion: ToolResult, call: ToolCall, where: str) -> Verdict:
    """The verdict on the result of one call. If the call failed, the error is the result."""
    name = assertion.name
    if call.unfinished:
        return failed(_no_outcome(call), expected=assertion.status, where=where)
    wanted = None if assertion.status is None else assertion.status == "success"
    if wanted is not None and wanted != (call.error is None):
        ended = "success" if call.error is None else f"the error {show(call.error, SHORT)}"
        message = f"expected `{name}` to end with {assertion.status}, found {ended}"
        return failed(message, expected=assertion.status, found=call.error or call.result, where=where)
    result = call.result if call.result is not None else call.error
    subject = Subject(result, f"the result of `{name}`", where)
    rules = list(_rules(assertion, subject)) if result is not None else []
    for verdict in sorted(rules, key=lambda one: one.outcome == "unjudged"):  # one that does not hold is enough
        if not verdict.passed:
            return verdict
    if result is None and (wanted is None or _asks_for_content(assertion)):
        return failed(f"expected a result of `{name}`, but the agent reported none", where=where)
    return rules[0] if rules else passed(f"`{name}` gave a result", found=result, where=where)


def _asks_for_content(assertion: ToolResult) -> bool:
    return bool({"value", "contains", "pattern", "path"} & assertion.model_fields_set)


def _rules(assertion: ToolResult, subject: Subject) -> Iterator[Verdict]:
    given = assertion.model_fields_set
    path, value = assertion.path, assertion.value
    by_absence = expects_absence(value)
    if path is not None:
        verdict = is_at_path(path, value if "value" in given else MISSING, subject)
        by_absence = by_absence or may_find_nothing(path, value)
        yield unless_json_is_unread(verdict, assertion, subject, by_absence=by_absence)
        found = look_up(path, subject.json) if subject.json is not MISSING else MISSING
        if found is MISSING:
            return
        subject = Subject(found, path, f"{subject.where}, {path}")
    elif "value" in given:
        verdict = is_value(value, subject, subset=isinstance(value, dict))
        is_read = not needs_json(value)
        yield verdict if is_read else unless_json_is_unread(verdict, assertion, subject, by_absence=by_absence)
    if "contains" in given:
        verdict = has(assertion.contains, subject)
        is_read = not isinstance(assertion.contains, dict | list)
        yield verdict if is_read else unless_json_is_unread(verdict, assertion, subject)
    if assertion.pattern is not None:
        yield has_match(assertion.pattern, subject)


def out_of_order(tools: Sequence[str], calls: Sequence[ToolCall]) -> str | None:
    """The first tool that was not called in this order. Other calls may come between."""
    rest = iter(calls)
    return next((tool for tool in tools if not any(call.is_of(tool) for call in rest)), None)


class ToolOrder(Assertion):
    """Tools were called in this order; others may stand between them."""

    type: Literal["tool_order"]
    """Always `tool_order`."""
    tools: list[Text] = Field(min_length=1, validation_alias=AliasChoices("tools", "value", "tool_order"))
    """The tools, first to last."""

    def needs(self, negated: bool) -> Iterator[Need]:
        if negated:
            yield Need("tool_calls", "its tool calls (`tool_order`, negated)")

    def check(self, evidence: Evidence) -> Verdict:
        calls, tools = evidence.tool_calls, self.tools
        missing = out_of_order(tools, calls)
        if missing is None:
            return passed(
                "the tools were called in order", expected=tools, found=in_words(calls), where=_where(evidence)
            )
        order = " → ".join(tools)
        message = f"expected the tools in the order {order}, but `{missing}` is missing in {in_words(calls)}"
        verdict = failed(message, expected=tools, found=in_words(calls), where=_where(evidence))
        return unless_calls_are_unreported(verdict, self, evidence, "that the tools were not called in this order", ())
