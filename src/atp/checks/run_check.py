"""Runs the check of an assertion, whatever kind it is of.

What every assertion takes (`negate`, `message`, `weight`, `critical`) is applied here. Whatever goes wrong in a check
makes the assertion unjudged, with the reason; it never passes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from atp.base.json.found import SearchCutShort
from atp.checks.evidence import Evidence, NotKept
from atp.checks.matching.patterns import LONGEST, TooSlow, allow_searching, allow_short_searches
from atp.checks.verdicts import short, show, unjudged
from atp.suite.assertion import Assertion
from atp.suite.metrics import read_metrics
from atp.suite.result import Verdict
from atp.usercode.threads import in_thread


async def run_check(assertion: Assertion, evidence: Evidence) -> Verdict:
    """Check an assertion. Raises nothing but a cancellation of the task that it runs in."""
    if assertion.turns == "own":
        evidence = evidence.of_own_turns()
    try:
        allow_short_searches()
        found = assertion.check(evidence)
        verdict = found if type(found) is Verdict else await _awaited(found)
    except TooSlow:
        verdict = await in_background(assertion.check, evidence)
    except BaseException as error:
        verdict = _contained(error)
    if verdict.metrics:
        verdict = _with_read_metrics(verdict)
    return _apply_common_keys(verdict, assertion)


def _with_read_metrics(verdict: Verdict) -> Verdict:
    """The verdict, or an unjudged one if a metric in it can't be kept."""
    try:
        verdict.metrics = read_metrics(verdict.metrics)
    except ValueError as error:
        return unjudged(f"the check gave metrics that can't be kept: {error}", where=verdict.where)
    return verdict


async def _awaited(found: Any) -> Verdict:
    verdict = await found if isinstance(found, Awaitable) else found
    if not isinstance(verdict, Verdict):
        return unjudged(f"the check gave {show(verdict, 100)}, not a verdict")
    return verdict


async def in_background(check: Callable[[Evidence], Any], evidence: Evidence) -> Verdict:
    """Run a check in a thread, with more time for regular expressions: the event loop belongs to all trials."""

    def checked() -> Any:
        allow_searching(LONGEST)
        return check(evidence)

    try:
        return await _awaited(await in_thread(checked))
    except TooSlow:
        return unjudged(f"searching what the agent gave took longer than {LONGEST:g} s")
    except BaseException as error:
        return _contained(error)


def _contained(error: BaseException) -> Verdict:
    """The verdict on an error in a check. A `CancelledError` is an error too, unless the task was really cancelled."""
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
    if isinstance(error, SearchCutShort | NotKept):
        return unjudged(str(error))
    return unjudged(f"the check broke: {last_line(error)}")


def last_line(error: BaseException) -> str:
    """An exception in one line, like the last line of a traceback."""
    if isinstance(error, RecursionError):
        return "RecursionError: the data is nested too deeply"
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _apply_common_keys(verdict: Verdict, assertion: Assertion) -> Verdict:
    """Apply the keys that every assertion takes to a verdict."""
    verdict.type = assertion.type
    verdict.weight = assertion.weight
    verdict.judged = verdict.judged or assertion.judged
    if verdict.name is None:
        verdict.name = name_of(assertion)
    if assertion.negate:
        _negate(verdict)
    verdict.critical = verdict.critical or assertion.critical
    if assertion.message is not None and verdict.outcome == "failed":
        verdict.message = assertion.message
    return verdict


def _negate(verdict: Verdict) -> None:
    if verdict.outcome == "passed":
        verdict.outcome, verdict.message = "failed", f"this should not hold, but it does: {verdict.message}"
    elif verdict.outcome == "failed":
        verdict.outcome, verdict.message = "passed", f"this does not hold, as wanted: {verdict.message}"
    else:
        return
    verdict.critical = False
    if verdict.score is not None:
        verdict.score = 1 - verdict.score


_NAMED_BY = ("path", "name", "pattern", "value", "check_", "tools", "criteria", "script", "use")
_naming: dict[type[Assertion], tuple[str, ...]] = {}


def name_of(assertion: Assertion) -> str | None:
    """What tells an assertion from others of its kind: its path, tool, text or pattern."""
    kind = type(assertion)
    if kind not in _naming:
        _naming[kind] = tuple(key for key in _NAMED_BY if key in kind.model_fields)
    for key in _naming[kind]:
        value = getattr(assertion, key)
        if value is not None:
            return short(value, 80) if isinstance(value, str) else show(value, 80)
    return None
