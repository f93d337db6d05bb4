"""One trial, from the first word to the verdicts. Whatever happens in it stays in it."""

import asyncio
import copy
import itertools
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from atp.agents.adapter import AgentError, AgentTimeout
from atp.checks import check_case
from atp.checks.evidence import Evidence
from atp.checks.limits import disagreements, unobserved
from atp.run.conversation import Conversation
from atp.run.durations import duration
from atp.run.hooks import HookError, Hooks
from atp.run.options import Options
from atp.run.plan import Trial
from atp.run.watch import LimitPassed, Watch
from atp.run.workspace import Workspace, WorkspaceError
from atp.stats.score import score
from atp.suite.result import Blame, Status, Transcript, TrialResult, Verdict

GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""
LONGEST_BACKOFF = 60.0


class TrialRunner:
    """Runs the trials of a run, one call each."""

    def __init__(self, work: Path, root: Path, hooks: Hooks, options: Options) -> None:
        self.root = root
        self.hooks = hooks
        self.retries = options.retries
        """How often to try again when the infrastructure fails."""
        self._work = work
        self._options = options
        self._count = _highest(work)
        self._run = secrets.token_hex(8)
        self._attempts = itertools.count(1)

    async def run(self, trial: Trial, abandon: Callable[[TrialResult], None]) -> TrialResult:
        """The result of a trial. Nothing that happens in it comes out of here as an exception.

        It runs in the task that calls, for speed. Should it refuse to end when its time is up, `abandon` is told the
        result, and this call may never return.
        """
        result = TrialResult(
            key=trial.key,
            agent=trial.tested.name,
            case=trial.case.id,
            index=trial.case.index,
            variation=trial.variation,
            run=trial.run,
            started_at=time.time(),
        )
        began = time.perf_counter()
        attempt = _Attempt(trial, result, self)
        deadline = _Deadline(trial.timeout, lambda: abandon(attempt.late(began)))
        try:
            await attempt.hold()
        except asyncio.CancelledError:
            if deadline.passed():
                attempt.timed_out()
            else:
                attempt.end(Ending("cancelled", "cancelled"))
            # Code that was left to itself, in a thread for example, must not write on into what is reported.
            result = attempt.copy_result()
        finally:
            deadline.lift()
        result.duration_ms = round((time.perf_counter() - began) * 1000, 3)
        await attempt.clean_up()
        return result

    def new_task_id(self) -> str:
        """Fresh for each attempt, here and in every other run."""
        return f"trial-{self._run}-{next(self._attempts)}"

    def workspace(self, trial: Trial) -> Workspace:
        """A folder for one attempt."""
        self._count += 1
        folder = trial.source.folder
        seed = folder / trial.case.workspace if trial.case.workspace else None
        return Workspace(self._work, str(self._count), seed, trial.source.fixtures)

    def keeps(self, result: TrialResult) -> bool:
        """Whether a trial's folder is to stay."""
        return self._options.keep_workspaces or (self._options.keep_failed and result.status != "passed")


def _highest(work: Path) -> int:
    """The highest number of a folder that an earlier part of the run has kept."""
    return max((int(one.name) for one in work.glob("*") if one.name.isdecimal()), default=0)


class _Deadline:
    """Cancels the current task when its time is up, and gives it up if it has not ended a moment later."""

    __slots__ = ("_expired", "_give_up", "_task", "_timer")

    def __init__(self, seconds: float, give_up: Callable[[], None]) -> None:
        self._task = asyncio.current_task()
        self._give_up = give_up
        self._expired = False
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._expired = True
        assert self._task is not None
        self._task.cancel()
        self._timer = asyncio.get_running_loop().call_later(GRACE, self._give_up)

    def passed(self) -> bool:
        """Whether a cancellation was ours. It is taken back then, unless somebody else asked for one, too."""
        return self._expired and self._task is not None and self._task.uncancel() == 0

    def lift(self) -> None:
        """The trial has ended."""
        self._timer.cancel()


class Ending(NamedTuple):
    """How a trial ended, when it did not pass."""

    status: Status
    error: str | None
    blame: Blame | None = None


class _Attempt:
    """A trial being tried, again if the infrastructure fails."""

    def __init__(self, trial: Trial, result: TrialResult, runner: TrialRunner) -> None:
        self._trial = trial
        self._result = result
        self._runner = runner
        self._at: Literal["agent", "judge", "hook"] = "agent"
        """Who is at work."""
        self._prepared = False
        """The hook before the trial has done its work, the one after it is still to come."""
        self._workspace = runner.workspace(trial)

    async def hold(self) -> None:
        """Everything, contained."""
        try:
            while not await self._once():
                self._result.attempt += 1
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _are_cancelled():
                raise
            self._broke(error)

    async def _once(self) -> bool:
        """One attempt; false when it is to be tried again."""
        trial, result = self._trial, self._result
        await trial.tested.ready()
        await self._hook(trial.case.before_hook)
        self._prepared = True
        watch = Watch(trial.case.limits, result.transcript)
        conversation = Conversation(trial, watch, self._workspace, self._runner.new_task_id())
        again: AgentError | None = None
        try:
            await conversation.hold(trial.tested.adapter)
            await self._judge()
        except (Exception, LimitPassed) as error:
            if isinstance(error, AgentError) and self._may_retry(error):
                again = error
            self._broke(error)
        await self._tear_down()
        if again is not None:
            await asyncio.sleep(_backoff(again, result.attempt))
            self._start_over(again)
        return again is None

    def _broke(self, error: BaseException) -> None:
        """Say what ended the trial, and who is to blame."""
        result = self._result
        match error:
            case LimitPassed():
                self.end(Ending("failed", str(error)))
                result.verdicts.append(Verdict(type="limits", outcome="failed", message=str(error)))
            case AgentTimeout():
                self.end(Ending("timeout", str(error)))
            case AgentError():
                self.end(Ending("error", _said(error), error.blame))
                if error.raw is not None:
                    result.transcript.logs.append(error.raw)
            case HookError() | WorkspaceError():
                self.end(Ending("error", str(error), "environment"))
            case _:  # our own bug, or something that only looks like an exit
                self.end(Ending("error", f"internal error: {type(error).__name__}: {error}", "internal"))

    def end(self, ending: Ending) -> None:
        """It ends here, and so."""
        self._result.status, self._result.error, self._result.blame = ending

    def _may_retry(self, error: AgentError) -> bool:
        own = getattr(self._trial.tested.agent.config, "retry", None)
        return error.retryable and self._result.attempt <= (self._runner.retries if own is None else own)

    def _start_over(self, error: AgentError) -> None:
        self._result.retries.append(str(error))
        self._result.status, self._result.error, self._result.blame = "passed", None, None
        self._result.transcript = Transcript()
        self._workspace.remove()
        self._workspace = self._runner.workspace(self._trial)

    async def _judge(self) -> None:
        trial, result = self._trial, self._result
        self._at = "judge"
        evidence = Evidence(
            case=trial.case,
            transcript=result.transcript,
            workspace=self._workspace,
            folders=(trial.tested.base, trial.source.folder, self._runner.root),
            context=trial.context,
        )
        result.verdicts = await check_case(trial.case, evidence)
        if trial.case.limits.given():
            result.warnings.extend(unobserved(trial.case.limits, result.transcript))
        if result.transcript.events:
            result.warnings.extend(disagreements(result.transcript))
        if not result.verdicts:
            result.warnings.append("no assertions")
        self._conclude()

    def _conclude(self) -> None:
        """A failed check makes the trial failed, also beside an unjudged one; unjudged alone is the judge's error."""
        case, result = self._trial.case, self._result
        failed = [one for one in result.verdicts if one.outcome == "failed"]
        unjudged = [one for one in result.verdicts if one.outcome == "unjudged"]
        if not unjudged or failed:
            scored = score(result, case)
            result.score, result.dimensions = scored.value, scored.dimensions
            result.left_out = scored.left_out
        if failed:
            self.end(Ending("failed", failed[0].message))
        elif unjudged:
            self.end(Ending("error", unjudged[0].message, "judge"))

    async def _hook(self, name: str | None) -> None:
        if name is None:
            return
        trial = self._trial
        context = {**trial.context, "case_id": trial.case.id, "agent": trial.tested.name, "run": trial.run}
        context |= {"workspace": str(self._workspace.path()), "status": self._result.status}
        self._at = "hook"
        await self._runner.hooks.call(name, context, self._result.transcript.logs.append, trial.source.folder)
        self._at = "agent"

    async def _tear_down(self) -> None:
        """Call the hook after the trial, however that went; its own failure only spoils what was well."""
        self._prepared = False
        try:
            await self._hook(self._trial.case.after_hook)
        except (HookError, WorkspaceError) as error:
            if self._result.status == "passed":
                raise
            self._result.warnings.append(str(error))

    def copy_result(self) -> TrialResult:
        """The result as it is now."""
        self._result = copy.deepcopy(self._result)
        return self._result

    def late(self, began: float) -> TrialResult:
        """The result of a trial that does not end although its time is up."""
        self.timed_out()
        self._result.duration_ms = round((time.perf_counter() - began) * 1000, 3)
        return copy.deepcopy(self._result)

    def timed_out(self) -> None:
        """The deadline ran out; who was at work then is to blame."""
        text = f"timeout after {duration(self._trial.timeout)}"
        if self._at == "agent":
            self.end(Ending("timeout", text))
        elif self._at == "judge":
            self.end(Ending("error", f"{text} while judging", "judge"))
        elif self._result.status == "passed":
            self.end(Ending("error", f"{text} in a hook", "environment"))
        else:
            self._result.warnings.append(f"{text} in a hook")

    async def clean_up(self) -> None:
        """Call the hook that is still to be called, and take the workspace away unless it is to be kept."""
        if self._prepared and self._trial.case.after_hook is not None:
            late = asyncio.ensure_future(self._tear_down())
            with suppress(asyncio.CancelledError):
                await asyncio.wait({late}, timeout=GRACE)
            if not late.done() or late.cancelled() or late.exception() is not None:
                self._result.warnings.append(f"the hook {self._trial.case.after_hook} was cut short")
            late.cancel()
        if not self._workspace.exists:
            return
        if self._runner.keeps(self._result):
            self._result.workspace = str(self._workspace.path())
        else:
            self._workspace.remove()


def _are_cancelled() -> bool:
    """Whether it is us who are told to stop: agents and hooks may raise what looks like it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _said(error: AgentError) -> str:
    text = str(error)
    return text if error.blame != "agent" or text.startswith("agent error") else f"agent error: {text}"


def _backoff(error: AgentError, attempt: int) -> float:
    """What the other side asks for, else twice as long each time."""
    return min(error.retry_after if error.retry_after is not None else 0.25 * 2 ** (attempt - 1), LONGEST_BACKOFF)
