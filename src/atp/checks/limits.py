"""Limits of a case: what an agent has used, and which limit that passes by how much.

A `Meter` counts along while events arrive, so that looking after each of them costs nothing; `overruns` does the same
at the end. Where events and the agent's own figures disagree, the larger one counts.
"""

from typing import Any, NamedTuple, TypeVar

from atp.base.numbers import is_number
from atp.checks.tools import is_tool, untold
from atp.suite.case import Limits
from atp.suite.result import Event, ToolCall, Transcript, Usage, Verdict

Figure = TypeVar("Figure", int, float)

_CENT_DUST = 1e-9
"""Sums of prices are not exact: less than this is no overrun."""
_NONE = Limits()


class Overrun(NamedTuple):
    """A limit that was passed."""

    limit: str
    """Its name."""
    allowed: Any
    """What it allows."""
    found: Any
    """What there was."""
    message: str
    """Which limit and by how much, in words."""


class Meter:
    """What an agent has used so far. Nothing is the same as not known."""

    __slots__ = ("_calls", "_event_steps", "_event_tokens", "_event_usd", "_forbidden", "_limits", "_usage")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._calls = 0
        self._event_steps = 0
        self._event_tokens: int | None = None
        self._event_usd: float | None = None
        self._forbidden: str | None = None
        self._usage = Usage()

    def event(self, event: Event) -> None:
        """Something happened. The call that a `tool_call` tells of is counted by `call`."""
        payload = event.payload
        for key in ("step", "current_step"):
            self._event_steps = max(self._event_steps, int(_number(payload.get(key)) or 0))
        if event.type == "llm_request":
            tokens = [_number(payload.get(key)) for key in ("input_tokens", "output_tokens")]
            if any(one is not None for one in tokens):
                self._event_tokens = (self._event_tokens or 0) + int(sum(one or 0 for one in tokens))
            usd = _number(payload.get("cost_usd"))
            if usd is not None:
                self._event_usd = (self._event_usd or 0.0) + usd

    def call(self, call: ToolCall) -> None:
        """A tool was called."""
        self._calls += 1
        allowed = self._limits.allowed_tools
        if allowed is not None and self._forbidden is None and not any(is_tool(call.name, tool) for tool in allowed):
            self._forbidden = call.name

    def usage(self, usage: Usage) -> None:
        """The agent's own figures for all it did so far."""
        self._usage = usage

    @property
    def steps(self) -> int | None:
        """Steps, of which each tool call is at least one."""
        most = max(self._usage.steps or 0, self._usage.tool_calls or 0, self._event_steps, self._calls)
        return most if most or self._usage.steps is not None else None

    @property
    def tokens(self) -> int | None:
        """Tokens of all models."""
        return _largest(self._usage.tokens, self._event_tokens)

    @property
    def usd(self) -> float | None:
        """Money."""
        return _largest(self._usage.cost_usd, self._event_usd)

    def overruns(self) -> list[Overrun]:
        """The limits that are passed by now."""
        limits = self._limits
        found = []
        steps, tokens, usd = self.steps, self.tokens, self.usd
        if limits.max_steps is not None and steps is not None and steps > limits.max_steps:
            found.append(_too_many("max_steps", limits.max_steps, steps, "steps"))
        if limits.max_tokens is not None and tokens is not None and tokens > limits.max_tokens:
            found.append(_too_many("max_tokens", limits.max_tokens, tokens, "tokens"))
        if limits.budget_usd is not None and usd is not None and usd > limits.budget_usd + _CENT_DUST:
            over = usd - limits.budget_usd
            message = f"budget_usd exceeded: ${usd:.6g} of ${limits.budget_usd:.6g}, ${over:.6g} too much"
            found.append(Overrun("budget_usd", limits.budget_usd, usd, message))
        if limits.allowed_tools is not None and self._forbidden is not None:
            allowed = ", ".join(limits.allowed_tools) or "none"
            message = f"tool `{self._forbidden[:100]}` is not allowed (allowed_tools: {allowed})"
            found.append(Overrun("allowed_tools", limits.allowed_tools, self._forbidden, message))
        return found


def _too_many(limit: str, allowed: int, found: int, what: str) -> Overrun:
    message = f"{limit} exceeded: {found} of {allowed} {what}, {found - allowed} too many"
    return Overrun(limit, allowed, found, message)


def read_meter(transcript: Transcript, limits: Limits | None = None) -> Meter:
    """What a whole trial used."""
    meter = Meter(limits or _NONE)
    for event in transcript.events:
        meter.event(event)
    for call in transcript.tool_calls:
        meter.call(call)
    meter.usage(transcript.usage)
    return meter


def overruns(limits: Limits, transcript: Transcript) -> list[Overrun]:
    """The limits that a trial passed."""
    return read_meter(transcript, limits).overruns()


def unobserved(limits: Limits, transcript: Transcript) -> list[str]:
    """Limits on what the agent could have reported and did not: they count as kept by nobody."""
    meter = read_meter(transcript)
    reported = {
        "max_steps": ("steps or tool calls", meter.steps),
        "max_tokens": ("tokens", meter.tokens),
        "budget_usd": ("cost", meter.usd),
    }
    found = [
        f"unobserved: {limit} is set, but the agent reported no {what}"
        for limit, (what, value) in reported.items()
        if getattr(limits, limit) is not None and value is None
    ]
    if gap := untold(transcript):
        found.append(f"unobserved: {gap}")
    return found


def unshown(limits: Limits, transcript: Transcript) -> list[Verdict]:
    """Limits that nobody can say were kept, although the agent reports what they are about; each is unjudged."""
    gap = untold(transcript)
    if limits.allowed_tools is None or gap is None or overruns(limits, transcript):
        return []
    message = f"{gap}, so that it called only `allowed_tools` can't be shown"
    return [Verdict(type="limits", outcome="unjudged", message=message, name="allowed_tools")]


def disagreements(transcript: Transcript) -> list[str]:
    """Figures that events and the agent's own report give differently; the larger one counts."""
    by_events = read_meter(Transcript(events=transcript.events, tool_calls=transcript.tool_calls))
    by_report = read_meter(Transcript(usage=transcript.usage))
    pairs = [
        ("steps", by_events.steps, by_report.steps if transcript.usage.steps is not None else None),
        ("tokens", by_events.tokens, by_report.tokens),
        ("cost", by_events.usd, by_report.usd),
    ]
    return [
        f"{what}: events show {events:g}, the agent reports {report:g}; the larger counts"
        for what, events, report in pairs
        if events is not None and report is not None and abs(events - report) > _CENT_DUST
    ]


def _number(value: Any) -> float | None:
    """A count in an event; agents write what they like there."""
    return value if is_number(value) and value >= 0 else None


def _largest(*figures: Figure | None) -> Figure | None:
    return max((one for one in figures if one is not None), default=None)
