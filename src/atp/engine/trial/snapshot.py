"""What a before leaves: the conversation, the workspace, the agent's state. Those that come after start from a copy."""

from dataclasses import dataclass, field
from typing import Any

from atp.engine.trial.workspace import Kept
from atp.suite.result import Artifact, Event, ToolCall, Transcript, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Where a sequence of befores has come to."""

    messages: list[dict[str, Any]]
    """The conversation so far."""
    turns: int
    """How many turns it took."""
    state: Any
    """What the agent asked to be handed back."""
    workspace: Kept | None
    """The folder as it was left, if there was one."""
    seen: Transcript = field(repr=False)
    """What was seen of the agent in all befores."""

    def hand_over(self, transcript: Transcript) -> None:
        """Let a case that says nothing itself be judged by what its befores did."""
        seen = self.seen
        transcript.turns.extend(seen.turns)
        transcript.tool_calls.extend(seen.tool_calls)
        transcript.events.extend(seen.events)
        transcript.artifacts.extend(seen.artifacts)


def joined(earlier: "Snapshot | None", transcript: Transcript) -> Transcript:
    """What was seen in the earlier befores and in one more."""
    turns: list[Turn] = list(earlier.seen.turns) if earlier else []
    calls: list[ToolCall] = list(earlier.seen.tool_calls) if earlier else []
    events: list[Event] = list(earlier.seen.events) if earlier else []
    artifacts: list[Artifact] = list(earlier.seen.artifacts) if earlier else []
    return Transcript(
        turns=turns + transcript.turns,
        tool_calls=calls + transcript.tool_calls,
        events=events + transcript.events,
        artifacts=artifacts + transcript.artifacts,
    )
