"""`t.assert_`: the assertions of a test in Python.

The assertions of the JSONL format in snake_case; the spelling of its documents (`Contains`, `JSONPath`) works as well.
Every assertion takes a message, as the last argument or by name, that replaces the generated one.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

from atp.base.json.found import MISSING
from atp.base.near import near_miss
from atp.checks.matching.compare import difference, has_type, type_of
from atp.checks.output import TypeName
from atp.checks.verdicts import SHORT, show
from atp.engine.scripts.agent import Response
from atp.engine.scripts.runner import ScriptError, ScriptRunner, calling_line
from atp.engine.scripts.verdict import (
    check_now,
    compared,
    judge,
    judge_words,
    make_assertion,
    read_assertion,
    record_verdict,
    require_response,
)
from atp.suite.assertion import Assertion
from atp.suite.matcher import check_matchers
from atp.suite.result import Verdict

_ALSO = {
    "equals": "equal",
    "notequals": "not_equal",
    "istrue": "true",
    "isfalse": "false",
    "none": "nil",
    "notnone": "not_nil",
    "length": "len",
    "regex": "match",
    "matches": "match",
    "notregex": "not_match",
    "notmatches": "not_match",
    "raises": "panic",
    "validator": "agent",
}
"""Further names of assertions, lower case without underscores."""


class Assert:
    """The assertions of a test. An assertion that does not hold ends the test."""

    def __init__(self, runner: ScriptRunner) -> None:
        self._runner = runner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the assertion that another spelling names."""
        plain = name.replace("_", "").lower()
        known = {one.replace("_", ""): one for one in dir(type(self)) if not one.startswith("_")}
        found = known.get(plain) or _ALSO.get(plain)
        if name.startswith("_") or found is None:
            meant = near_miss(plain, [*known, *_ALSO])
            hint = f", did you mean `{known.get(meant) or _ALSO[meant]}`?" if meant else ""
            raise AttributeError(f"there is no assertion `{name}`{hint}", name=name, obj=self)
        method: Callable[..., Any] = getattr(self, found)
        return method

    def true(self, value: Any, message: str | None = None) -> None:
        """Assert that a value is truthy."""
        __tracebackhide__ = True
        self._record(compared("true", bool(value), f"expected true, found {show(value, SHORT)}"), message)

    def false(self, value: Any, message: str | None = None) -> None:
        """Assert that a value is falsy."""
        __tracebackhide__ = True
        self._record(compared("false", not value, f"expected false, found {show(value, SHORT)}"), message)

    def equal(self, actual: Any, expected: Any, message: str | None = None) -> None:
        """Assert that a value, or the output of a response, is as expected. `{"$gt": 3}` and the like are matchers."""
        __tracebackhide__ = True
        if isinstance(actual, Response):
            self._exact("equals", actual, {"value": expected}, message)
        else:
            self._record(_equal(actual, expected), message)

    def not_equal(self, actual: Any, expected: Any, message: str | None = None) -> None:
        """Assert that a value, or the output of a response, differs."""
        __tracebackhide__ = True
        if isinstance(actual, Response):
            self._exact("equals", actual, {"value": expected, "negate": True}, message)
        else:
            same = _equal(actual, expected).passed
            text = f"expected another value than {show(expected, SHORT)}"
            self._record(compared("not_equal", not same, text, found=actual), message)

    def nil(self, value: Any, message: str | None = None) -> None:
        """Assert that a value is None."""
        __tracebackhide__ = True
        self._record(compared("nil", value is None, f"expected nothing, found {show(value, SHORT)}"), message)

    def not_nil(self, value: Any, message: str | None = None) -> None:
        """Assert that a value is not None."""
        __tracebackhide__ = True
        self._record(compared("not_nil", value is not None, "expected something, found nothing"), message)

    def contains(self, actual: Any, value: Any, message: str | None = None, *, ignore_case: bool = False) -> None:
        """Assert that text contains a text, an object has these parts, or a list has this element."""
        __tracebackhide__ = True
        self._exact("contains", actual, {"value": value, "ignore_case": ignore_case}, message)

    def not_contains(self, actual: Any, value: Any, message: str | None = None, *, ignore_case: bool = False) -> None:
        """Assert that a value does not contain another."""
        __tracebackhide__ = True
        self._exact("not_contains", actual, {"value": value, "ignore_case": ignore_case}, message)

    def len(self, value: Any, length: int, message: str | None = None) -> None:
        """Assert the number of characters, elements or keys."""
        __tracebackhide__ = True
        found = _length(value, self._runner)
        what = found if found is not None else f"{show(_plain(value), SHORT)}, which has none"
        text = f"expected the length {length}, found {what}"
        self._record(compared("len", found == length, text, expected=length, found=found), message)

    def greater(self, one: Any, other: Any, message: str | None = None) -> None:
        """Assert that the first value is greater than the second."""
        __tracebackhide__ = True
        self._record(_ordered("greater", one, other, one > other, ">"), message)

    def greater_or_equal(self, one: Any, other: Any, message: str | None = None) -> None:
        """Assert that the first value is not less than the second."""
        __tracebackhide__ = True
        self._record(_ordered("greater_or_equal", one, other, one >= other, "≥"), message)

    def less(self, one: Any, other: Any, message: str | None = None) -> None:
        """Assert that the first value is less than the second."""
        __tracebackhide__ = True
        self._record(_ordered("less", one, other, one < other, "<"), message)

    def less_or_equal(self, one: Any, other: Any, message: str | None = None) -> None:
        """Assert that the first value is not greater than the second."""
        __tracebackhide__ = True
        self._record(_ordered("less_or_equal", one, other, one <= other, "≤"), message)

    def error(self, value: Any, message: str | None = None) -> None:
        """Assert that an error is not None."""
        __tracebackhide__ = True
        self._record(compared("error", value is not None, "expected an error, found none"), message)

    def no_error(self, value: Any, message: str | None = None) -> None:
        """Assert that an error is None."""
        __tracebackhide__ = True
        text = f"expected no error, found {show(value if isinstance(value, str) else repr(value), SHORT)}"
        self._record(compared("no_error", value is None, text), message)

    def panic(self, function: Callable[[], Any], message: str | None = None) -> None:
        """Assert that calling a function raises an exception."""
        __tracebackhide__ = True
        raised = _raised(function)
        self._record(compared("panic", raised is not None, "expected an exception, none was raised"), message)

    def no_panic(self, function: Callable[[], Any], message: str | None = None) -> None:
        """Assert that calling a function raises no exception."""
        __tracebackhide__ = True
        raised = _raised(function)
        text = f"expected no exception, {type(raised).__name__} was raised: {raised}"
        self._record(compared("no_panic", raised is None, text), message)

    def match(self, actual: Any, pattern: str, message: str | None = None) -> None:
        """Assert that a regular expression is found in the text of a value."""
        __tracebackhide__ = True
        self._exact("regex", actual, {"pattern": pattern}, message)

    def not_match(self, actual: Any, pattern: str, message: str | None = None) -> None:
        """Assert that a regular expression is not found in the text of a value."""
        __tracebackhide__ = True
        self._exact("regex", actual, {"pattern": pattern, "negate": True}, message)

    def type(self, actual: Any, name: TypeName, message: str | None = None, *, path: str | None = None) -> None:
        """Assert the JSON type of a value, or of the place in it that a path names."""
        __tracebackhide__ = True
        if isinstance(actual, Response) or path is not None:
            self._exact("type", actual, {"value": name, **({} if path is None else {"path": path})}, message)
            return
        make_assertion("type", {"value": name})  # says so if there is no such type
        found = type_of(actual)
        text = f"expected the type {name}, found {found}"
        self._record(compared("type", has_type(actual, name), text, expected=name, found=found), message)

    def json_path(self, actual: Any, path: str, value: Any = MISSING, message: str | None = None) -> None:
        """Assert that the place that a JSONPath names exists, or has a value."""
        __tracebackhide__ = True
        expected = {} if value is MISSING else {"value": value}
        self._exact("json_path", actual, {"path": path, **expected}, message)

    def json_schema(self, actual: Any, schema: dict[str, Any], message: str | None = None) -> None:
        """Assert that the JSON of a value fits a JSON Schema."""
        __tracebackhide__ = True
        self._exact("json_schema", actual, {"schema": schema}, message)

    def tool_called(self, response: Response, name: str, message: str | None = None, **keys: Any) -> None:
        """Assert that the agent called a tool in this turn; `arguments`, `times`, `before`, `after` as in files."""
        __tracebackhide__ = True
        self._exact("tool_called", require_response(response, "tool_called"), {"name": name, **keys}, message)

    def not_tool_called(self, response: Response, name: str, message: str | None = None, **keys: Any) -> None:
        """Assert that the agent did not call a tool in this turn; `arguments` as in files."""
        __tracebackhide__ = True
        self._exact("not_tool_called", require_response(response, "not_tool_called"), {"name": name, **keys}, message)

    def tool_result(self, response: Response, name: str, message: str | None = None, **keys: Any) -> None:
        """Assert the result of a tool; `value`, `contains`, `pattern`, `path`, `status` as in files."""
        __tracebackhide__ = True
        self._exact("tool_result", require_response(response, "tool_result"), {"name": name, **keys}, message)

    def tool_order(self, response: Response, tools: Sequence[str], message: str | None = None) -> None:
        """Assert the order of tool calls."""
        __tracebackhide__ = True
        self._exact("tool_order", require_response(response, "tool_order"), {"tools": list(tools)}, message)

    def artifact_exists(self, response: Response, path: str, message: str | None = None, **keys: Any) -> None:
        """Assert that the agent made a file or artifact; `contains`, `matches`, `json_schema` … as in files."""
        __tracebackhide__ = True
        self._exact("artifact_exists", require_response(response, "artifact_exists"), {"path": path, **keys}, message)

    def behavior(self, response: Response, check: str | None = None, message: str | None = None, **keys: Any) -> None:
        """Assert how the agent worked: a named check, or rules about tools as in files."""
        __tracebackhide__ = True
        named = {} if check is None else {"check": check}
        self._exact("behavior", require_response(response, "behavior"), {**named, **keys}, message)

    def agent(
        self, response: Any, validator: str, options: dict[str, Any] | None = None, message: str | None = None
    ) -> Any:
        """Have an agent decide; `options["metadata"]["criteria"]` says what to look for.

        In a coroutine: `await t.assert_.agent(…)`.
        """
        __tracebackhide__ = True
        given = dict(options or {})
        if "criteria" in given:
            given["metadata"] = {"criteria": given.pop("criteria"), **given.get("metadata", {})}
        use = validator if validator.startswith("agents:") else f"agents:{validator}"
        return self._judged(make_assertion("agent", {"use": use, "options": given}), response, message)

    def llm_eval(
        self, response: Any, criteria: str, threshold: float = 0.7, message: str | None = None, **keys: Any
    ) -> Any:
        """Have a model score a value; `judge`, `votes` as in files. A coroutine awaits it."""
        __tracebackhide__ = True
        made = make_assertion("llm_eval", {"criteria": criteria, "threshold": threshold, **keys})
        return self._judged(made, response, message)

    def script(self, response: Any, name: str, value: Any = MISSING, message: str | None = None) -> Any:
        """Have a Python function (`scripts:a.b`) decide. A coroutine awaits it."""
        __tracebackhide__ = True
        expected = {} if value is MISSING else {"value": value}
        return self._judged(make_assertion("script", {"script": name, **expected}), response, message)

    def expect(self, response: Any, *expectations: str) -> Any:
        """Assert expectations in words: checked exactly if that is possible, else by the judge of the run.

        In a coroutine it is awaited.
        """
        __tracebackhide__ = True
        if not expectations:
            raise ScriptError("`expect`: nothing is expected")

        here = calling_line()

        def hear(verdicts: list[Verdict]) -> None:
            __tracebackhide__ = True
            ordered = sorted(verdicts, key=lambda one: one.outcome == "failed")  # the one that is raised comes last
            for verdict in ordered[:-1]:
                self._runner.record(verdict, here)
            record_verdict(self._runner, ordered[-1], here)

        return self._runner.run_in_loop("expect", lambda: judge_words(self._runner, list(expectations), response), hear)

    def check(self, response: Any, assertion: dict[str, Any]) -> Any:
        """Check an assertion as files write it: `{"type": "contains", "value": "tea"}`. A coroutine awaits it."""
        __tracebackhide__ = True
        return self._judged(read_assertion(assertion), response, None)

    def _exact(self, kind: str, actual: Any, keys: dict[str, Any], message: str | None) -> None:
        __tracebackhide__ = True
        self._record(check_now(self._runner, make_assertion(kind, keys), actual), message)

    def _judged(self, assertion: Assertion, actual: Any, message: str | None) -> Any:
        __tracebackhide__ = True
        here = calling_line()

        def hear(verdict: Verdict) -> None:
            __tracebackhide__ = True
            record_verdict(self._runner, verdict, here, message)

        return self._runner.run_in_loop(assertion.type, lambda: judge(self._runner, assertion, actual), hear)

    def _record(self, verdict: Verdict, message: str | None) -> None:
        __tracebackhide__ = True
        record_verdict(self._runner, verdict, calling_line(), message)


def _equal(actual: Any, expected: Any) -> Verdict:
    try:
        check_matchers(expected)
    except ValueError as error:
        raise ScriptError(f"`equal`: {error}") from error
    differs = difference(expected, actual)
    if differs is None:
        return compared("equals", True, "", expected=expected)
    place = f" at ${differs.path}" if differs.path else ""
    wanted = "nothing" if differs.expected is MISSING else show(differs.expected, SHORT)
    found = "nothing" if differs.found is MISSING else show(differs.found, SHORT)
    return compared("equals", False, f"expected {wanted}{place}, found {found}", expected=expected, found=actual)


def _plain(value: Any) -> Any:
    return value.output if isinstance(value, Response) else value


def _length(value: Any, runner: ScriptRunner) -> int | None:
    """Return the length of a value; None if an agent may have answered the value and it has no length.

    Raises `ScriptError` for what no agent can have answered: then the test has taken the wrong thing.
    """
    try:
        return len(_plain(value))
    except TypeError:
        answered = bool(runner.responses) and isinstance(value, bool | int | float | None)
        if isinstance(value, Response) or answered:
            return None
        raise ScriptError(f"`len`: {show(value, SHORT)} has no length") from None


def _ordered(kind: str, one: Any, other: Any, holds: bool, sign: Literal[">", "≥", "<", "≤"]) -> Verdict:
    return compared(kind, holds, f"expected {show(one, SHORT)} {sign} {show(other, SHORT)}", found=one)


def _raised(function: Callable[[], Any]) -> Exception | None:
    if not callable(function):
        raise ScriptError(f"`panic` takes a function, not {type(function).__name__}")
    try:
        made = function()
    except Exception as error:
        return error
    if inspect.isawaitable(made):
        if inspect.iscoroutine(made):
            made.close()
        raise ScriptError("`panic` and `no_panic` can't await: write try and except")
    return None
