"""Runs a trial: hooks, the conversation, the checks; and again, if the infrastructure fails.

Whatever happens is contained here, and becomes the `Ending` of the trial.
"""

import asyncio
import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from atp.agents.adapter import AgentError
from atp.agents.running import START_LIMIT
from atp.base.durations import duration
from atp.base.secrets import Secrets
from atp.checks.case_checks import check_case
from atp.checks.evidence import Evidence
from atp.checks.limits import (
    disagreements,
    no_actions_warnings,
    passed_limits,
    unjudged_limits,
    unreported_limit_warnings,
)
from atp.engine.planned_trial import Trial
from atp.engine.run_context import RunContext
from atp.engine.trial.befores import Snapshot, take_snapshot
from atp.engine.trial.conversation import Conversation, LimitExceeded, Watch
from atp.engine.trial.deadline import GRACE, Deadline
from atp.engine.trial.ending import Actor, Ending, conclude, ending_of, out_of_time
from atp.engine.trial.hooks import HookError
from atp.engine.trial.workspace import WorkspaceError, WorkspaceReplaced
from atp.suite.metrics import collect_metrics
from atp.suite.result import NO_ASSERTIONS, Status, Transcript, TrialResult, Verdict
from atp.usercode.threads import in_thread

if TYPE_CHECKING:
    from atp.engine.trial.dialogue import Dialogue

Result = TypeVar("Result")
Record = TypeVar("Record", bound=Struct)
LONGEST_BACKOFF = 60.0
"""Seconds to wait before trying again. A server that asks for more is not asked again."""


class _TimeUp(Exception):
    """The time was up before the event loop could say so."""


class RunningTrial:
    """A trial that is being run, in one attempt, or more if the infrastructure fails."""

    def __init__(self, trial: Trial, result: TrialResult, context: RunContext, start: Snapshot | None) -> None:
        """`start` is the snapshot of befores."""
        self._trial = trial
        self._result = result
        self._context = context
        self._start = start
        self._started_at = time.perf_counter()
        self._actor: Actor = "agent"
        self._needs_after_hook = False
        self._workspace = context.workspace(trial, start)
        self.snapshot: Snapshot | None = None
        """What the trial has left, if others are to go on from it and it passed."""

    @property
    def duration_ms(self) -> float:
        """How long the trial has taken since the agent could be asked."""
        return round((time.perf_counter() - self._started_at) * 1000, 3)

    async def run(self, deadline: Deadline) -> None:
        """Attempt the trial until it succeeds or no further attempt may help. Raises only our own `CancelledError`."""
        try:
            while not await self._attempt(deadline):
                self._result.attempt += 1
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                raise
            self._end_with(error)

    async def _attempt(self, deadline: Deadline) -> bool:
        """Attempt the trial once. Returns false if it is to be attempted again."""
        trial, result = self._trial, self._result
        task_id = self._context.new_task_id()
        self._workspace.time_is_up = deadline.is_over
        if not trial.tested.is_ready:
            await self._start_agent(task_id, deadline)
        self._actor = "agent"
        self._needs_after_hook = True  # also if the hook before it fails: it may have done half of its work
        await self._call_hook(trial.case.before_hook, status=None)
        if self._start is not None and self._start.workspace is not None:
            await self._workspace.prepare()  # what it holds is judged, whether or not this agent looks at it
        watch = Watch(trial.case.limits, result.transcript)
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
            _hide_split_secrets(result.transcript, self._context.secrets)
            if again is None:
                self._result.warnings.extend(conversation.warnings())
            trial.tested.end_trial(task_id)
        await self._call_after_hook()
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
        case = self._trial.case
        mode = case.mode
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
                raise _TimeUp
            await self._check(exceeded=exceeded)
            return
        from atp.engine.trial.dialogue import Dialogue

        named = case.simulator.use if case.simulator is not None else None
        simulator = self._context.roles.simulator(named, self._trial.source)
        dialogue = Dialogue(self._trial, conversation, simulator, self._result)
        try:
            await dialogue.run(self._evidence(), self._set_actor)
        except LimitExceeded as error:
            exceeded = error
        await self._check(dialogue, exceeded)

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

    def _set_actor(self, actor: Actor) -> None:
        self._actor = actor

    @property
    def _acted_before(self) -> bool:
        """True if the agent reported tool calls, events or steps in a before."""
        return self._start is not None and self._start.seen.tells_of_actions

    def _evidence(self) -> Evidence:
        """All that the checks may look at, and the judges if any case of the suite needs one."""
        trial, context, start = self._trial, self._context, self._start
        needs_judge = bool(trial.source.survey.deciders)
        evidence = Evidence(
            case=trial.case,
            transcript=self._result.transcript,
            workspace=self._workspace,
            folders=(trial.tested.base, trial.source.folder, context.root),
            context=trial.context,
            judge=context.roles.judges(trial.source, trial.run, self._result) if needs_judge else None,
        )
        if start is not None:
            evidence.earlier_gap = start.gap
            if not trial.case.says_nothing:  # else its transcript has that already
                evidence.earlier = start.seen
        return evidence

    async def _check(self, dialogue: "Dialogue | None" = None, exceeded: LimitExceeded | None = None) -> None:
        """Check everything that the case asks for, and score it.

        The checks are made on what there is, also if a limit that was `exceeded` has stopped the agent.
        """
        if self._workspace.exists:
            self._workspace.path()  # an agent that has put a link in its place is in error, and nothing is read there
        self._actor = "judge"
        case, result = self._trial.case, self._result
        _hide_split_secrets(result.transcript, self._context.secrets)
        if exceeded is not None:
            self._end_with(exceeded)  # that stands, also if time is up while the rest is judged
        result.verdicts = await check_case(case, self._evidence())
        if dialogue is not None:
            result.verdicts = [*dialogue.verdicts(), *result.verdicts]
        if case.limits.given():
            result.verdicts.extend(unjudged_limits(case.limits, result.transcript))
            result.warnings.extend(unreported_limit_warnings(case.limits, result.transcript))
        if self._trial.source.survey.needs or self._trial.is_before:  # the survey has no befores
            result.warnings.extend([] if self._acted_before else no_actions_warnings(case, result.transcript))
        if result.transcript.events:
            result.warnings.extend(disagreements(result.transcript))
        if not result.verdicts:
            result.warnings.append(NO_ASSERTIONS)
        if exceeded is not None:
            self._end_with(exceeded)
        else:
            reason = dialogue.error if dialogue is not None else None
            self.end(conclude(case, result, reason, self._acted_before))

    def _end_with(self, error: BaseException) -> None:
        """End the trial because of an error, and blame whoever caused it."""
        if isinstance(error, _TimeUp):
            self.time_out()
            return
        if isinstance(error, LimitExceeded):
            case, result = self._trial.case, self._result
            named = passed_limits(case.limits, result.transcript)
            result.verdicts.extend(named or [Verdict(type="limits", outcome="failed", message=str(error))])
            self.end(conclude(case, result, str(error), self._acted_before))
            return
        self.end(ending_of(error))
        if isinstance(error, AgentError) and error.raw is not None:
            self._result.transcript.logs.append(error.raw)

    def end(self, ending: Ending | None) -> None:
        """Set how the trial ended; None changes nothing."""
        if ending is not None:
            self._result.status, self._result.error, self._result.blame = ending
            if ending.status == "timeout":
                self._result.score = 0.0  # a limit that was passed, and nothing that could be checked

    def time_out(self) -> None:
        """End the trial because its time is up, and blame whoever it was waiting for."""
        if (copying := self._workspace.cut_short) is not None:
            if self._result.status == "passed":
                self._end_with(copying)
            else:
                self._result.warnings.append(str(copying))  # for the hook of a trial that had failed already
            return
        limit = START_LIMIT if self._actor == "start" else self._trial.timeout
        ending = out_of_time(f"timeout after {duration(limit)}", self._actor)
        if self._actor in ("hook", "judge") and self._result.status != "passed":
            self._result.warnings.append(ending.error or "")  # the trial had failed already
        else:
            self.end(ending)

    def abandoned(self) -> TrialResult:
        """The result of a trial that does not end although its time is up."""
        self.time_out()
        self._result.duration_ms = self.duration_ms
        copied = _copy(self._result)
        collect_metrics(copied)
        return copied

    def copy_result(self) -> TrialResult:
        """Go on with a copy of the result, as it is now, and return the copy."""
        self._result = _copy(self._result)
        return self._result

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
        self._result.checkpoints, self._result.metrics = [], {}
        if self._workspace.exists:
            await in_thread(self._workspace.remove)
        self._workspace = self._context.workspace(self._trial, self._start)

    async def _call_hook(self, name: str | None, *, status: Status | None) -> None:
        if name is None:
            return
        trial = self._trial
        await self._workspace.prepare()
        about = {**trial.context, "case_id": trial.case.id, "agent": trial.agent, "run": trial.run}
        about |= {"workspace": str(self._workspace.path()), "status": status}
        self._actor = "hook"
        await self._context.hooks.call(name, about, self._result.transcript.logs.append, trial.source.folder)
        self._actor = "agent"

    async def _call_after_hook(self) -> None:
        """Call the hook after the trial. Its failure is an error only if the trial has passed, else a warning."""
        self._needs_after_hook = False
        try:
            await self._call_hook(self._trial.case.after_hook, status=self._result.status)
        except (HookError, WorkspaceError, WorkspaceReplaced) as error:
            if self._result.status == "passed":
                raise
            self._result.warnings.append(str(error))

    async def clean_up(self) -> None:
        """Call the hook after the trial if that is still to be done, and remove the workspace unless it is kept."""
        if self._needs_after_hook and self._trial.case.after_hook is not None:
            hook = asyncio.ensure_future(self._call_after_hook())
            with suppress(asyncio.CancelledError):
                await asyncio.wait({hook}, timeout=GRACE)
            if not hook.done() or hook.cancelled() or hook.exception() is not None:
                self._result.warnings.append(f"the hook {self._trial.case.after_hook} was cut short")
            hook.cancel()
        if not self._workspace.exists:
            return
        list_files = self._workspace.changed_files
        try:
            made = await _in_thread(list_files) if self._workspace.has_copies else list_files()
        except (WorkspaceReplaced, OSError) as error:
            made = None
            self._result.warnings.append(f"the files that the agent made are not kept: {error}")
        else:
            await self._keep_files(made)
        await self._leave_workspace(empty=made == {})

    async def _keep_files(self, made: Mapping[str, Path] | None) -> None:
        """Keep the files that the agent made in the run's folder. None if a stop came while they were listed."""
        if self._result.status == "cancelled" or made == {}:
            return
        kept = await _in_thread(lambda: self._context.made_files.keep(made)) if made is not None else None
        self._result.files, warnings = kept or ([], ["the files that the agent made are not kept: a stop came"])
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


def _copy(result: TrialResult) -> TrialResult:
    """A copy that code which was left to itself can't add to. Of what it has, only calls of tools are changed later.

    Not a deep copy: an agent may have told of very many events, and other trials' deadlines would wait for it.
    """
    copied = _with_own_lists(result)
    copied.transcript = _with_own_lists(result.transcript)
    copied.transcript.tool_calls = [copy.copy(call) for call in result.transcript.tool_calls]
    copied.transcript.usage = copy.copy(result.transcript.usage)
    copied.role_usage = copy.copy(result.role_usage)
    return copied


def _with_own_lists(record: Record) -> Record:
    values = {name: getattr(record, name) for name in record.__struct_fields__}
    return replace(record, **{name: copy.copy(one) for name, one in values.items() if isinstance(one, list | dict)})


def _is_cancelled() -> bool:
    """True if the current task is being cancelled: agents and hooks may raise `CancelledError` themselves."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _hide_split_secrets(transcript: Transcript, secrets: Secrets) -> None:
    """Blot out secrets that an agent has told piece by piece, in lines or in events that follow each other."""
    if not secrets:
        return
    if len(transcript.logs) > 1 and secrets.may_be_in("".join(transcript.logs)):
        transcript.logs[:] = secrets.blot_out_pieces(transcript.logs)
    if len(transcript.events) < 2:
        return
    places: dict[tuple[Any, ...], list[tuple[dict[Any, Any] | list[Any], Any]]] = {}
    for event in transcript.events:
        for path, holder, key in _texts(event.payload):
            places.setdefault((event.turn, event.type, *path), []).append((holder, key))
    for found in places.values():
        pieces = [holder[key] for holder, key in found]
        if len(pieces) > 1 and secrets.may_be_in("".join(pieces)):
            for (holder, key), text in zip(found, secrets.blot_out_pieces(pieces), strict=True):
                holder[key] = text


def _texts(value: dict[Any, Any] | list[Any], *above: Any) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """The texts in a value: the keys that lead to each, the object that holds it, and its key in that object."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, str):
            yield (*above, key), value, key
        elif isinstance(item, dict | list):
            yield from _texts(item, *above, key)


def _backoff(error: AgentError, attempt: int) -> float:
    """The seconds that the other side asks for, else twice as long each time."""
    return error.retry_after if error.retry_after is not None else min(0.25 * 2 ** (attempt - 1), LONGEST_BACKOFF)
