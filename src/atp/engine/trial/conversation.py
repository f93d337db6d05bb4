"""Leads the conversation of a trial: a task, a message history, a chain of prompts, and turn by turn."""

import copy
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from atp.agents.adapter import AgentError, Reply
from atp.agents.events import PairedCalls
from atp.agents.turns import TurnBuilder
from atp.base.durations import milliseconds_since
from atp.checks.before_run import EARLIER_MESSAGES
from atp.checks.limits import LimitMeter
from atp.engine.planned_trial import Trial
from atp.engine.trial.befores import Snapshot
from atp.engine.trial.workspace import Workspace
from atp.suite.case import Limits
from atp.suite.message import answer_text
from atp.suite.metrics import read_metrics
from atp.suite.result import Event, ToolCall, Transcript, Turn, Usage


class LimitExceeded(BaseException):
    """A limit of the case is exceeded. Not an `Exception`, so that agent code can't swallow it."""


class Watch:
    """Writes the transcript of a trial while the agent works, and stops the agent at a limit."""

    def __init__(self, limits: Limits | None, transcript: Transcript) -> None:
        self.transcript = transcript
        self.turn = 1
        self.began = time.monotonic()
        """When the trial began, by the monotonic clock."""
        self._calls: PairedCalls | None = None  # most agents report no tool calls
        self._meter: LimitMeter | None = None
        if limits is not None and limits.given().keys() - {"timeout_seconds"}:
            self._meter = LimitMeter(limits)

    def event(self, event: Event) -> None:
        """Record an event that the agent reports as it happens."""
        event.turn = self.turn
        event.at_ms = round(event.at_ms or (time.monotonic() - self.began) * 1000, 3)
        if self._meter is not None:
            self._meter.event(event)
        call = None
        if event.type == "tool_call":
            self._calls = self._calls or PairedCalls()
            call = self._calls.read(event, self.turn)
            if call is None:  # the outcome of a call that is already recorded
                self._enforce()
                return
        self.transcript.events.append(event)
        if call is not None:
            self.tool_call(call)
        else:
            self._enforce()

    def unfinished_calls(self) -> list[str]:
        """Return warnings about tool calls whose outcome never came."""
        return self._calls.unfinished() if self._calls is not None else []

    def tool_call(self, call: ToolCall) -> None:
        """Record a call of a tool."""
        self.transcript.tool_calls.append(call)
        if self._meter is not None:
            self._meter.call(call)
        self._enforce()

    def usage(self, usage: Usage) -> None:
        """Record what a turn used."""
        self.transcript.usage.add(usage)
        if self._meter is not None:
            self._meter.usage(self.transcript.usage)
        self._enforce()

    def _enforce(self) -> None:
        passed = self._meter.overruns() if self._meter is not None else None
        if passed:
            raise LimitExceeded(passed[0].message)


class Conversation:
    """The conversation of a trial with its agent, turn by turn."""

    def __init__(
        self, trial: Trial, watch: Watch, workspace: Workspace, task_id: str, start: Snapshot | None = None
    ) -> None:
        """`start` is the snapshot of befores that the conversation continues from."""
        self._trial = trial
        self._watch = watch
        self._workspace = workspace
        self.transcript = watch.transcript
        """All that was said and seen so far."""
        self.session = task_id
        """The id of the conversation, unique among all runs."""
        self.state: Any = None
        """The state that the agent asked to be handed back."""
        self.turns = 0
        """How many turns there were, those of befores included."""
        self._doubts: list[str] = []
        case = trial.case
        self._turns = TurnBuilder(
            agent=trial.tested,
            task_id=task_id,
            context=self._make_context(),
            workspace=workspace.path,
            emit=watch.event,
            log=watch.transcript.logs.append,
            task=case.task.model_dump(exclude_none=True) if case.task is not None else None,
            constraints={**trial.limits, "timeout_seconds": _as_number(trial.timeout)},
            options=case.options.model_dump(exclude_defaults=True) if case.options else {},
            began=watch.began,
        )
        if start is not None:
            self._continue_from(start)

    def _continue_from(self, start: Snapshot) -> None:
        transcript = self.transcript
        transcript.messages.extend(start.messages)
        transcript.inherited = len(start.messages)
        self.state = copy.deepcopy(start.state)
        self.turns = start.turns
        if self._trial.case.says_nothing:
            start.copy_seen_to(transcript)  # all there is to judge

    async def run(self) -> None:
        """Say all that the case says, and record the answers."""
        for messages in new_messages(self._trial):
            await self.say(messages)

    def warnings(self) -> list[str]:
        """Return warnings about answers, and about tool calls whose outcome never came."""
        return [*self._doubts, *self._watch.unfinished_calls()]

    async def say(self, messages: list[dict[str, Any]]) -> None:
        """Add messages, ask the agent, and record its answer.

        Raises `AgentError`, `LimitExceeded`, `WorkspaceError`.
        """
        watch, transcript = self._watch, self.transcript
        self.turns += 1
        watch.turn = number = self.turns
        if len(messages) > 1 and not self._trial.tested.gets_history:  # found before the run, except in workers
            raise AgentError(
                f"agent `{self._trial.agent}` is never given {EARLIER_MESSAGES.why}, only the newest", "environment"
            )
        if self._trial.tested.adapter.uses_workspace:
            await self._workspace.prepare()
        transcript.messages.extend(messages)
        request = self._turns.request(list(transcript.messages), turn=number, state=self.state)
        began = time.perf_counter()
        try:
            reply = await self._trial.tested.turn(request)
        except AgentError as error:
            if error.reply is not None:
                self._record(error.reply)
            raise
        except BaseException:  # its time is up, or a limit is exceeded, which must not be raised again
            if request.so_far is not None:
                with suppress(LimitExceeded):
                    self._record(request.so_far())
            raise
        took = milliseconds_since(began)
        transcript.turns.append(Turn(turn=number, input=request.prompt, output=reply.output, duration_ms=took))
        self._record(reply)

    def _record(self, reply: Reply) -> None:
        watch, transcript = self._watch, self.transcript
        self.state = reply.state
        transcript.messages.extend(reply.messages or [{"role": "assistant", "content": answer_text(reply.output)}])
        for call in reply.tool_calls:
            call.turn = watch.turn
            watch.tool_call(call)
        transcript.artifacts.extend(reply.artifacts)
        self._doubts.extend(one for one in reply.warnings if one not in self._doubts)
        if reply.metrics:
            try:
                transcript.metrics.update(read_metrics(reply.metrics))
            except ValueError as error:  # of an adapter of a plugin: ATP's own have read them before
                raise AgentError(str(error)) from error
        if reply.usage is not None:
            watch.usage(reply.usage)

    def _make_context(self) -> dict[str, Any]:
        trial, case = self._trial, self._trial.case
        return {
            **trial.context,
            "connector": trial.tested.connector,
            "run": trial.run,
            "iteration": trial.variation,
            "session_id": self.session,
            "case_id": case.id,
            "case_name": case.name,
            "metadata": {**trial.context["metadata"], **case.metadata},
        }


def new_messages(trial: Trial) -> Iterator[list[dict[str, Any]]]:
    """What a trial adds to the conversation before each turn, unless it is a dialogue."""
    case = trial.case
    if case.task is not None:
        yield [{"role": "user", "content": case.task.description}]
    elif trial.chain is not None:
        for prompt in trial.chain:
            yield [{"role": "user", "content": prompt}]
    elif case.messages:
        yield [message.wire() for message in case.messages]


def _as_number(seconds: float) -> float:
    """Whole seconds as a whole number, which the YAML suite format promises to agents with strict readers."""
    return int(seconds) if seconds == int(seconds) else seconds
