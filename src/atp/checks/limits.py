"""Compares what an agent used with the limits of its case.

A `LimitMeter` counts along while events arrive, so that the limits can be checked after each event; `overruns` checks
them at the end.
"""

from typing import Any, NamedTuple

from atp.base.text import cut
from atp.checks.before_run import needs
from atp.checks.evidence import unreported_calls
from atp.suite.case import Case, Limits
from atp.suite.meter import Meter, fill, read_meter
from atp.suite.result import ToolCall, Transcript, Verdict

_CENT_DUST = 1e-9
"""Dollars. Sums of prices are not exact: a smaller difference is no overrun."""


LARGER = "; the larger counts"
"""How a warning about figures that differ ends."""


class Overrun(NamedTuple):
    """A limit that was passed."""

    limit: str
    """The key of the limit: `max_steps`."""
    allowed: Any
    """The value that the case allows."""
    found: Any
    """The value that the agent reached."""
    message: str
    """Which limit and by how much, in words."""


class LimitMeter(Meter):
    """Counts what an agent used, and knows the limits of its case."""

    __slots__ = ("_forbidden", "_limits")

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits
        self._forbidden: str | None = None

    def call(self, call: ToolCall) -> None:
        """Count a tool call, and note the first one that `allowed_tools` doesn't allow."""
        super().call(call)
        allowed = self._limits.allowed_tools
        if allowed is not None and self._forbidden is None and not any(call.is_of(tool) for tool in allowed):
            self._forbidden = call.name

    def overruns(self) -> list[Overrun]:
        """The limits that the agent has passed so far."""
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
            message = f"tool `{cut(self._forbidden, 100)}` is not allowed (allowed_tools: {allowed})"
            found.append(Overrun("allowed_tools", limits.allowed_tools, self._forbidden, message))
        return found


def _too_many(limit: str, allowed: int, found: int, what: str) -> Overrun:
    message = f"{limit} exceeded: {found} of {allowed} {what}, {found - allowed} too many"
    return Overrun(limit, allowed, found, message)


def overruns(limits: Limits, transcript: Transcript) -> list[Overrun]:
    """The limits that a trial passed."""
    return fill(LimitMeter(limits), transcript).overruns()


def passed_limits(limits: Limits, transcript: Transcript) -> list[Verdict]:
    """A failed verdict on each limit that a trial passed."""
    return [
        Verdict(
            type="limits",
            outcome="failed",
            message=one.message,
            expected=one.allowed,
            found=one.found,
            name=one.limit,
        )
        for one in overruns(limits, transcript)
    ]


def unreported_limit_warnings(limits: Limits, transcript: Transcript) -> list[str]:
    """Warnings about limits on something that the agent could have reported and did not."""
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
    if gap := unreported_calls(transcript):
        found.append(f"unobserved: {gap}")
    return found


def no_actions_warnings(case: Case, transcript: Transcript) -> list[str]:
    """A warning about limits and checks that hold only because the agent reported no tool calls, events or steps."""
    if transcript.tells_of_actions:
        return []
    held = [need.why for need in needs(case) if need.what == "tool_calls"]
    if not held:
        return []
    shown = ", ".join(dict.fromkeys(held))
    return [f"unobserved: the agent reported no tool calls, events or steps, so nothing shows {shown}"]


def unjudged_limits(limits: Limits, transcript: Transcript) -> list[Verdict]:
    """Unjudged verdicts on limits that may have been passed by tool calls that the agent did not describe."""
    gap = unreported_calls(transcript)
    if limits.allowed_tools is None or gap is None or overruns(limits, transcript):
        return []
    message = f"{gap}, so that it called only `allowed_tools` can't be shown"
    return [Verdict(type="limits", outcome="unjudged", message=message, name="allowed_tools")]


def disagreements(transcript: Transcript) -> list[str]:
    """Figures that differ between the events and the agent's own report. The larger figure counts."""
    by_events = read_meter(Transcript(events=transcript.events, tool_calls=transcript.tool_calls))
    by_report = read_meter(Transcript(usage=transcript.usage))
    pairs = [
        ("steps", by_events.steps, by_report.steps if transcript.usage.steps is not None else None),
        ("tokens", by_events.tokens, by_report.tokens),
        ("cost", by_events.usd, by_report.usd),
    ]
    return [
        f"{what}: events show {events:g}, the agent reports {report:g}{LARGER}"
        for what, events, report in pairs
        if events is not None and report is not None and abs(events - report) > _CENT_DUST
    ]
