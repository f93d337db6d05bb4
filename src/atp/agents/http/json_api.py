"""`protocol: json`: an agent with an interface of its own, met by a template and JSONPaths."""

from typing import Any

import jsonpath_rfc9535

from atp.agents.adapter import Capabilities, Reply, TurnRequest
from atp.agents.breach import ProtocolError, read_json, write_json
from atp.agents.http.template import check, fill
from atp.agents.tool_calls import read_tool_calls
from atp.agents.usage import read_usage
from atp.suite.agent import HttpConfig
from atp.suite.paths import full_path, is_one_place

_NOTHING = object()


class _Path:
    """A JSONPath, and what it finds."""

    def __init__(self, path: str) -> None:
        self.text = full_path(path)
        self._query = jsonpath_rfc9535.compile(self.text)
        self._one_place = is_one_place(self._query)

    def values(self, value: Any) -> list[Any]:
        return [node.value for node in self._query.find(value)]

    def value(self, value: Any) -> Any:
        """What stands at one place, or all that is found; a list of one counts as its element."""
        found = self.values(value)
        if not found:
            return _NOTHING
        return found[0] if self._one_place or len(found) == 1 else found

    def list(self, value: Any) -> Any:
        """The list that stands at one place, or all that is found."""
        found = self.values(value)
        return (found[0] if found else None) if self._one_place else found


class JsonDialect:
    """Fills a template, and reads answers by path."""

    accept = "application/json"
    streams = False

    def __init__(self, config: HttpConfig) -> None:
        check(config.body)
        self._body = config.body
        self._output = _path(config.output_path)
        self._tool_calls = _path(config.tool_calls_path)
        self._usage = _path(config.usage_path)
        self._state = _path(config.state_path)
        calls, usage = self._tool_calls is not None, self._usage is not None
        self.capabilities = Capabilities(tool_calls=calls, tokens=usage, cost=usage, steps=calls or usage)

    def body(self, request: TurnRequest) -> bytes:
        """The filled template."""
        return write_json(fill(self._body, request))

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """What the paths find; without a path for it, the whole answer is the output."""
        answer = read_json(raw, "the answer")
        reply = Reply(output=answer)
        if self._output is not None:
            reply.output = self._output.value(answer)
            if reply.output is _NOTHING:
                raise ProtocolError(f"the answer has nothing at `{self._output.text}`")
        if self._tool_calls is not None:
            reply.tool_calls = read_tool_calls(self._tool_calls.list(answer), request.turn)
        if self._usage is not None and (usage := self._usage.value(answer)) not in (_NOTHING, None):
            reply.usage = read_usage(usage, self._usage.text)[0]
        if self._state is not None and (state := self._state.value(answer)) is not _NOTHING:
            reply.state = state
        return reply


def _path(text: str | None) -> _Path | None:
    return None if text is None else _Path(text)
