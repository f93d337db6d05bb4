"""Runs a trial: hooks, the conversation, the checks; and again, if the infrastructure fails."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from atp.agents.adapter import AgentError
from atp.agents.running import START_LIMIT
from atp.base.durations import duration
from atp.engine.planned_trial import Trial
from atp.engine.run_context import RunContext
from atp.engine.signals import without_exit
from atp.engine.trial.befores import Snapshot, take_snapshot
from atp.engine.trial.conversation import Conversation, LimitExceeded, Watch
from atp.engine.trial.deadline import GRACE, Deadline
from atp.engine.trial.ending import Ending, conclude
from atp.engine.trial.hooks import HookError
from atp.engine.trial.judging import JudgedTrial, TimeUp, hide_split_secrets
from atp.engine.trial.workspace import Workspace, WorkspaceError, WorkspaceReplaced
from atp.journal.made_files import LOST, no_files
from atp.suite.result import Status, Transcript, TrialResult
from atp.usercode.threads import in_thread

if TYPE_CHECKING:
    from atp.engine.trial.dialogue import Dialogue

Result = TypeVar("Result")
LONGEST_BACKOFF = 60.0
"""Seconds to wait before trying again. A server that asks for more is not asked again."""


class RunningTrial(JudgedTrial):
    """A trial that is being run, in one attempt, or more if the infrastructure fails."""

    _workspace: Workspace

    def __init__(self, trial: Trial, result: TrialResult, context: RunContext, start: Snapshot | None) -> None:
        """`start` is the snapshot of befores."""
        super().__init__(trial, result, context, start, context.workspace(trial, start))
        self._needs_after_hook = False

    async def _run(self, deadline: Deadline) -> None:
        """Attempt the trial until it succeeds or no further attempt may help."""
        while not await self._attempt(deadline):
            self._result.attempt += 1

    async def _attempt(self, deadline: Deadline) -> bool:
        """Attempt the trial once. Returns false if it is to be attempted again."""
        trial, result = self._trial, self._result
        task_id = self._context.new_task_id()
        self._workspace.time_is_up = deadline.is_over
        if not trial.tested.is_ready:
            await self._start_agent(task_id, deadline)
        self._actor = "agent"
        self._needs_after_hook = True  # also if the hook before it fails: it may have done half of its work
        if trial.case.before_hook is not None:
            await self._call_hook(trial.case.before_hook, status=None)
        if self._start is not None and self._start.workspace is not None:
            await self._workspace.prepare()  # what it holds is judged, whether or not this agent looks at it
        watch = Watch(trial.case.limits if trial.limits else None, result.transcript)
        self._calls.start(result.model_calls, watch.began)
        conversation = Conversation(trial, watch, self._workspace, task_id, self._start)
        again: AgentError | None = None
        try:
            await self._converse(conversation)
            if trial.is_before and result.status == "passed":
                folder, silent = self._context.new_folder(), trial.case.says_nothing
                self.snapshot = await take_snapshot(
                    self._start, conversation, self._workspace, folder, says_nothing=silent
                )
        except (Exception, LimitExceeded) as error:
            if isinstance(error, AgentError) and self._may_retry(error):
                again = error
            self._end_with(error)
        finally:
            hide_split_secrets(result.transcript, self._context.secrets)
            if again is None:
                self._result.warnings.extend(conversation.warnings())
            trial.tested.end_trial(task_id)
        self._needs_after_hook = False
        if trial.case.after_hook is not None:
            await self._call_after_hook(trial.case.after_hook)
        if again is not None:
            self._actor = "nobody"
            await asyncio.sleep(_backoff(again, result.attempt))
            await self._start_over(again)
        return again is None

    async def _start_agent(self, task_id: str, deadline: Deadline) -> None:
        """Start the agent. However long that takes, it is not the trial's time, nor is the agent to blame."""
        started_at = time.perf_counter()
        self._actor = "start"
        deadline.pause(START_LIMIT)
        await self._trial.tested.begin_trial(task_id)
        deadline.resume()
        self._started_at += time.perf_counter() - started_at

    async def _converse(self, conversation: Conversation) -> None:
        """Talk with the agent, and check the result."""
        mode = self._trial.mode
        if mode == "script":
            await self._run_script()
            return
        exceeded: LimitExceeded | None = None
        if mode != "dialogue":
            try:
                await conversation.run()
            except LimitExceeded as error:
                exceeded = error
            # An agent that blocks the event loop holds up the deadline's timer, too.
            if time.perf_counter() - self._started_at > self._trial.timeout:
                raise TimeUp
            await self._check(exceeded=exceeded)
            return
        from atp.engine.trial.dialogue import Dialogue

        simulator = self._trial.case.simulator
        named = simulator.use if simulator is not None else None
        client = self._context.roles.simulator(named, self._trial.source)
        dialogue = Dialogue(self._trial, conversation, client, self._result)
        try:
            await dialogue.run(self._evidence(), self._set_actor)
        except LimitExceeded as error:
            exceeded = error
        await self._check(dialogue, exceeded)

    async def _check(self, dialogue: "Dialogue | None" = None, exceeded: LimitExceeded | None = None) -> None:
        if self._workspace.exists:
            self._workspace.path()  # an agent that has put a link in its place is in error, and nothing is read there
        await super()._check(dialogue, exceeded)

    def time_out(self) -> None:
        """End the trial because its time is up, and blame whoever it was waiting for."""
        if (copying := self._workspace.cut_short) is None:
            super().time_out()
        elif self._result.status == "passed":
            self._end_with(copying)
        else:
            self._result.warnings.append(str(copying))  # for the hook of a trial that had failed already

    async def _run_script(self) -> None:
        """Run a test in Python, which leads the conversations and asserts what must hold."""
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
            on_actor=self._set_actor,
        )
        self._actor = "test"
        try:
            why_skipped = await run_script_test(runner)
        except ScriptError as error:
            self.end(Ending("error", str(error), "environment"))
            return
        self.end(conclude(self._trial.case, self._result))
        if why_skipped is not None and self._result.status == "passed":
            self.end(Ending("skipped", why_skipped))

    def _may_retry(self, error: AgentError) -> bool:
        own = getattr(self._trial.tested.agent.config, "retry", None)
        if not error.retryable or self._result.attempt > (self._context.options.retries if own is None else own):
            return False
        if error.retry_after is not None and error.retry_after > LONGEST_BACKOFF:
            asked, most = duration(error.retry_after), duration(LONGEST_BACKOFF)
            why = f"the server asks to wait {asked}, and a trial waits {most} at most"
            self._result.warnings.append(f"not tried again: {why}")
            return False
        return True

    async def _start_over(self, error: AgentError) -> None:
        self._result.retries.append(str(error))
        self._result.status, self._result.error, self._result.blame = "passed", None, None
        self._result.transcript = Transcript()
        self._result.checkpoints, self._result.metrics, self._result.model_calls = [], {}, []
        if self._workspace.exists:
            await in_thread(self._workspace.remove)
        self._workspace = self._context.workspace(self._trial, self._start)

    async def _call_hook(self, name: str, *, status: Status | None) -> None:
        trial = self._trial
        await self._workspace.prepare()
        about = {**trial.context, "case_id": trial.case.id, "agent": trial.agent, "run": trial.run}
        about |= {"workspace": str(self._workspace.path()), "status": status}
        self._actor = "hook"
        await self._context.hooks.call(name, about, self._result.transcript.logs.append, trial.source.folder)
        self._actor = "agent"

    async def _call_after_hook(self, name: str) -> None:
        """Call the hook after the trial. Its failure is an error only if the trial has passed, else a warning."""
        try:
            await self._call_hook(name, status=self._result.status)
        except (HookError, WorkspaceError, WorkspaceReplaced) as error:
            if self._result.status == "passed":
                raise
            self._result.warnings.append(str(error))

    async def clean_up(self) -> None:
        """Call the hook after the trial if that is still to be done, and remove the workspace unless it is kept."""
        if self._needs_after_hook and (name := self._trial.case.after_hook) is not None:
            hook = asyncio.ensure_future(without_exit(self._call_after_hook(name)))
            with suppress(asyncio.CancelledError):
                await asyncio.wait({hook}, timeout=GRACE)
            if not hook.done() or hook.cancelled() or hook.exception() is not None:
                self._result.warnings.append(f"the hook {name} was cut short")
            hook.cancel()
        if not self._workspace.exists:
            return
        list_files = self._workspace.changed_files
        try:
            made = await _in_thread(list_files) if self._workspace.has_copies else list_files()
        except (WorkspaceReplaced, OSError) as error:
            made = None
            self._result.warnings.append(f"{LOST}: {error}")
        else:
            await self._keep_files(made)
        await self._leave_workspace(empty=made == {})

    async def _keep_files(self, made: Mapping[str, Path] | None) -> None:
        """Keep the files that the agent made in the run's folder. None if a stop came while they were listed."""
        if self._result.status == "cancelled" or made == {}:
            return
        kept = await _in_thread(lambda: self._context.made_files.keep(made)) if made is not None else None
        self._result.files, warnings = kept or ([], [f"{LOST}: a stop came"])
        self._result.links = no_files(made) if made is not None else []
        self._result.warnings.extend(warnings)

    async def _leave_workspace(self, *, empty: bool) -> None:
        """Keep the workspace if the options ask for it, else remove it."""
        if not self._context.keeps_workspace(self._result):
            if empty:
                self._workspace.remove()
            else:
                await _in_thread(self._workspace.remove)
            return
        try:
            self._result.workspace = str(self._workspace.path())
        except WorkspaceReplaced as error:
            self._result.warnings.append(f"the workspace is not kept: {error}")


async def _in_thread(call: Callable[[], Result]) -> Result | None:
    """Do work on files that may take long: the deadlines of other trials must not wait for it.

    Returns None if the run was stopped meanwhile. The trial has ended by then, and its result must not be lost.
    """
    work = asyncio.ensure_future(asyncio.to_thread(call))
    with suppress(asyncio.CancelledError):
        await asyncio.wait({work})
    if work.done() and not work.cancelled():
        return work.result()
    work.cancel()
    return None


def _backoff(error: AgentError, attempt: int) -> float:
    """The seconds that the other side asks for, else twice as long each time."""
    return error.retry_after if error.retry_after is not None else min(0.25 * 2 ** (attempt - 1), LONGEST_BACKOFF)
