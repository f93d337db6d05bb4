"""Leading a conversation with an agent: a task, a message history, a chain of prompts, and turn by turn."""

import copy
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from atp.agents.adapter import Adapter, AgentError, Reply, TurnRequest
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
        self._workspace = workspace
        self.session = task_id
        """Tells it from every other conversation."""
        self.state: Any = None
        """What the agent asked to be handed back."""
        self.turns = 0
        """How many turns were held, those of befores included."""
        self._context = self._make_context()
        case = trial.case
        self._options = case.options.model_dump(exclude_defaults=True) if case.options else {}
        self._constraints = {**case.limits.given(), "timeout_seconds": trial.timeout}
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

    async def hold(self, adapter: Adapter) -> None:
        """Say all that the case says, and write down the answers."""
        for messages in self._sayings():
            await self.say(adapter, messages)

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

    async def say(self, adapter: Adapter, messages: list[dict[str, Any]]) -> None:
        """Hold one turn: add messages to the conversation, and write down the answer."""
        watch, transcript = self._watch, self.transcript
        self.turns += 1
        watch.turn = number = self.turns
        transcript.messages.extend(messages)
        prompt = _text(messages[-1].get("content"))
        request = TurnRequest(
            messages=list(transcript.messages),
            prompt=prompt,
            task=self._task(prompt),
            constraints=self._constraints,
            context={**self._context, "turn": number},
            options=self._options,
            task_id=self.session,
            turn=number,
            began=watch.began,
            conversation=self._trial.case.task is None,
            state=self.state,
            workspace=self._workspace.path,
            emit=watch.event,
            log=transcript.logs.append,
        )
        began = time.perf_counter()
        try:
            reply = await adapter.turn(request)
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
        transcript.turns.append(Turn(turn=number, input=prompt, output=reply.output, duration_ms=took))
        self._write_down(reply)

    def _write_down(self, reply: Reply) -> None:
        watch, transcript = self._watch, self.transcript
        self.state = reply.state
        transcript.messages.extend(reply.messages or [{"role": "assistant", "content": _text(reply.output)}])
        for call in reply.tool_calls:
            call.turn = watch.turn
            watch.tool_call(call)
        transcript.artifacts.extend(reply.artifacts)
        if reply.usage is not None:
            watch.usage(reply.usage)

    def _task(self, prompt: str) -> dict[str, Any]:
        task = self._trial.case.task
        if task is None:
            return {"description": prompt}
        return task.model_dump(exclude_none=True)

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
            "agent": trial.tested.name,
            "config": trial.tested.config,
            "metadata": {**trial.context["metadata"], **case.metadata},
        }


def _text(content: Any) -> str:
    """What was said, in words."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content):
        return "\n".join(str(part["text"]) for part in content if part["type"] == "text")
    return json.dumps(content, ensure_ascii=False)
