"""Makes a `Reply` of what an agent gives back: its usage, its tool calls, and what a Python function returns."""

import time
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from atp.agents.adapter import AgentError, Reply, TurnRequest
from atp.agents.artifacts import Artifacts, take_in
from atp.agents.events import is_meant, read_event
from atp.agents.wire import LARGEST_OUTPUT, RAW_LENGTH, ProtocolError, broken
from atp.base.numbers import is_number
from atp.base.text import cut
from atp.models.parts import read_arguments
from atp.suite.metrics import FIRST_TOKEN, read_metrics
from atp.suite.result import ToolCall, Usage, count_unread_calls

_USAGE_NAMES = {
    **{name: name for name in Usage.__struct_fields__},
    "total_steps": "steps",
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
}
_FRACTIONS = ("cost_usd", "wall_time_seconds")
_NAME_KEYS = ("name", "tool", "tool_name")
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters")
_RESULT_KEYS = ("result", "output")
PARTS = frozenset(("output", "tool_calls", "artifacts", "usage", "state", "metrics"))
"""The keys of a reply in parts. A dict with any other key is the output itself."""
SHOWN = 200
"""Characters of an earlier answer in a message."""


class _Call(Struct):
    name: Annotated[str, Meta(min_length=1)]
    arguments: Any = None
    result: Any = None
    error: Any = None
    duration_ms: int | float | None = None


class Answer:
    """Builds the reply of a Python function from what the function returns or yields, as plain JSON values.

    A function returns a whole answer. A generator yields events, which are emitted at once; pieces of text, which are
    the answer together; or a whole answer, which replaces the pieces before it. Replies in parts add up. A second
    answer, or text after the first, is an error, because one of the two would be lost.
    """

    def __init__(self, request: TurnRequest) -> None:
        self._request = request
        self._pieces: list[str] = []
        self._size = 0
        self._whole = False
        self.reply = Reply(tool_calls=[], artifacts=[], warnings=[], metrics={})
        request.so_far = self.finish

    def finish(self) -> Reply:
        """Return the reply. Called at the end of the turn, however it ends."""
        self._request.so_far = None  # else the request and this object would hold each other
        text, self._pieces = "".join(self._pieces), []
        if text and not self._whole:
            self.reply.output = text
        elif text and text != self.reply.output:
            self._request.log(f"in place of its answer, it first said: {cut(text, RAW_LENGTH)}")
        return self.reply

    def yielded(self, value: Any, at_ms: float = 0.0) -> None:
        """Add a value that a generator yielded, `at_ms` milliseconds after the trial's start; 0 means now.

        Raises what `emit` raises when a limit is passed, and `AgentError` if all that was yielded is too large.
        """
        if isinstance(value, str):
            self._count(len(value))
            if self._whole and value:
                raise broken(f"it goes on after its answer, {cut(self.reply.output, SHOWN)}", value)
            if value and not self._pieces and self._request.turn == 1:
                took = at_ms or (time.monotonic() - self._request.began) * 1000
                self.reply.metrics.setdefault(FIRST_TOKEN, round(took, 3))
            self._pieces.append(value)
        elif isinstance(value, dict) and is_meant(value):
            self._event(value, at_ms)
        elif value is not None:
            self.given_back(value)

    def given_back(self, value: Any) -> None:
        """Add a value that a function returned: the whole answer, or a reply in parts. Raises `AgentError`."""
        self._count(_size(value))
        if type(value) is dict and value and value.keys() <= PARTS:
            try:
                self._parts(value)
            except ProtocolError as error:
                raise broken(error, value) from error
        else:
            if type(value) is dict and _looks_like_parts(value):
                self._warn_of_unknown_keys(value)
            self._answer(value)

    def _warn_of_unknown_keys(self, value: dict[str, Any]) -> None:
        """Say that a dict which looks like a reply in parts is the output itself, and that its calls were not read."""
        unknown = ", ".join(f"`{cut(key, 60)}`" for key in value if key not in PARTS)
        parts = " and ".join(f"`{key}`" for key in value if key in PARTS)
        text = f"the answer has {unknown} beside {parts}, so all of it is the output and none of its parts was read: "
        self.reply.warnings.append(f"{text}leave that out, or put it into `output`")
        if calls := count_unread_calls(value):
            # Calls that were not described: what they could change is unjudged.
            self.reply.usage = self.reply.usage or Usage()
            self.reply.usage.add(Usage(tool_calls=calls))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > LARGEST_OUTPUT:
            raise AgentError(f"agent error: answered with more than {LARGEST_OUTPUT // 1024 // 1024} MB")

    def _answer(self, value: Any) -> None:
        if value is None:
            return  # an empty answer replaces nothing
        if self._whole and value != self.reply.output:
            raise broken(f"a second answer, after {cut(self.reply.output, SHOWN)}", value)
        self._whole, self.reply.output = True, value

    def _event(self, value: dict[str, Any], at_ms: float) -> None:
        if "event_type" not in value:
            value["event_type"] = value.pop("type")
        try:
            event = read_event(value, self._request)
        except ProtocolError as error:
            raise broken(error, value) from error
        event.at_ms = at_ms
        self._request.emit(event)

    def _parts(self, parts: dict[str, Any]) -> None:
        reply = self.reply
        if "output" in parts:
            self._answer(parts["output"])
        if "state" in parts:
            reply.state = parts["state"]
        if parts.get("tool_calls") is not None:
            reply.tool_calls.extend(self._tool_calls(parts["tool_calls"]))
        if parts.get("artifacts") is not None:
            sent = _convert(parts["artifacts"], Artifacts, "artifacts")
            reply.artifacts.extend(take_in(sent, self._request.workspace))
        if parts.get("usage") is not None:
            usage, unknown = read_usage(parts["usage"], "usage")
            if unknown:
                self._request.log(f"beside the usage: {cut(unknown, RAW_LENGTH)}")
            reply.usage = reply.usage or Usage()
            reply.usage.add(usage)
        try:
            reply.metrics.update(read_metrics(parts.get("metrics")))
        except ValueError as error:
            raise ProtocolError(str(error)) from error

    def _tool_calls(self, raw: Any) -> list[ToolCall]:
        made = []
        for call in _convert(raw, list[_Call], "tool_calls"):
            error = call.error if call.error is None or isinstance(call.error, str) else cut(call.error, RAW_LENGTH)
            made.append(
                ToolCall(
                    name=call.name,
                    arguments=read_arguments(call.arguments),
                    result=call.result,
                    error=error,
                    turn=self._request.turn,
                    duration_ms=call.duration_ms,
                )
            )
        return made


def _looks_like_parts(value: dict[str, Any]) -> bool:
    """True for a dict with an output and another part, or with tool calls, beside keys that no reply in parts has."""
    return count_unread_calls(value) > 0 or ("output" in value and not PARTS.isdisjoint(value.keys() - {"output"}))


def _convert(raw: Any, shape: Any, what: str) -> Any:
    try:
        return msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        raise ProtocolError(f"{what}: {error}") from error


def read_usage(raw: Any, where: str) -> tuple[Usage, dict[str, Any]]:
    """Read a usage (the protocol's `metrics`, a model's `usage`). Returns the keys that are none of a usage, too."""
    if not isinstance(raw, dict):
        raise ProtocolError(f"`{where}` is not an object")
    usage, unknown = Usage(), {}
    for name, value in raw.items():
        field = _USAGE_NAMES.get(name)
        if field is None:
            unknown[name] = value
        elif value is not None:
            number = _number(value, field in _FRACTIONS, f"`{where}.{name}`")
            if name == field or getattr(usage, field) is None:
                setattr(usage, field, number)
    return usage, unknown


def _number(value: Any, fraction: bool, where: str) -> int | float:
    if not is_number(value) or value < 0:
        raise ProtocolError(f"{where} is not a number from 0")
    if fraction:
        return float(value)
    if value != int(value):
        raise ProtocolError(f"{where} is not a whole number")
    return int(value)


def read_tool_calls(raw: Any, turn: int) -> list[ToolCall]:
    """Read tool calls in any of the common forms. None is an empty list."""
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise ProtocolError("the tool calls are not a list")
    return [_read_tool_call(one, turn) for one in raw]


def _read_tool_call(raw: Any, turn: int) -> ToolCall:
    if isinstance(raw, str):
        raw = {"name": raw}
    if not isinstance(raw, dict):
        raise ProtocolError(f"a tool call is not an object: {cut(raw, 200)}")
    function = raw.get("function")
    call = {**raw, **function} if isinstance(function, dict) else raw
    name = _first(call, _NAME_KEYS) or (function if isinstance(function, str) else None)
    if not isinstance(name, str) or not name:
        raise ProtocolError(f"a tool call has no name: {cut(raw, 200)}")
    error = call.get("error")
    return ToolCall(
        name=name,
        arguments=read_arguments(_first(call, _ARGUMENT_KEYS)),
        result=_first(call, _RESULT_KEYS),
        error=error if error is None or isinstance(error, str) else cut(error, RAW_LENGTH),
        turn=turn,
    )


def _first(call: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((call[name] for name in names if call.get(name) is not None), None)


def _size(value: Any) -> int:
    """The length of a value as JSON, roughly, and no further than matters."""
    if isinstance(value, str):
        return len(value)
    size, waiting = 0, [value]
    while waiting and size <= LARGEST_OUTPUT:
        one = waiting.pop()
        if isinstance(one, dict):
            size += sum(map(len, one))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
        # A digit has more than three bits.
        size += len(one) if isinstance(one, str) else one.bit_length() // 3 + 2 if isinstance(one, int) else 2
    return size
