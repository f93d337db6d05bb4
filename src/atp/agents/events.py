"""Events: what an agent reports while it works."""

from collections import OrderedDict
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from atp.agents.adapter import TurnRequest
from atp.agents.wire import RAW_LENGTH, ProtocolError
from atp.base.near import near_miss
from atp.base.text import cut
from atp.models.parts import read_arguments
from atp.suite.result import Event, ToolCall

_Number = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)] | None


class _ToolCall(Struct):
    tool: Annotated[str, Meta(min_length=1)]
    duration_ms: _Number = None
    status: Literal["success", "completed", "error", "failed", "started"] | None = None
    call_id: str | int | None = None


class _LlmRequest(Struct):
    model: str | None = None
    input_tokens: _Number = None
    output_tokens: _Number = None
    duration_ms: _Number = None


class _Reasoning(Struct):
    step: int | float | str | None = None  # a number counts as a step, words describe one


class _Error(Struct):
    error_type: str | None = None
    message: str | None = None
    recoverable: bool | None = None


class _Progress(Struct):
    current_step: _Number = None
    percentage: int | float | None = None
    message: str | None = None


class _Message(Struct):
    role: str | None = None


_PAYLOADS: dict[str, type[Struct]] = {
    "tool_call": _ToolCall,
    "llm_request": _LlmRequest,
    "reasoning": _Reasoning,
    "error": _Error,
    "progress": _Progress,
    "message": _Message,
}
_INPUT_KEYS = ("input", "args")
EVENT_TYPES = frozenset(_PAYLOADS)
"""All types of events."""


class _Envelope(Struct):
    event_type: str
    payload: dict[str, Any]
    version: Literal["1.0"] | None = None
    task_id: str | None = None
    sequence: Annotated[int, Meta(ge=0)] | None = None
    timestamp: Any = None


_KNOWN = frozenset(_Envelope.__struct_fields__)


def is_meant(value: dict[str, Any]) -> bool:
    """Return whether a dict is meant as an event, short forms (`type`) and misspelt ones included.

    An event that was taken for an answer would be lost without a word.
    """
    if "event_type" in value:
        return True
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    in_form = "payload" in value and value.keys() <= _KNOWN | {"type"}
    return in_form or kind in EVENT_TYPES or near_miss(kind, EVENT_TYPES) is not None


def read_event(raw: Any, request: TurnRequest) -> Event:
    """Read an event. Raises `ProtocolError`."""
    try:
        envelope = msgspec.convert(raw, _Envelope)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"event: {error}") from error
    kind = envelope.event_type
    if kind not in _PAYLOADS:
        meant = near_miss(kind, EVENT_TYPES)
        hint = f", did you mean `{meant}`?" if meant else ""
        raise ProtocolError(f"event: there is no event_type `{cut(kind, 80)}`{hint}")
    try:
        msgspec.convert(envelope.payload, _PAYLOADS[kind])
    except msgspec.ValidationError as error:
        raise ProtocolError(f"payload of a `{kind}` event: {error}") from error
    if envelope.task_id is not None and envelope.task_id != request.task_id:
        raise ProtocolError(
            f"a `{kind}` event is about the task `{cut(envelope.task_id, 150)}`, not `{request.task_id}`"
        )
    if unknown := {key: value for key, value in raw.items() if key not in _KNOWN}:
        request.log(f"beside a `{kind}` event: {cut(unknown, RAW_LENGTH)}")
    _count(envelope, request)
    return Event(type=kind, payload=envelope.payload, turn=request.turn)


def _count(envelope: _Envelope, request: TurnRequest) -> None:
    """Log, once a turn, that sequence numbers don't count up: events came twice or out of order."""
    number, newest = envelope.sequence, request.sequence
    if number is None or newest is None:
        return
    request.sequence = number
    if number <= newest:
        request.log(f"a `{envelope.event_type}` event has the sequence {number}, after one with {newest}")
        request.sequence = None


def tool_call(payload: dict[str, Any], turn: int) -> ToolCall:
    """Return the tool call of a `tool_call` event."""
    failed = payload.get("status") in ("error", "failed")
    output = payload.get("output")
    return ToolCall(
        name=payload["tool"],
        arguments=read_arguments(payload["input"] if "input" in payload else payload.get("args")),
        result=None if failed else output,
        error=(output if isinstance(output, str) and output else cut(output or "failed", RAW_LENGTH))
        if failed
        else None,
        turn=turn,
        duration_ms=payload.get("duration_ms"),
        unfinished=payload.get("status") == "started",
    )


_Started = tuple[Event, ToolCall]


class PairedCalls:
    """Makes one tool call of the two events with which some agents report it: `started`, then its outcome."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, Any], OrderedDict[int, _Started]] = {}
        """The calls that have started, oldest first, by their id, by their tool, and by the tool if they have no id."""
        self._started = 0

    def read(self, event: Event, turn: int) -> ToolCall | None:
        """Return the tool call that an event reports.

        None for the outcome of a call that has started before: the outcome is added to that call and its event.
        """
        if event.payload.get("status") == "started":
            call = tool_call(event.payload, turn)
            self._started += 1
            for key in _pairing_keys(event.payload):
                self._open.setdefault(key, OrderedDict())[self._started] = event, call
            return call
        started = self._take_started(event.payload)
        if started is None:
            return tool_call(event.payload, turn)
        first, call = started
        if any(event.payload.get(key) is not None for key in _INPUT_KEYS):
            first.payload = {key: value for key, value in first.payload.items() if key not in _INPUT_KEYS}
        first.payload |= {key: value for key, value in event.payload.items() if value is not None}
        closed = tool_call(first.payload, call.turn)
        for name in ("arguments", "result", "error", "duration_ms"):
            setattr(call, name, getattr(closed, name))
        call.unfinished = False
        return None

    def unfinished(self) -> list[str]:
        """Return warnings about calls whose outcome never came."""
        if not self._open:
            return []
        calls = {number: call for of_key in self._open.values() for number, (_, call) in of_key.items()}
        names = dict.fromkeys(calls[number].name for number in sorted(calls))
        return [f"a call of the tool `{cut(name, 100)}` was started, and its outcome never came" for name in names]

    def _take_started(self, outcome: dict[str, Any]) -> _Started | None:
        """Take the oldest open call with the outcome's id, else the oldest one of its tool that has no other id."""
        call_id, tool = outcome.get("call_id"), outcome["tool"]
        keys = [("tool", tool)] if call_id is None else [("id", call_id), ("tool without id", tool)]
        found = next((one for key in keys if (one := self._open.get(key))), None)
        if found is None:
            return None
        number, started = found.popitem(last=False)
        for key in _pairing_keys(started[0].payload):
            self._open[key].pop(number, None)
        return started


def _pairing_keys(payload: dict[str, Any]) -> list[tuple[str, Any]]:
    call_id, tool = payload.get("call_id"), payload["tool"]
    return [("tool", tool), ("tool without id", tool) if call_id is None else ("id", call_id)]
