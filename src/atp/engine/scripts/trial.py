"""Runs a test in Python as a trial: calls its function, and turns what it returns or raises into the result."""

import contextlib
import inspect
import sysconfig
import traceback
from pathlib import Path
from typing import Any

import atp
from atp.agents.adapter import AgentError
from atp.base.errors import ConfigurationError
from atp.checks.verdicts import SHORT, show_foreign
from atp.engine.scripts.file import OFFERED, ScriptCase
from atp.engine.scripts.objects import Context, T
from atp.engine.scripts.runner import ScriptError, ScriptRunner, Skipped
from atp.engine.scripts.verdict import AssertionFailed, NotJudged, compared
from atp.engine.trial.workspace import WorkspaceError
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.ask import RoleError
from atp.suite.result import NO_ASSERTIONS, Verdict
from atp.usercode.call import Raised, call

_HAVE_BLAME = (AgentError, RoleError, CassetteError, CassetteMiss, WorkspaceError)
"""Errors that carry their blame."""
_NOT_USER_CODE = (
    str(Path(atp.__file__).parent),
    *(sysconfig.get_path(one) for one in ("stdlib", "purelib", "platlib")),
)
"""The folders of ATP, of the standard library and of installed packages."""


async def run_script_test(runner: ScriptRunner) -> str | None:
    """Call the function of a test. Its verdicts go to `runner.result`. Returns the reason of a skip, if it skipped.

    Raises `ScriptError` if the test itself is wrong, and errors that carry their blame.
    """
    case, ctx = runner.trial.case, Context(runner)
    assert isinstance(case, ScriptCase)
    offered = {"t": T(runner, case.function), "ctx": ctx}
    takes = inspect.signature(case.callable).parameters
    given = {name: offered[name] for name in OFFERED if name in takes}
    raised: Raised | None = None
    value = None
    try:
        value = await call(case.callable, (), given, log=runner.result.transcript.logs.append)
    except Raised as error:
        raised = error
    finally:
        runner.close()
        with contextlib.suppress(Exception):
            ctx.end()
    if raised is not None:
        _take_error(raised, runner)
    elif type(value) is dict and value.keys() == {"metrics"}:
        runner.give_metrics(value["metrics"])
    elif value is not None:
        _warn_of_return_value(value, runner)
    verdicts = runner.result.verdicts
    forgotten = runner.never_awaited()
    if forgotten is not None and not any(one.outcome == "failed" for one in verdicts):
        raise ScriptError(str(forgotten))
    if not verdicts and not case.plain_asserts and runner.skipped is None:
        runner.result.warnings.append(NO_ASSERTIONS)
    return runner.skipped


def _take_error(raised: Raised, runner: ScriptRunner) -> None:
    """Turn an exception of the test into a skip, a verdict, a warning or an error of the script."""
    error: Any = raised.error
    by_pytest = type(error).__name__ if _is_pytests(error) else ""
    verdicts = runner.result.verdicts
    if raised.is_a(Skipped) or by_pytest == "Skipped":
        runner.skipped = str(error)
    elif raised.is_a((AssertionFailed, NotJudged)) and error.verdict in verdicts:
        pass
    elif raised.is_a(AssertionError) or by_pytest == "Failed":
        runner.result.verdicts.append(_plain(raised))
    elif any(
        one.outcome == "failed" for one in verdicts
    ):  # a failure was recorded before: the exception may follow from it
        runner.result.warnings.append(f"after that, the test raised {_error_text(raised)}")
    else:
        if raised.is_a(_HAVE_BLAME):
            raise error
        # Not `format_exception_only`: it asks the exception for its class, which may be the user's code.
        lines = [*traceback.format_list(_user_frames(error)), str(raised)]
        runner.result.transcript.logs.extend("".join(lines).splitlines())
        raise ScriptError(_error_text(raised)) from error


def _warn_of_return_value(value: Any, runner: ScriptRunner) -> None:
    """Warn of a return value, which decides nothing unless it has metrics. A bool is surely meant as the verdict."""
    text = f"it returned {show_foreign(value, SHORT)}, and what a test returns decides nothing"
    if type(value) is bool and not any(one.outcome == "failed" for one in runner.result.verdicts):
        raise ScriptError(f"{text}: write `assert`, or t.assert_.true(…)")
    runner.result.warnings.append(text)


def _is_pytests(error: BaseException) -> bool:
    """True if `pytest.skip` or `pytest.fail` raised the exception. Does not import pytest."""
    return any(base.__module__ == "_pytest.outcomes" for base in type(error).__mro__)


def _plain(raised: Raised) -> Verdict:
    """Return the verdict of a failed `assert` statement; its source line is the message if it has none."""
    frame = _user_frame(raised.error)
    text = raised.message.strip() or (frame.line if frame is not None and frame.line else "the assertion does not hold")
    verdict = compared("assert", False, text)
    verdict.where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" if frame is not None else None
    return verdict


def _error_text(raised: Raised) -> str:
    error: Any = raised.error
    text = error.with_hint if raised.is_a((ScriptError, ConfigurationError)) else str(raised)
    frame = _user_frame(error)
    return f"{text} ({frame.filename}, line {frame.lineno})" if frame is not None else text


def _user_frame(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of the user's code."""
    frames = _user_frames(error)
    return frames[-1] if frames else None


def _user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of a traceback that are in the user's code."""
    return [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(_NOT_USER_CODE)]
