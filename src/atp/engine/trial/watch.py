"""Watching an agent at work: what it does is written down, and a limit that is passed stops it there and then."""

import time

from atp.agents.events import tool_call
from atp.checks.limits import LimitMeter
from atp.suite.case import Limits
from atp.suite.result import Event, ToolCall, Transcript, Usage


class LimitPassed(BaseException):
    """A limit of the case is passed. Not an `Exception`: agent code must not be able to swallow it."""


class Watch:
    """Writes the transcript of a trial and enforces its limits."""

    def __init__(self, limits: Limits, transcript: Transcript) -> None:
        self.transcript = transcript
        self.turn = 1
        self.began = time.monotonic()
        """When the trial began."""
        self._meter = LimitMeter(limits) if limits.given().keys() - {"timeout_seconds"} else None

    def event(self, event: Event) -> None:
        """An agent tells of something as it happens."""
        event.turn = self.turn
        event.at_ms = round(event.at_ms or (time.monotonic() - self.began) * 1000, 3)
        self.transcript.events.append(event)
        if self._meter is not None:
            self._meter.event(event)
        if event.type == "tool_call":
            self.tool_call(tool_call(event.payload, self.turn))
        else:
            self._enforce()

    def tool_call(self, call: ToolCall) -> None:
        """A tool was called."""
        self.transcript.tool_calls.append(call)
        if self._meter is not None:
            self._meter.call(call)
        self._enforce()

    def usage(self, usage: Usage) -> None:
        """An agent says what a turn used."""
        self.transcript.usage.add(usage)
        if self._meter is not None:
            self._meter.usage(self.transcript.usage)
        self._enforce()

    def _enforce(self) -> None:
        passed = self._meter.overruns() if self._meter is not None else None
        if passed:
            raise LimitPassed(passed[0].message)
