"""Befores: each sequence of cases that others go on from is run once for each agent, judged, and kept as a snapshot."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.agents.adapter import AgentError
from atp.checks.evidence import unreported_calls
from atp.engine.planned_trial import Trial
from atp.engine.trial.workspace import KeptWorkspace, Workspace
from atp.suite.result import Transcript, TrialResult

if TYPE_CHECKING:
    from atp.engine.trial.conversation import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a sequence of befores has left. Cases that come after start from a copy of it."""

    messages: list[dict[str, Any]]
    """The conversation so far."""
    turns: int
    """How many turns it took."""
    state: Any
    """The state that the agent asked to be handed back."""
    workspace: KeptWorkspace | None
    """The folder as it was left, if there was one."""
    seen: Transcript = field(repr=False)
    """What was seen of the agent in all befores."""
    gap: str | None = None
    """Says that the agent made tool calls in a before that it did not describe, if it did."""

    def copy_seen_to(self, transcript: Transcript) -> None:
        """Let a case that says nothing itself be judged by what its befores did."""
        _extend(transcript, self.seen)


async def take_snapshot(
    start: Snapshot | None, conversation: "Conversation", workspace: Workspace, folder: Path, *, says_nothing: bool
) -> Snapshot:
    """Keep what a trial has left; a copy of its workspace goes to `folder`. Raises `AgentError`, `WorkspaceError`.

    `start` is what the trial itself went on from. A case that `says_nothing` adds nothing to what was seen.
    """
    transcript = conversation.transcript
    try:
        state = copy.deepcopy(conversation.state)
    except Exception as error:
        raise AgentError(f"the agent's state can't be copied: {type(error).__name__}: {error}") from error
    return Snapshot(
        messages=list(transcript.messages),
        turns=conversation.turns,
        state=state,
        workspace=await workspace.copy_to(folder),
        seen=seen_so_far(start, transcript, says_nothing=says_nothing),
        gap=gap_so_far(start, transcript),
    )


def seen_so_far(start: Snapshot | None, transcript: Transcript, *, says_nothing: bool) -> Transcript:
    """What was seen of the agent in a trial and in the befores that it went on from."""
    seen = Transcript()
    if start is not None:
        _extend(seen, start.seen)
    if start is None or not says_nothing:
        _extend(seen, transcript)
    return seen


def gap_so_far(start: Snapshot | None, transcript: Transcript) -> str | None:
    """Say that the agent made tool calls that it did not describe, in a trial or in its befores."""
    return unreported_calls(transcript) or (start.gap if start is not None else None)


def _extend(transcript: Transcript, more: Transcript) -> None:
    transcript.turns.extend(more.turns)
    transcript.tool_calls.extend(more.tool_calls)
    transcript.events.extend(more.events)
    transcript.artifacts.extend(more.artifacts)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a before."""

    result: TrialResult
    """Everything about the trial."""
    snapshot: Snapshot | None
    """What the before left; nothing if it did not pass."""
    why: str = ""
    """Why no case can go on from it: the first of its sequence that did not pass."""


RunTrial = Callable[[Trial], Awaitable[Replayed]]
"""Runs a before, and the befores that it goes on from."""


class Befores:
    """Runs befores when they are first needed, each once."""

    def __init__(self) -> None:
        self.on_result: Callable[[Trial, TrialResult], None] = lambda trial, result: None
        """Set by the engine: called for every before that is run only for others to go on from."""
        self._replayed: dict[str, asyncio.Future[Replayed]] = {}

    async def replay(self, before: Trial, run: RunTrial) -> Replayed:
        """The result of a before; the first caller runs it."""
        known = before.key in self._replayed
        replayed = await self.run_once(before, run)
        if not known:
            self.on_result(before, replayed.result)
        return replayed

    async def run_once(self, trial: Trial, run: RunTrial) -> Replayed:
        """The same for a trial of the plan that others go on from: it is run once, for them and for itself."""
        found = self._replayed.get(trial.key)
        if found is not None:
            return await asyncio.shield(found)
        future = self._replayed[trial.key] = asyncio.get_running_loop().create_future()
        try:
            replayed = await run(trial)
        except BaseException:
            del self._replayed[trial.key]
            future.cancel()
            raise
        if not future.done():
            future.set_result(replayed)
        return replayed

    def give_up(self, trial: Trial, result: TrialResult) -> None:
        """Block whoever waits for a before that won't end."""
        future = self._replayed.get(trial.key)
        if future is not None and not future.done():
            future.set_result(Replayed(result, None, why_not(result)))


def why_not(result: TrialResult) -> str:
    """Why no case can go on from a before."""
    return f"before `{result.case}` did not pass: {result.error or result.status}"
