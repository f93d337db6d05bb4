"""The result of a trial whose time is up: code that is left to itself changes nothing in it, and a copy is cheap."""

import msgspec

from atp.engine.trial.judging import _copy
from atp.suite.result import Event, ToolCall, TrialResult, Usage


def test_what_comes_later_is_not_in_the_copy_and_events_are_not_copied() -> None:
    result = TrialResult(key="k", agent="a", case="c", role_usage=Usage(total_tokens=1))
    seen = result.transcript
    seen.events.append(Event(type="progress", payload={"n": 1}))
    seen.tool_calls.append(ToolCall(name="search"))
    copied = _copy(result)
    before = msgspec.to_builtins(copied)
    assert before == msgspec.to_builtins(result)
    assert copied.transcript.events[0] is seen.events[0]  # however many there are, the deadlines of others don't wait

    for add in (seen.messages, seen.turns, seen.tool_calls, seen.events, seen.artifacts, seen.logs):
        add.append(None)  # type: ignore[arg-type]
    for more in (result.verdicts, result.checkpoints, result.retries, result.warnings, result.files):
        more.append(None)  # type: ignore[arg-type]
    result.dimensions["quality"], result.left_out["cost"] = 1.0, "no data"
    seen.tool_calls[0].result = "found"  # told when the tool has answered
    seen.usage.add(Usage(total_tokens=5))
    assert result.role_usage is not None
    result.role_usage.add(Usage(total_tokens=5))
    result.status = "error"
    assert msgspec.to_builtins(copied) == before
