"""Verdicts of assertions in a test in Python, and the exceptions that they raise in the test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from atp.base.diagnostics import Diagnostics
from atp.base.errors import Error
from atp.checks.before_run import met, needs
from atp.checks.run_check import run_check
from atp.checks.verdicts import failed, passed, show, unjudged
from atp.engine.scripts.agent import Response
from atp.engine.scripts.runner import ScriptError, ScriptRunner
from atp.loader.validate import NoLocator, validate
from atp.suite.assertion import AnyAssertion, Assertion
from atp.suite.case import Case
from atp.suite.record import Record
from atp.suite.result import Blame, Transcript, Turn, Verdict


class AssertionFailed(AssertionError):
    """An assertion of a test does not hold."""

    __module__ = "atp"  # short, because tracebacks begin with it

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict_text(verdict))
        self.verdict = verdict
        """The verdict of the check."""


class NotJudged(Error):
    """An assertion that no check or judge could decide."""

    __module__ = "atp"
    blame: Blame = "judge"
    """The blame of the trial's error."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict_text(verdict))
        self.verdict = verdict
        """The verdict, which says why."""


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict as text: what was expected, and what was found."""
    lines = [f"{verdict.type}: {'not judged: ' if verdict.outcome == 'unjudged' else ''}{verdict.message}"]
    for label, value in (("expected", verdict.expected), ("found", verdict.found)):
        if value is not None and (text := show(value)) not in verdict.message:
            lines.append(f"  {label + ':':<9} {text}")
    return "\n".join(lines)


class _Holder(Record):
    assertion: AnyAssertion


def make_assertion(kind: str, keys: dict[str, Any]) -> Assertion:
    """Validate an assertion with the keys that a file would have. Raises `ScriptError`."""
    notes = Diagnostics()
    made = validate(_Holder, {"assertion": {"type": kind, **keys}}, notes, NoLocator())
    if notes or made is None:
        raise ScriptError(f"`{kind}`: {notes[0].with_hint}")
    return made.assertion


def read_assertion(assertion: Any) -> Assertion:
    """Validate the assertion that a test passes to `check`. Raises `ScriptError`."""
    __tracebackhide__ = True
    if not isinstance(assertion, Mapping):
        example = '{"type": "contains", "value": "tea"}'
        raise ScriptError(f"`check` takes an assertion as files give it ({example}), not {show(assertion)}")
    keys = dict(assertion)
    return make_assertion(str(keys.pop("type", "")), keys)


def check_now(runner: ScriptRunner, assertion: Assertion, actual: Any) -> Verdict:
    """Return the verdict of an exact check."""
    unobserved = _unobserved(assertion, actual)
    if unobserved is not None:
        return unobserved
    evidence = runner.evidence(_transcript(actual))
    if runner.in_coroutine():
        return _run_without_waiting(lambda: run_check(assertion, evidence))
    verdict: Verdict = runner.run_in_loop(assertion.type, lambda: run_check(assertion, evidence))
    return verdict


async def judge(runner: ScriptRunner, assertion: Assertion, actual: Any) -> Verdict:
    """Return the verdict of a check that a model, an agent or a script of the user decides."""
    runner.on_actor("judge")
    try:
        return await run_check(assertion, runner.evidence(_transcript_with_input(runner, actual), judged=True))
    finally:
        runner.on_actor("test")


async def judge_words(runner: ScriptRunner, expectations: list[str], actual: Any) -> list[Verdict]:
    """Return the verdicts on expectations in words. An expectation with an exact meaning is checked exactly."""
    from atp.checks.case_checks import check_case

    case = Case(id=runner.trial.case.id, name=runner.trial.case.name, expectations=expectations)
    if isinstance(actual, Response):
        unseen = next((need for need in needs(case) if not met(need, actual.capabilities)), None)
        if unseen is not None:
            return [unjudged(f"agent `{actual.agent}` can never report {unseen.why}")]
    runner.on_actor("judge")
    try:
        return await check_case(case, runner.evidence(_transcript_with_input(runner, actual), judged=True))
    finally:
        runner.on_actor("test")


def compared(kind: str, holds: bool, message: str, *, expected: Any = None, found: Any = None) -> Verdict:
    """Return the verdict of a comparison made in Python."""
    verdict = (passed if holds else failed)(message if not holds else "", expected=expected, found=found)
    verdict.type = kind
    return verdict


def record_verdict(runner: ScriptRunner, verdict: Verdict, here: str, message: str | None = None) -> None:
    """Record a verdict with the line of the call. Raises `AssertionFailed` or `NotJudged` if it isn't a pass."""
    __tracebackhide__ = True
    if message is not None and verdict.outcome == "failed":
        verdict.message = message
    runner.record(verdict, here)
    if verdict.outcome == "failed":
        raise AssertionFailed(verdict)
    if verdict.outcome == "unjudged":
        raise NotJudged(verdict)


def require_response(actual: Any, kind: str) -> Response:
    """Return `actual` if it is a response, which checks about tools or files need. Raises `ScriptError`."""
    if isinstance(actual, Response):
        return actual
    raise ScriptError(f"`{kind}` is about a response of `ctx.agent(…).send(…)`, not about {type(actual).__name__}")


def _unobserved(assertion: Assertion, actual: Any) -> Verdict | None:
    """Return an unjudged verdict if the agent can never report what the assertion is about."""
    if not isinstance(actual, Response):
        return None
    for need in needs(Case.model_construct(id="-", assertions=[assertion], checkpoints=[], expectations=[])):
        if not met(need, actual.capabilities):
            verdict = unjudged(f"agent `{actual.agent}` can never report {need.why}")
            verdict.type = assertion.type
            return verdict
    return None


def _transcript(actual: Any) -> Transcript:
    """Return the transcript of a response, or one whose only answer is the value."""
    if isinstance(actual, Response):
        return actual.transcript
    return Transcript(turns=[Turn(turn=1, input=None, output=actual)])


def _transcript_with_input(runner: ScriptRunner, actual: Any) -> Transcript:
    """Like `_transcript`, but find the response that a plain value came from, so that a judge sees the input."""
    if isinstance(actual, Response):
        return actual.transcript
    for response in reversed(runner.responses):
        same = type(actual) is type(response.output) and actual == response.output
        if same or actual == response.content:
            return response.transcript
    return _transcript(actual)


def _run_without_waiting(begin: Callable[[], Coroutine[Any, Any, Verdict]]) -> Verdict:
    """Run a check inside a coroutine that must not wait. Few checks wait; those run in a thread with its own loop."""
    check = begin()
    try:
        check.send(None)
    except StopIteration as done:
        verdict: Verdict = done.value
        return verdict
    check.close()
    found: list[Verdict] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(begin())), daemon=True)
    thread.start()
    thread.join()
    return found[0]
