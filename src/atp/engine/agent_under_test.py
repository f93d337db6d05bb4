"""An agent under test."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atp.agents.adapter import Adapter, AgentError
from atp.base.durations import duration
from atp.suite.agent import AnyAgent

GET_READY = 600.0
"""Seconds in which an agent must be there to be asked: images are built then, and environments loaded."""


@dataclass(slots=True)
class AgentUnderTest:
    """An agent under test, with what reaches it."""

    agent: AnyAgent
    adapter: Adapter
    base: Path
    digest: str
    ad_hoc: bool
    limit: int | None = None
    """At most so many trials at a time."""
    active: int = 0
    """Trials running now."""
    secrets: frozenset[str] = frozenset()
    """Values in its configuration that no output may show."""
    name: str = field(init=False)
    """What the suite calls it."""
    config: dict[str, Any] = field(init=False)
    """Its configuration as data, for the agent to see."""
    _starting: "asyncio.Task[None] | None" = None
    _since: float = 0.0
    _ready: bool = False

    def __post_init__(self) -> None:
        self.name = self.agent.name
        self.config = self.agent.config.model_dump(exclude_unset=True)

    @property
    def is_ready(self) -> bool:
        """Whether no trial has to wait for it."""
        return self._ready and type(self.adapter).begin_trial is Adapter.begin_trial

    async def ready(self) -> None:
        """Start the adapter, once for all trials. Why it can't start is every trial's error, unless that may pass."""
        if self._ready:
            return
        now = asyncio.get_running_loop().time()
        if self._starting is None or _may_pass(self._starting):
            self._starting, self._since = asyncio.ensure_future(self.adapter.start()), now
        if not self._starting.done():
            await asyncio.wait({self._starting}, timeout=max(0.0, self._since + GET_READY - now))
            if not self._starting.done():
                raise AgentError(f"it is not there yet, {duration(GET_READY)} after it was started", "environment")
        self._starting.result()
        self._ready = True

    def is_among(self, names: Sequence[str] | None) -> bool:
        """Whether a case that is only for these agents, or for all, is for it. What -n names is for every case."""
        return names is None or self.ad_hoc or self.name in names


def _may_pass(starting: "asyncio.Task[None]") -> bool:
    """Whether a start failed that may go well the next time."""
    if not starting.done() or starting.cancelled():
        return starting.done()
    error = starting.exception()
    return isinstance(error, AgentError) and error.retryable
