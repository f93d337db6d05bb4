"""Builds the turn requests of a conversation, for trials, roles and agents that are tools."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from atp.agents.adapter import TurnRequest
from atp.agents.running import RunningAgent
from atp.suite.message import content_text
from atp.suite.result import Event


class TurnBuilder(Struct, kw_only=True):
    """Builds the requests of one conversation with one agent."""

    agent: RunningAgent
    task_id: str
    context: dict[str, Any]
    """What the requests say about the conversation; `agent`, `config` and `turn` are added."""
    workspace: Callable[[], Path]
    emit: Callable[[Event], None]
    log: Callable[[str], None]
    task: dict[str, Any] | None = None
    """The task of a case that is one. None makes the newest message the task of each turn."""
    constraints: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def request(self, messages: list[dict[str, Any]], *, turn: int = 1, state: Any = None) -> TurnRequest:
        """Build the request of a turn. `messages` is the whole conversation, the newest user message last."""
        prompt = content_text(messages[-1].get("content"))
        return TurnRequest(
            messages=messages,
            prompt=prompt,
            task={"description": prompt} if self.task is None else self.task,
            constraints=self.constraints,
            context={**self.context, "agent": self.agent.name, "config": self.agent.config, "turn": turn},
            options=self.options,
            task_id=self.task_id,
            turn=turn,
            began=self.began,
            conversation=self.task is None,
            state=state,
            workspace=self.workspace,
            emit=self.emit,
            log=self.log,
        )
