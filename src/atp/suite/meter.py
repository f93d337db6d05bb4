"""Counts what an agent used in a trial: steps, tokens and money.

Where events and the agent's own figures disagree, the larger figure counts.
"""

from typing import Any, TypeVar

from atp.base.numbers import is_number
from atp.suite.result import Event, ToolCall, Transcript, Usage

Figure = TypeVar("Figure", int, float)


class Meter:
    """Counts along while events arrive. A figure that the agent never reported is None, not 0."""

    __slots__ = ("_calls", "_event_steps", "_event_tokens", "_event_usd", "_usage")

    def __init__(self) -> None:
        self._calls = 0
        self._event_steps = 0
        self._event_tokens: int | None = None
        self._event_usd: float | None = None
        self._usage = Usage()

    def event(self, event: Event) -> None:
        """Count an event. The call that a `tool_call` event reports is counted by `call`."""
        payload = event.payload
        for key in ("step", "current_step"):
            self._event_steps = max(self._event_steps, int(_count(payload.get(key)) or 0))
        if event.type == "llm_request":
            tokens = [_count(payload.get(key)) for key in ("input_tokens", "output_tokens")]
            if any(one is not None for one in tokens):
                self._event_tokens = (self._event_tokens or 0) + int(sum(one or 0 for one in tokens))
            usd = _count(payload.get("cost_usd"))
            if usd is not None:
                self._event_usd = (self._event_usd or 0.0) + usd

    def call(self, call: ToolCall) -> None:
        """Count a tool call."""
        self._calls += 1

    def usage(self, usage: Usage) -> None:
        """Take the agent's own figures for everything it did so far."""
        self._usage = usage

    @property
    def steps(self) -> int | None:
        """Steps. Each tool call is at least one step."""
        most = max(self._usage.steps or 0, self._usage.tool_calls or 0, self._event_steps, self._calls)
        return most if most or self._usage.steps is not None else None

    @property
    def tokens(self) -> int | None:
        """Tokens of all models."""
        return _larger(self._usage.tokens, self._event_tokens)

    @property
    def usd(self) -> float | None:
        """Money, in US dollars."""
        return _larger(self._usage.cost_usd, self._event_usd)


def read_meter(transcript: Transcript) -> Meter:
    """Count a whole trial."""
    return fill(Meter(), transcript)


AnyMeter = TypeVar("AnyMeter", bound=Meter)


def fill(meter: AnyMeter, transcript: Transcript) -> AnyMeter:
    """Count everything in `transcript`, and return `meter`."""
    for event in transcript.events:
        meter.event(event)
    for call in transcript.tool_calls:
        meter.call(call)
    meter.usage(transcript.usage)
    return meter


def _count(value: Any) -> float | None:
    """The figure in an event's payload, or None for anything else that an agent writes there."""
    return value if is_number(value) and value >= 0 else None


def _larger(one: Figure | None, other: Figure | None) -> Figure | None:
    """The larger of two figures; where only one is known, that one."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
