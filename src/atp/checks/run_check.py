"""From an assertion to its verdict.

A kind of check is a function, registered under the `type` that files give, ours and a plugin's in the same way. What
every assertion takes (`negate`, `message`, `weight`, `critical`) is applied here, once for all kinds; and whatever goes
wrong in a check makes it unjudged, with the reason, never a pass and never nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, TypeVar

from atp.base.text import cut
from atp.checks.evidence import Evidence
from atp.checks.patterns import LONGEST, TooSlow, be_patient, be_quick
from atp.checks.verdicts import show, unjudged
from atp.suite.assertion import ASSERTIONS, Assertion, Group
from atp.suite.result import Verdict
from atp.usercode.threads import in_thread

Check = Callable[[Any, Evidence], Verdict | Awaitable[Verdict]]
"""Gives a verdict on an assertion of its kind. One that waits for others is a coroutine function."""
Registered = TypeVar("Registered", bound=Check)

_CHECKS: dict[str, Check] = {}
_MODULES: dict[str, str] = {}


def check(kind: str) -> Callable[[Registered], Registered]:
    """A decorator: this function checks assertions of this `type`."""

    def register(function: Registered) -> Registered:
        _CHECKS[kind] = function
        return function

    return register


def checks_at(module: str, *kinds: str) -> None:
    """The module that registers these kinds when it is imported, which is not before one of them is needed."""
    _MODULES.update(dict.fromkeys(kinds, module))


checks_at("atp.checks.output", "equals", "contains", "not_contains", "regex", "json_path", "type", "json_schema")
checks_at("atp.checks.tools", "tool_called", "not_tool_called", "tool_result", "tool_order")
checks_at("atp.checks.behavior", "behavior")
checks_at("atp.checks.artifacts", "artifact_exists")
checks_at("atp.checks.script", "script")
checks_at("atp.checks.judged", "llm_eval", "agent")
checks_at("atp.checks.groups", "all_of", "any_of", "none_of", "at_least")


def find_check(kind: str) -> Check | None:
    """The function that checks this `type`, if there is one."""
    found = _CHECKS.get(kind)
    if found is None and kind in _MODULES:
        import_module(_MODULES[kind])
        found = _CHECKS.get(kind)
    if found is None:
        ASSERTIONS.discover()  # a plugin's module registers the shape of an assertion and its check together
        found = _CHECKS.get(kind)
    return found


def unsupported(assertion: Assertion) -> str | None:
    """Why an assertion can't be judged at all, for whoever plans a run. Looks into groups, too."""
    if isinstance(assertion, Group):
        for inner in assertion.assertions:
            if reason := unsupported(inner):
                return reason
    if find_check(assertion.type) is not None:
        return None
    return f"nothing is installed that checks `{assertion.type}`"


async def run_check(assertion: Assertion, evidence: Evidence) -> Verdict:
    """What comes of an assertion. Only a genuine cancellation comes out of here as an exception."""
    function: Check | None = None
    try:
        function = _CHECKS.get(assertion.type) or find_check(assertion.type)
        if function is None:
            verdict = unjudged(unsupported(assertion) or "")
        else:
            be_quick()
            found = function(assertion, evidence)
            verdict = found if type(found) is Verdict else await _awaited(found)
    except TooSlow:
        assert function is not None
        verdict = await in_background(function, assertion, evidence)
    except BaseException as error:
        verdict = _contained(error)
    return _settle(verdict, assertion)


async def _awaited(found: Any) -> Verdict:
    verdict = await found if isinstance(found, Awaitable) else found
    if not isinstance(verdict, Verdict):
        return unjudged(f"the check gave {show(verdict, 100)}, not a verdict")
    return verdict


async def in_background(function: Check, assertion: Assertion, evidence: Evidence) -> Verdict:
    """A check done in a thread, with more time to search: the event loop belongs to all trials."""

    def patiently() -> Any:
        be_patient(LONGEST)
        return function(assertion, evidence)

    try:
        return await _awaited(await in_thread(patiently))
    except TooSlow:
        return unjudged(f"the regular expression took longer than {LONGEST:g} s on what the agent gave")
    except BaseException as error:
        return _contained(error)


def _contained(error: BaseException) -> Verdict:
    """An error in a check as its verdict. A cancellation counts as one only if nobody cancelled us."""
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
    return unjudged(f"the check broke: {said(error)}")


def said(error: BaseException) -> str:
    """An exception in a line, as the last line of its traceback."""
    if isinstance(error, RecursionError):
        return "RecursionError: the data is nested too deeply"
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _settle(verdict: Verdict, assertion: Assertion) -> Verdict:
    """Apply to a verdict what every assertion takes."""
    verdict.type = assertion.type
    verdict.weight = assertion.weight
    verdict.judged = verdict.judged or assertion.judged
    if verdict.name is None:
        verdict.name = name_of(assertion)
    if assertion.negate:
        _turn_round(verdict)
    verdict.critical = verdict.critical or assertion.critical
    if assertion.message is not None and verdict.outcome == "failed":
        verdict.message = assertion.message
    return verdict


def _turn_round(verdict: Verdict) -> None:
    if verdict.outcome == "passed":
        verdict.outcome, verdict.message = "failed", f"this should not hold, but it does: {verdict.message}"
    elif verdict.outcome == "failed":
        verdict.outcome, verdict.message = "passed", f"this does not hold, as wanted: {verdict.message}"
    else:
        return
    verdict.critical = False
    if verdict.score is not None:
        verdict.score = 1 - verdict.score


_NAMED_BY = ("path", "name", "pattern", "value", "check", "tools", "criteria", "script", "use")
_naming: dict[type[Assertion], tuple[str, ...]] = {}


def name_of(assertion: Assertion) -> str | None:
    """What tells an assertion from others of its kind: the path, tool, text or pattern it is about."""
    kind = type(assertion)
    if kind not in _naming:
        _naming[kind] = tuple(key for key in _NAMED_BY if key in kind.model_fields)
    for key in _naming[kind]:
        value = getattr(assertion, key)
        if value is not None:
            return cut(value, 80) if isinstance(value, str) else show(value, 80)
    return None
