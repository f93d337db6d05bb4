"""Leading a conversation with an agent: a task, a message history, a chain of prompts, and turn by turn."""

import copy
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from atp.agents.adapter import AgentError, Reply
from atp.agents.turns import TurnBuilder, message_text
from atp.engine.prepare.plan import Trial
from atp.engine.trial.snapshot import Snapshot
from atp.engine.trial.watch import LimitPassed, Watch
from atp.engine.trial.workspace import Workspace
from atp.suite.result import Turn


class Conversation:
    """A trial's conversation, a turn after the other."""

    def __init__(
        self, trial: Trial, watch: Watch, workspace: Workspace, task_id: str, start: Snapshot | None = None
    ) -> None:
        """`start` is where it goes on from: what befores have left."""
        self._trial = trial
        self._watch = watch
        self.transcript = watch.transcript
        """All that was said and seen so far."""
        self.session = task_id
        """Tells it from every other conversation."""
        self.state: Any = None
        """What the agent asked to be handed back."""
        self.turns = 0
        """How many turns were held, those of befores included."""
        case = trial.case
        self._turns = TurnBuilder(
            agent=trial.tested,
            task_id=task_id,
            context=self._make_context(),
            workspace=workspace.path,
            emit=watch.event,
            log=watch.transcript.logs.append,
            task=case.task.model_dump(exclude_none=True) if case.task is not None else None,
            constraints={**case.limits.given(), "timeout_seconds": trial.timeout},
            options=case.options.model_dump(exclude_defaults=True) if case.options else {},
            began=watch.began,
        )
        if start is not None:
            self._go_on(start)

    def _go_on(self, start: Snapshot) -> None:
        transcript = self.transcript
        transcript.messages.extend(start.messages)
        transcript.inherited = len(start.messages)
        self.state = copy.deepcopy(start.state)
        self.turns = start.turns
        if self._trial.case.says_nothing:
            start.hand_over(transcript)  # all there is to judge

    async def hold(self) -> None:
        """Say all that the case says, and write down the answers."""
        for messages in self._sayings():
            await self.say(messages)

    def _sayings(self) -> Iterator[list[dict[str, Any]]]:
        """What is added to the conversation before each turn."""
        case = self._trial.case
        if case.task is not None:
            yield [{"role": "user", "content": case.task.description}]
        elif self._trial.chain is not None:
            for prompt in self._trial.chain:
                yield [{"role": "user", "content": prompt}]
        elif case.messages:
            yield [message.wire() for message in case.messages]

    async def say(self, messages: list[dict[str, Any]]) -> None:
        """Hold one turn: add messages to the conversation, and write down the answer."""
        watch, transcript = self._watch, self.transcript
        self.turns += 1
        watch.turn = number = self.turns
        transcript.messages.extend(messages)
        request = self._turns.request(list(transcript.messages), turn=number, state=self.state)
        began = time.perf_counter()
        try:
            reply = await self._trial.tested.turn(request)
        except AgentError as error:
            if error.reply is not None:
                self._write_down(error.reply)
            raise
        except BaseException:  # stopped: its time is up, or a limit is passed, which it need not be told again
            if request.so_far is not None:
                with suppress(LimitPassed):
                    self._write_down(request.so_far())
            raise
        took = round((time.perf_counter() - began) * 1000, 3)
        transcript.turns.append(Turn(turn=number, input=request.prompt, output=reply.output, duration_ms=took))
        self._write_down(reply)

    def _write_down(self, reply: Reply) -> None:
        watch, transcript = self._watch, self.transcript
        self.state = reply.state
        transcript.messages.extend(reply.messages or [{"role": "assistant", "content": message_text(reply.output)}])
        for call in reply.tool_calls:
            call.turn = watch.turn
            watch.tool_call(call)
        transcript.artifacts.extend(reply.artifacts)
        if reply.usage is not None:
            watch.usage(reply.usage)

    def _make_context(self) -> dict[str, Any]:
        trial, case = self._trial, self._trial.case
        return {
            **trial.context,
            "connector": trial.connector,
            "run": trial.run,
            "iteration": trial.variation,
            "session_id": self.session,
            "case_id": case.id,
            "case_name": case.name,
            "metadata": {**trial.context["metadata"], **case.metadata},
        }
