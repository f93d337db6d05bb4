"""A trial being tried: hooks, the conversation, the verdicts; and again, if the infrastructure fails."""

import asyncio
import copy
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from atp.agents.adapter import AgentError
from atp.agents.running import START_LIMIT
from atp.base.durations import duration
from atp.checks.evidence import Evidence
from atp.engine.prepare.plan import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.conversation import Conversation
from atp.engine.trial.deadline import GRACE, Deadline
from atp.engine.trial.ending import AtWork, Ending, TimeUp, ending_of, out_of_time
from atp.engine.trial.hooks import HookError
from atp.engine.trial.judgement import conclude, gather_evidence, judge
from atp.engine.trial.snapshot import Snapshot
from atp.engine.trial.watch import LimitPassed, Watch
from atp.engine.trial.workspace import WorkspaceError
from atp.suite.result import Transcript, TrialResult, Verdict

if TYPE_CHECKING:
    from atp.engine.trial.dialogue import Dialogue

LONGEST_BACKOFF = 60.0
"""Seconds to wait before trying again, however long the other side asks for."""


class Attempt:
    """A trial being tried, again if the infrastructure fails."""

    def __init__(self, trial: Trial, result: TrialResult, context: RunContext, start: Snapshot | None) -> None:
        self._trial = trial
        self._result = result
        self._context = context
        self._start = start
        self._began = time.perf_counter()
        self._at: AtWork = "agent"
        self._prepared = False
        """The hook before the trial has done its work, the one after it is still to come."""
        self._workspace = context.workspace(trial, start)
        self.snapshot: Snapshot | None = None
        """What it has left, if others are to go on from it and it passed."""

    @property
    def duration_ms(self) -> float:
        """How long it has taken since the agent could be asked."""
        return round((time.perf_counter() - self._began) * 1000, 3)

    async def hold(self, deadline: Deadline) -> None:
        """Everything, contained."""
        try:
            while not await self._once(deadline):
                self._result.attempt += 1
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _are_cancelled():
                raise
            self._broke(error)

    async def _once(self, deadline: Deadline) -> bool:
        """One attempt; false when it is to be tried again."""
        trial, result = self._trial, self._result
        session = self._context.new_task_id()
        if not trial.tested.is_ready:
            await self._get_ready(session, deadline)
        self._at = "agent"
        await self._hook(trial.case.before_hook)
        self._prepared = True
        if self._start is not None and self._start.workspace is not None:
            self._workspace.path()  # what it holds is to be judged, whether or not this agent looks at it
        watch = Watch(trial.case.limits, result.transcript)
        conversation = Conversation(trial, watch, self._workspace, session, self._start)
        again: AgentError | None = None
        try:
            await self._converse(conversation)
            if trial.leads and result.status == "passed":
                self.snapshot = self._context.take_snapshot(trial, self._start, conversation, self._workspace)
        except (Exception, LimitPassed) as error:
            if isinstance(error, AgentError) and self._may_retry(error):
                again = error
            self._broke(error)
        finally:
            trial.tested.end_trial(conversation.session)
        await self._tear_down()
        if again is not None:
            self._at = "nobody"
            await asyncio.sleep(_backoff(again, result.attempt))
            self._start_over(again)
        return again is None

    async def _get_ready(self, session: str, deadline: Deadline) -> None:
        """Have the agent there. However long that takes, it is none of the trial's time, nor is the agent to blame."""
        began, tested = time.perf_counter(), self._trial.tested
        self._at = "start"
        deadline.stand_still(START_LIMIT)
        await tested.begin_trial(session)
        deadline.go_on()
        self._began += time.perf_counter() - began

    async def _converse(self, conversation: Conversation) -> None:
        """Talk with the agent, and judge what came of it."""
        case = self._trial.case
        if case.mode == "script":
            await self._perform()
            return
        if case.mode != "dialogue":
            await conversation.hold()
            self._check_clock()
            await self._judge()
            return
        from atp.engine.trial.dialogue import Dialogue

        named = case.simulator.use if case.simulator is not None else None
        simulator = self._context.roles.simulator(named, self._trial.source)
        dialogue = Dialogue(self._trial, conversation, simulator, self._result)
        await dialogue.hold(self._evidence(), self._works)
        await self._judge(dialogue)

    def _check_clock(self) -> None:
        """An agent that blocks the loop holds up the clock, too."""
        if time.perf_counter() - self._began > self._trial.timeout:
            raise TimeUp

    async def _perform(self) -> None:
        """Let a test in Python lead the conversations, and say itself what must hold."""
        from atp.engine.scripts.runner import ScriptError, ScriptRunner
        from atp.engine.scripts.trial import run_script_test

        runner = ScriptRunner(
            trial=self._trial,
            roles=self._context.roles,
            result=self._result,
            workspace=self._workspace,
            root=self._context.root,
            new_session=self._context.new_task_id,
            loop=asyncio.get_running_loop(),
            on_actor=self._works,
        )
        try:
            why_left_out = await run_script_test(runner)
        except ScriptError as error:
            self.end(Ending("error", str(error), "environment"))
            return
        self.end(conclude(self._trial.case, self._result))
        if why_left_out is not None and self._result.status == "passed":
            self.end(Ending("skipped", why_left_out))

    def _works(self, who: AtWork) -> None:
        self._at = who

    def _broke(self, error: BaseException) -> None:
        """Say what ended the trial, and who is to blame."""
        result = self._result
        if isinstance(error, TimeUp):
            self.timed_out()
            return
        self.end(ending_of(error))
        if isinstance(error, LimitPassed):
            result.verdicts.append(Verdict(type="limits", outcome="failed", message=str(error)))
        elif isinstance(error, AgentError) and error.raw is not None:
            result.transcript.logs.append(error.raw)

    def end(self, ending: Ending | None) -> None:
        """It ends here, and so; or there is nothing against it."""
        if ending is not None:
            self._result.status, self._result.error, self._result.blame = ending

    def _may_retry(self, error: AgentError) -> bool:
        own = getattr(self._trial.tested.agent.config, "retry", None)
        return error.retryable and self._result.attempt <= (self._context.options.retries if own is None else own)

    def _start_over(self, error: AgentError) -> None:
        self._result.retries.append(str(error))
        self._result.status, self._result.error, self._result.blame = "passed", None, None
        self._result.transcript = Transcript()
        self._result.checkpoints = []
        self._workspace.remove()
        self._workspace = self._context.workspace(self._trial, self._start)

    def _evidence(self) -> Evidence:
        return gather_evidence(self._trial, self._result, self._workspace, self._context)

    async def _judge(self, dialogue: "Dialogue | None" = None) -> None:
        self._at = "judge"
        self.end(await judge(self._trial.case, self._result, self._evidence(), dialogue))

    async def _hook(self, name: str | None) -> None:
        if name is None:
            return
        trial = self._trial
        about = {**trial.context, "case_id": trial.case.id, "agent": trial.tested.name, "run": trial.run}
        about |= {"workspace": str(self._workspace.path()), "status": self._result.status}
        self._at = "hook"
        await self._context.hooks.call(name, about, self._result.transcript.logs.append, trial.source.folder)
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

    def late(self) -> TrialResult:
        """The result of a trial that does not end although its time is up."""
        self.timed_out()
        self._result.duration_ms = self.duration_ms
        return copy.deepcopy(self._result)

    def timed_out(self) -> None:
        """The deadline ran out; who was at work then is to blame."""
        limit = START_LIMIT if self._at == "start" else self._trial.timeout
        ending = out_of_time(f"timeout after {duration(limit)}", self._at)
        if self._at == "hook" and self._result.status != "passed":
            self._result.warnings.append(ending.error or "")  # what was wrong before stays
        else:
            self.end(ending)

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
        if self._context.keeps_workspace(self._result):
            self._result.workspace = str(self._workspace.path())
        else:
            self._workspace.remove()


def _are_cancelled() -> bool:
    """Whether it is us who are told to stop: agents and hooks may raise what looks like it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _backoff(error: AgentError, attempt: int) -> float:
    """What the other side asks for, else twice as long each time."""
    return min(error.retry_after if error.retry_after is not None else 0.25 * 2 ** (attempt - 1), LONGEST_BACKOFF)
