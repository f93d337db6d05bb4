"""One trial, from the first word to the verdicts. Whatever happens in it stays in it."""

import asyncio
import copy
import itertools
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from atp.agents.adapter import AgentError, AgentTimeout
from atp.checks import check_case
from atp.checks.evidence import Evidence
from atp.checks.limits import disagreements, unobserved, unshown
from atp.models.model import CassetteError, CassetteMiss
from atp.roles.player import RoleError
from atp.run.befores import Befores, Replayed, why_not
from atp.run.cast import Cast
from atp.run.conversation import Conversation
from atp.run.durations import duration
from atp.run.hooks import HookError, Hooks
from atp.run.options import Options
from atp.run.plan import Trial
from atp.run.snapshot import Snapshot, joined
from atp.run.watch import LimitPassed, Watch
from atp.run.workspace import Workspace, WorkspaceError
from atp.stats.score import score
from atp.suite.result import Blame, Status, Transcript, TrialResult, Usage, Verdict

if TYPE_CHECKING:
    from atp.roles.judges import Judging
    from atp.run.dialogue import Dialogue

AtWork = Literal["agent", "judge", "simulator", "hook", "nobody"]
"""Who a trial is waiting for: whoever it is when the time is up is to blame."""
GRACE = 1.0
"""Seconds that a cancelled agent gets to clean up before it is left alone."""
LONGEST_BACKOFF = 60.0
Abandon = Callable[[TrialResult], None]
"""Told the result of a trial that won't end."""


class TrialRunner:
    """Runs the trials of a run, one call each."""

    def __init__(self, work: Path, root: Path, hooks: Hooks, options: Options, cast: Cast) -> None:
        self.root = root
        self.hooks = hooks
        self.cast = cast
        """Those who judge and simulate."""
        self.retries = options.retries
        """How often to try again when the infrastructure fails."""
        self.befores = Befores()
        """What trials go on from."""
        self._work = work
        self._options = options
        self._count = _highest(work)
        self._run = secrets.token_hex(8)
        self._attempts = itertools.count(1)

    async def run(self, trial: Trial, abandon: Abandon) -> TrialResult:
        """The result of a trial. Nothing that happens in it comes out of here as an exception.

        It runs in the task that calls, for speed. Should it refuse to end when its time is up, `abandon` is told the
        result, and this call may never return.
        """
        if trial.before is None and not trial.leads:
            return (await self._hold(trial, None, abandon))[0]
        try:
            if not trial.leads:
                return (await self._play(trial, abandon)).result

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(trial, result)
                abandon(result)

            return (await self.befores.own(trial, lambda own: self._play(own, give_up))).result
        except asyncio.CancelledError:  # while somebody else's befores were under way
            return _unfinished(trial, "cancelled", "cancelled")

    async def _play(self, trial: Trial, abandon: Abandon) -> Replayed:
        """Run a trial, going on from its befores, which are run first if nobody has yet."""
        start: Snapshot | None = None
        if (before := trial.before) is not None:

            def give_up(result: TrialResult) -> None:
                self.befores.give_up(before, result)
                abandon(_unfinished(trial, "blocked", why_not(result)))

            replayed = await self.befores.of(before, lambda one: self._play(one, give_up))
            if replayed.snapshot is None:
                return Replayed(_unfinished(trial, "blocked", replayed.why), None, replayed.why)
            start = replayed.snapshot
        if trial.case.skip:
            why = f"before `{trial.case.id}` is skipped by its file"
            return Replayed(_unfinished(trial, "skipped", why), None, why)
        result, snapshot = await self._hold(trial, start, abandon)
        return Replayed(result, snapshot, "" if snapshot else why_not(result))

    async def _hold(
        self, trial: Trial, start: Snapshot | None, abandon: Abandon
    ) -> tuple[TrialResult, Snapshot | None]:
        result = _new_result(trial)
        self.cast.begin_trial()
        began = time.perf_counter()
        attempt = _Attempt(trial, result, self, start)
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
        return result, attempt.snapshot

    def new_task_id(self) -> str:
        """Fresh for each attempt, here and in every other run."""
        return f"trial-{self._run}-{next(self._attempts)}"

    def workspace(self, trial: Trial, start: Snapshot | None) -> Workspace:
        """A folder for one attempt, which goes on from what befores have left."""
        self._count += 1
        folder = trial.source.folder
        seed = folder / trial.case.workspace if trial.case.workspace else None
        kept = start.workspace if start is not None else None
        return Workspace(self._work, str(self._count), seed, trial.source.fixtures, kept)

    def keep(self, trial: Trial, start: Snapshot | None, conversation: Conversation, workspace: Workspace) -> Snapshot:
        """What a trial has left, for others to go on from."""
        self._count += 1
        transcript = conversation.transcript
        try:
            state = copy.deepcopy(conversation.state)
        except Exception as error:
            raise AgentError(f"the agent's state can't be copied: {type(error).__name__}: {error}") from error
        return Snapshot(
            messages=list(transcript.messages),
            turns=conversation.turns,
            state=state,
            workspace=workspace.keep(self._work / str(self._count)),
            seen=start.seen if trial.case.says_nothing and start else joined(start, transcript),
        )

    def keeps(self, result: TrialResult) -> bool:
        """Whether a trial's folder is to stay."""
        return self._options.keep_workspaces or (self._options.keep_failed and result.status != "passed")


def _new_result(trial: Trial) -> TrialResult:
    return TrialResult(
        key=trial.key,
        agent=trial.tested.name,
        case=trial.case.id,
        index=trial.case.index,
        variation=trial.variation,
        origin=trial.origin,
        run=trial.run,
        started_at=time.time(),
    )


def _unfinished(trial: Trial, status: Status, why: str) -> TrialResult:
    """The result of a trial that never began."""
    result = _new_result(trial)
    result.status, result.error = status, why
    return result


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


class _TimeUp(Exception):
    """The time was up before anybody could say so."""


class Ending(NamedTuple):
    """How a trial ended, when it did not pass."""

    status: Status
    error: str | None
    blame: Blame | None = None


class _Attempt:
    """A trial being tried, again if the infrastructure fails."""

    def __init__(self, trial: Trial, result: TrialResult, runner: TrialRunner, start: Snapshot | None) -> None:
        self._trial = trial
        self._result = result
        self._runner = runner
        self._start = start
        self._began = time.perf_counter()
        self._at: AtWork = "agent"
        self._prepared = False
        """The hook before the trial has done its work, the one after it is still to come."""
        self._workspace = runner.workspace(trial, start)
        self.snapshot: Snapshot | None = None
        """What it has left, if others are to go on from it and it passed."""

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
        self._at = "nobody"
        await trial.tested.ready()
        self._at = "agent"
        await self._hook(trial.case.before_hook)
        self._prepared = True
        if self._start is not None and self._start.workspace is not None:
            self._workspace.path()  # what it holds is to be judged, whether or not this agent looks at it
        watch = Watch(trial.case.limits, result.transcript)
        conversation = Conversation(trial, watch, self._workspace, self._runner.new_task_id(), self._start)
        again: AgentError | None = None
        try:
            await self._converse(conversation)
            if trial.leads and result.status == "passed":
                self.snapshot = self._runner.keep(trial, self._start, conversation, self._workspace)
        except (Exception, LimitPassed) as error:
            if isinstance(error, AgentError) and self._may_retry(error):
                again = error
            self._broke(error)
        finally:
            trial.tested.adapter.end_trial(conversation.session)
        await self._tear_down()
        if again is not None:
            self._at = "nobody"
            await asyncio.sleep(_backoff(again, result.attempt))
            self._start_over(again)
        return again is None

    async def _converse(self, conversation: Conversation) -> None:
        """Talk with the agent, and judge what came of it."""
        case, adapter = self._trial.case, self._trial.tested.adapter
        if case.mode == "script":
            await self._perform()
            return
        if case.mode != "dialogue":
            await conversation.hold(adapter)
            self._check_clock()
            await self._judge()
            return
        from atp.run.dialogue import Dialogue

        named = case.simulator.use if case.simulator is not None else None
        simulator = self._runner.cast.simulator(named, self._trial.source)
        dialogue = Dialogue(self._trial, conversation, simulator, self._result)
        await dialogue.hold(self._evidence(), self._works)
        await self._judge(dialogue)

    def _check_clock(self) -> None:
        """An agent that blocks the loop holds up the clock, too."""
        if time.perf_counter() - self._began > self._trial.timeout:
            raise _TimeUp

    async def _perform(self) -> None:
        """Let a test in Python lead the conversations, and say itself what must hold."""
        from atp.run.script_stage import ScriptError, Stage
        from atp.run.script_trial import hold_script

        stage = Stage(
            trial=self._trial,
            cast=self._runner.cast,
            result=self._result,
            workspace=self._workspace,
            root=self._runner.root,
            new_session=self._runner.new_task_id,
            loop=asyncio.get_running_loop(),
            works=self._works,
        )
        try:
            why_left_out = await hold_script(stage)
        except ScriptError as error:
            self.end(Ending("error", str(error), "environment"))
            return
        self._conclude(None)
        if why_left_out is not None and self._result.status == "passed":
            self.end(Ending("skipped", why_left_out))

    def _works(self, who: AtWork) -> None:
        self._at = who

    def _broke(self, error: BaseException) -> None:
        """Say what ended the trial, and who is to blame."""
        result = self._result
        match error:
            case LimitPassed():
                self.end(Ending("failed", str(error)))
                result.verdicts.append(Verdict(type="limits", outcome="failed", message=str(error)))
            case _TimeUp():
                self.timed_out()
            case AgentTimeout():
                self.end(Ending("timeout", str(error)))
            case AgentError():
                self.end(Ending("error", _said(error), error.blame))
                if error.raw is not None:
                    result.transcript.logs.append(error.raw)
            case RoleError():  # a judge's makes a check unjudged, so it is the simulator's
                self.end(Ending("error", f"simulator error: {error}", "simulator"))
            case HookError() | WorkspaceError() | CassetteError() | CassetteMiss():
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
        self._result.checkpoints = []
        self._workspace.remove()
        self._workspace = self._runner.workspace(self._trial, self._start)

    def _judging(self) -> "Judging | None":
        """Who judges, where any case of the suite needs a judge."""
        if not self._trial.source.survey.deciders:
            return None
        from atp.roles.judges import Judging

        usage = self._result.role_usage = self._result.role_usage or Usage()
        judges = self._runner.cast.judges(self._trial.source)
        return Judging(judges=judges, run=self._trial.run, usage=usage, warnings=self._result.warnings)

    def _evidence(self) -> Evidence:
        trial = self._trial
        return Evidence(
            case=trial.case,
            transcript=self._result.transcript,
            workspace=self._workspace,
            folders=(trial.tested.base, trial.source.folder, self._runner.root),
            context=trial.context,
            judge=self._judging(),
        )

    async def _judge(self, dialogue: "Dialogue | None" = None) -> None:
        trial, result = self._trial, self._result
        self._at = "judge"
        result.verdicts = await check_case(trial.case, self._evidence())
        if dialogue is not None:
            result.verdicts = [*dialogue.verdicts(), *result.verdicts]
        if trial.case.limits.given():
            result.verdicts.extend(unshown(trial.case.limits, result.transcript))
            result.warnings.extend(unobserved(trial.case.limits, result.transcript))
        if result.transcript.events:
            result.warnings.extend(disagreements(result.transcript))
        if not result.verdicts:
            result.warnings.append("no assertions")
        self._conclude(dialogue.error if dialogue is not None else None)

    def _conclude(self, ended_with: str | None) -> None:
        """A failed check makes the trial failed, also beside an unjudged one; unjudged alone is the judge's error."""
        case, result = self._trial.case, self._result
        failed = [one for one in result.verdicts if one.outcome == "failed"]
        unjudged = [one for one in result.verdicts if one.outcome == "unjudged"]
        if not unjudged or failed:
            scored = score(result, case)
            result.score, result.dimensions = scored.value, scored.dimensions
            result.left_out = scored.left_out
        if failed:
            self.end(Ending("failed", ended_with or failed[0].message))
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
        elif self._at == "nobody":
            self.end(Ending("error", f"{text} while waiting until it can be asked", "environment"))
        elif self._at == "judge":
            self.end(Ending("error", f"{text} while judging", "judge"))
        elif self._at == "simulator":
            self.end(Ending("error", f"{text} while simulating", "simulator"))
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
