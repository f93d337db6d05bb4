"""Tool calls as agents report them in their answers, in the shapes that are common."""

from typing import Any

from atp.agents.breach import ProtocolError, cut, read_json
from atp.suite.result import ToolCall

_NAME = ("name", "tool", "tool_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
_RESULT = ("result", "output")


def read_tool_calls(raw: Any, turn: int) -> list[ToolCall]:
    """The calls in a list; an agent that names none called none."""
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise ProtocolError("the tool calls are not a list")
    return [_read(one, turn) for one in raw]


def _read(raw: Any, turn: int) -> ToolCall:
    if isinstance(raw, str):
        raw = {"name": raw}
    if not isinstance(raw, dict):
        raise ProtocolError(f"a tool call is not an object: {cut(raw, 200)}")
    function = raw.get("function")
    call = {**raw, **function} if isinstance(function, dict) else raw
    name = _first(call, _NAME) or (function if isinstance(function, str) else None)
    if not isinstance(name, str) or not name:
        raise ProtocolError(f"a tool call has no name: {cut(raw, 200)}")
    error = call.get("error")
    return ToolCall(
        name=name,
        arguments=_arguments(_first(call, _ARGUMENTS)),
        result=_first(call, _RESULT),
        error=error if error is None or isinstance(error, str) else cut(error),
        turn=turn,
    )


def _first(call: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((call[name] for name in names if call.get(name) is not None), None)


def _arguments(given: Any) -> Any:
    """OpenAI sends arguments as JSON in a text; what isn't JSON stays the text that it is."""
    if not isinstance(given, str):
        return given
    try:
        return read_json(given.encode(), "arguments")
    except (ProtocolError, UnicodeEncodeError):
        return given
