"""Runs an agent: its adapter is started once for everyone who asks the agent, and closed once.

Agents under test, agents that judge, simulate or generate, and agents that are tools all run as a `RunningAgent`.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from atp.agents.adapter import Adapter, AgentError, Reply, TurnRequest
from atp.base.durations import duration

START_LIMIT = 600.0
"""Seconds that an agent may take to start: images are built and environments are loaded meanwhile."""
CANCEL_LIMIT = 5.0
"""Seconds that a start which is cancelled by `close` may take to clean up."""


class RunningAgent:
    """An adapter that is started before its first conversation, and again if the start failed in a way that may pass.

    Made for each agent that is asked: one under test (as an `AgentUnderTest`, when the plan is made), one that judges,
    simulates or generates (when it is first needed), one that is a tool. Whoever made it closes it.
    """

    def __init__(self, adapter: Adapter, name: str, config: Mapping[str, Any] | None = None) -> None:
        self.adapter = adapter
        self.name = name
        """The name by which a suite, a flag or another agent refers to the agent."""
        self.config: dict[str, Any] = dict(config or {})
        """The agent's configuration as plain data, which is part of each request's context."""
        self._start: asyncio.Task[None] | None = None
        self._started_at = 0.0
        self._ready = False

    @property
    def is_ready(self) -> bool:
        """True once the agent has started and needs no preparation per trial."""
        return self._ready and type(self.adapter).begin_trial is Adapter.begin_trial

    async def ready(self) -> None:
        """Wait until the agent has started.

        Raises the `AgentError` of a failed start to everyone who asks; the agent is started again only if the error is
        retryable. A start beyond `START_LIMIT` is an `AgentError`, too, but goes on for those who ask later.
        """
        if self._ready:
            return
        now = asyncio.get_running_loop().time()
        if self._start is None or _may_pass(self._start):
            self._start, self._started_at = asyncio.ensure_future(self.adapter.start()), now
        if not self._start.done():
            await asyncio.wait({self._start}, timeout=max(0.0, self._started_at + START_LIMIT - now))
            if not self._start.done():
                raise AgentError(f"the agent has not started within {duration(START_LIMIT)}", "environment")
        self._start.result()
        self._ready = True

    async def begin_trial(self, task_id: str) -> None:
        """Start the agent if needed, and prepare a conversation. Raises `AgentError`."""
        await self.ready()
        await self.adapter.begin_trial(task_id)

    def turn(self, request: TurnRequest) -> Awaitable[Reply]:
        """Ask the agent, between `begin_trial` and `end_trial`. Raises `AgentError` when awaited."""
        return self.adapter.turn(request)

    def end_trial(self, task_id: str) -> None:
        """Release what the adapter kept for a conversation."""
        self.adapter.end_trial(task_id)

    async def ask_once(self, request: TurnRequest) -> Reply:
        """Hold a conversation of one turn. Raises `AgentError`."""
        try:
            await self.begin_trial(request.task_id)
            return await self.adapter.turn(request)
        finally:
            self.adapter.end_trial(request.task_id)

    async def close(self) -> None:
        """Cancel a start that is still under way, and close the adapter."""
        if self._start is not None and not self._start.done():
            self._start.cancel()
            await asyncio.wait({self._start}, timeout=CANCEL_LIMIT)
        await self.adapter.close()


def _may_pass(start: "asyncio.Task[None]") -> bool:
    """True for a start that was cancelled or failed in a way that may not happen again."""
    if not start.done() or start.cancelled():
        return start.done()
    error = start.exception()
    return isinstance(error, AgentError) and error.retryable
