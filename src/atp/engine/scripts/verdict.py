"""From an assertion of a test in Python to its verdict, and from there to what the test hears of it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from atp.base.diagnostics import Diagnostics
from atp.checks.observable import met, needs
from atp.checks.registry import run_check
from atp.checks.verdicts import failed, passed, show, unjudged
from atp.engine.scripts.agent import Response
from atp.engine.scripts.runner import ScriptError, Stage
from atp.loader.validate import Nowhere, read
from atp.suite.assertion import ASSERTIONS, AnyAssertion, Assertion
from atp.suite.case import Case
from atp.suite.record import Record
from atp.suite.result import Blame, Transcript, Turn, Verdict


class AssertionFailed(AssertionError):
    """An assertion of a test does not hold."""

    __module__ = "atp"  # what a test that fails begins with should leave room for the reason

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(told(verdict))
        self.verdict = verdict
        """What the check found."""


class NotJudged(Exception):
    """An assertion that nobody could decide."""

    __module__ = "atp"
    blame: Blame = "judge"
    """Who is to blame."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(told(verdict))
        self.verdict = verdict
        """Why not."""


def told(verdict: Verdict) -> str:
    """A verdict in words: what was expected, and what was found."""
    lines = [f"{verdict.type}: {'not judged: ' if verdict.outcome == 'unjudged' else ''}{verdict.message}"]
    for label, value in (("expected", verdict.expected), ("found", verdict.found)):
        if value is not None and (text := show(value)) not in verdict.message:
            lines.append(f"  {label + ':':<9} {text}")
    return "\n".join(lines)


class _Holder(Record):
    assertion: AnyAssertion


ASSERTIONS.on_change(lambda: _Holder.model_rebuild(force=True))


def make_assertion(kind: str, keys: dict[str, Any]) -> Assertion:
    """An assertion as a file would give it. Raises `ScriptError` if it makes none."""
    notes = Diagnostics()
    made = read(_Holder, {"assertion": {"type": kind, **keys}}, notes, Nowhere())
    if notes or made is None:
        hint = f" ({notes[0].hint})" if notes[0].hint else ""
        raise ScriptError(f"`{kind}`: {notes[0].message}{hint}")
    return made.assertion


def given_assertion(assertion: Any) -> Assertion:
    """The assertion that a test gives to `check`. Raises `ScriptError` if it is none."""
    __tracebackhide__ = True
    if not isinstance(assertion, Mapping):
        example = '{"type": "contains", "value": "tea"}'
        raise ScriptError(f"`check` takes an assertion as files give it ({example}), not {show(assertion)}")
    keys = dict(assertion)
    return make_assertion(str(keys.pop("type", "")), keys)


def check_now(stage: Stage, assertion: Assertion, actual: Any) -> Verdict:
    """The verdict of a check that decides exactly."""
    unobserved = _unobserved(assertion, actual)
    if unobserved is not None:
        return unobserved
    evidence = stage.evidence(_transcript(actual))
    if stage.in_coroutine():
        return _at_once(lambda: run_check(assertion, evidence))
    verdict: Verdict = stage.bring(assertion.type, lambda: run_check(assertion, evidence))
    return verdict


async def judge(stage: Stage, assertion: Assertion, actual: Any) -> Verdict:
    """The verdict of a check that a model, an agent or a script of the user's decides."""
    stage.works("judge")
    try:
        return await run_check(assertion, stage.evidence(_seen(stage, actual), judged=True))
    finally:
        stage.works("agent")


async def judge_words(stage: Stage, expectations: list[str], actual: Any) -> list[Verdict]:
    """The verdicts on expectations in words, each decided exactly if it has an exact meaning."""
    from atp.checks.case_checks import check_case

    case = Case(id=stage.trial.case.id, name=stage.trial.case.name, expectations=expectations)
    if isinstance(actual, Response):
        unseen = next((need for need in needs(case) if not met(need, actual.capabilities)), None)
        if unseen is not None:
            return [unjudged(f"agent `{actual.agent}` can never report {unseen.why}")]
    stage.works("judge")
    try:
        return await check_case(case, stage.evidence(_seen(stage, actual), judged=True))
    finally:
        stage.works("agent")


def compared(kind: str, holds: bool, message: str, *, expected: Any = None, found: Any = None) -> Verdict:
    """The verdict of a comparison that Python makes."""
    verdict = (passed if holds else failed)(message if not holds else "", expected=expected, found=found)
    verdict.type = kind
    return verdict


def settle(stage: Stage, verdict: Verdict, here: str, message: str | None = None) -> None:
    """Write a verdict down, with the line that asked. Raises `AssertionFailed` or `NotJudged` if it isn't a pass."""
    __tracebackhide__ = True
    if message is not None and verdict.outcome == "failed":
        verdict.message = message
    stage.record(verdict, here)
    if verdict.outcome == "failed":
        raise AssertionFailed(verdict)
    if verdict.outcome == "unjudged":
        raise NotJudged(verdict)


def needs_response(actual: Any, kind: str) -> Response:
    """What a check about tools or files needs. Raises `ScriptError` for anything else."""
    if isinstance(actual, Response):
        return actual
    raise ScriptError(f"`{kind}` is about a response of `ctx.agent(…).send(…)`, not about {type(actual).__name__}")


def _unobserved(assertion: Assertion, actual: Any) -> Verdict | None:
    """What an agent can never report must not pass for lack of being seen."""
    if not isinstance(actual, Response):
        return None
    for need in needs(Case.model_construct(id="-", assertions=[assertion], checkpoints=[], expectations=[])):
        if not met(need, actual.capabilities):
            verdict = unjudged(f"agent `{actual.agent}` can never report {need.why}")
            verdict.type = assertion.type
            return verdict
    return None


def _transcript(actual: Any) -> Transcript:
    """A response's own, or one in which a value was answered."""
    if isinstance(actual, Response):
        return actual.transcript
    return Transcript(turns=[Turn(turn=1, input=None, output=actual)])


def _seen(stage: Stage, actual: Any) -> Transcript:
    """The same; a value that an agent has answered stands for its response, so that a judge sees what was asked."""
    if isinstance(actual, Response):
        return actual.transcript
    for response in reversed(stage.responses):
        same = type(actual) is type(response.output) and actual == response.output
        if same or actual == response.content:
            return response.transcript
    return _transcript(actual)


def _at_once(begin: Callable[[], Coroutine[Any, Any, Verdict]]) -> Verdict:
    """What a check gives, in a coroutine that must not wait: hardly any needs to, and then a loop of its own does."""
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
