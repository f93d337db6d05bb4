"""A test in Python as a trial: its function is called, and whatever comes of that is told apart."""

import contextlib
import contextvars
import inspect
import sysconfig
import traceback
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import atp
from atp.agents.adapter import AgentError
from atp.base.errors import ConfigurationError
from atp.checks.verdicts import SHORT, show
from atp.engine.scripts.file import OFFERED, ScriptCase
from atp.engine.scripts.objects import Context, T
from atp.engine.scripts.runner import ScriptError, Skipped, Stage
from atp.engine.scripts.verdict import AssertionFailed, NotJudged, compared
from atp.engine.trial.workspace import WorkspaceError
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.player import RoleError
from atp.suite.result import Verdict
from atp.usercode.contain import contained
from atp.usercode.printed import Printed
from atp.usercode.threads import Raised, Thread

_TOLD_ELSEWHERE = (AgentError, RoleError, CassetteError, CassetteMiss, WorkspaceError)
"""What says itself who is to blame."""
_NOT_THEIRS = (str(Path(atp.__file__).parent), *(sysconfig.get_path(one) for one in ("stdlib", "purelib", "platlib")))
"""Where our code is, Python's own, and that of installed packages."""


async def hold_script(stage: Stage) -> str | None:
    """Call a test's function. What it found is in the stage's result; returns why it asked to be left out, if it did.

    Raises `ScriptError` if the test itself is wrong, and what says itself who is to blame.
    """
    case, ctx = stage.trial.case, Context(stage)
    assert isinstance(case, ScriptCase)
    try:
        outcome = await _call(case, stage, {"t": T(stage, case.function), "ctx": ctx})
    finally:
        stage.close()
        with contextlib.suppress(Exception):
            ctx.end()
    if isinstance(outcome, Raised):
        _heard(outcome.error, stage)
    elif outcome is not None:
        _returned(outcome, stage)
    verdicts = stage.result.verdicts
    forgotten = stage.never_awaited()
    if forgotten is not None and not any(one.outcome == "failed" for one in verdicts):
        raise ScriptError(str(forgotten))
    if not verdicts and not case.plain_asserts and stage.skipped is None:
        stage.result.warnings.append("no assertions")
    return stage.skipped


async def _call(case: ScriptCase, stage: Stage, offered: dict[str, Any]) -> Any:
    """What the function gives, or `Raised`; what it prints goes to the trial's log."""
    function = case.callable
    takes = inspect.signature(function).parameters
    given = {name: offered[name] for name in OFFERED if name in takes}
    printed = Printed()
    context = contextvars.copy_context()
    context.run(printed.catch)
    try:
        if inspect.iscoroutinefunction(function):
            made = function(**given)
        else:
            made = await Thread(context).call(lambda: function(**given), last=True)
        if inspect.isawaitable(made):
            made = await contained(made if inspect.iscoroutine(made) else _awaited(made), context)
        return made
    finally:
        stage.result.transcript.logs.extend(printed.finish())


async def _awaited(made: Awaitable[Any]) -> Any:
    return await made


def _heard(error: BaseException, stage: Stage) -> None:
    """Take in what a test raised."""
    by_pytest = type(error).__name__ if _is_pytests(error) else ""
    verdicts = stage.result.verdicts
    if isinstance(error, Skipped) or by_pytest == "Skipped":
        stage.skipped = str(error)
    elif isinstance(error, AssertionFailed | NotJudged) and error.verdict in verdicts:
        pass
    elif isinstance(error, AssertionError) or by_pytest == "Failed":
        stage.result.verdicts.append(_plain(error))
    elif any(one.outcome == "failed" for one in verdicts):  # that it goes wrong after a failure explains nothing
        stage.result.warnings.append(f"after that, the test raised {_said(error)}")
    else:
        if isinstance(error, _TOLD_ELSEWHERE):
            raise error
        lines = traceback.format_list(_theirs(error)) + traceback.format_exception_only(error)
        stage.result.transcript.logs.extend("".join(lines).splitlines())
        raise ScriptError(_said(error)) from error


def _returned(value: Any, stage: Stage) -> None:
    """A test that returns something may mean it for its verdict, which it is not. Of true and false that is certain."""
    told = f"it returned {show(value, SHORT)}, and what a test returns decides nothing"
    if isinstance(value, bool) and not any(one.outcome == "failed" for one in stage.result.verdicts):
        raise ScriptError(f"{told}: write `assert`, or t.assert_.true(…)")
    stage.result.warnings.append(told)


def _is_pytests(error: BaseException) -> bool:
    """Whether `pytest.skip` or `pytest.fail` raised it, told without importing pytest."""
    return any(base.__module__ == "_pytest.outcomes" for base in type(error).__mro__)


def _plain(error: BaseException) -> Verdict:
    """The verdict of an `assert` statement, with its text where it has no message of its own."""
    frame = _place(error)
    text = str(error).strip() or (frame.line if frame is not None and frame.line else "it does not hold")
    verdict = compared("assert", False, text)
    verdict.where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" if frame is not None else None
    return verdict


def _said(error: BaseException) -> str:
    if isinstance(error, ScriptError | ConfigurationError):
        hint = getattr(error, "hint", None)
        text = f"{error} ({hint})" if hint else str(error)
    else:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    frame = _place(error)
    return f"{text} ({frame.filename}, line {frame.lineno})" if frame is not None else text


def _place(error: BaseException) -> traceback.FrameSummary | None:
    """The last line of the user's own code."""
    frames = _theirs(error)
    return frames[-1] if frames else None


def _theirs(error: BaseException) -> list[traceback.FrameSummary]:
    """Where an exception came through the user's own code."""
    return [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(_NOT_THEIRS)]
