"""`protocol: json`: an agent with JSON of its own, asked by a template and read by JSONPaths.

A template has placeholders: `{{prompt}}`, `{{messages}}`, `{{task.description}}`, `{{session_id}}`. A text that is
nothing but a placeholder becomes the value itself, a list or a number too; inside other text a value is written out.
Inserted values are never searched for placeholders, so nothing that an agent or a user says is a template.
"""

import re
from typing import Any

import jsonpath_rfc9535

from atp.agents.adapter import Reply, TurnRequest
from atp.agents.reply import read_tool_calls, read_usage
from atp.agents.wire import ProtocolError, json_text, read_json, write_json
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss
from atp.base.text import cut
from atp.suite.agent import HttpSpeech
from atp.suite.paths import full_path, is_one_place

_NOTHING = object()
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.[\w-]+)*)\s*\}\}")
_OF_REQUEST = ("prompt", "messages", "task", "constraints", "context", "options", "state", "task_id", "turn")
_OF_CONTEXT = (
    *("session_id", "user", "team", "locale", "client_type", "client_ip", "referer", "accept", "connector"),
    *("run", "iteration", "case_id", "case_name", "agent", "metadata"),
)
_NAMES = (*_OF_REQUEST, *_OF_CONTEXT, "workspace")


class _Path:
    """A compiled JSONPath."""

    def __init__(self, path: str) -> None:
        self.text = full_path(path)
        self._query = jsonpath_rfc9535.compile(self.text)
        self._one_place = is_one_place(self._query)

    def values(self, value: Any) -> list[Any]:
        return [node.value for node in self._query.find(value)]

    def value(self, value: Any) -> Any:
        """Return the value at a singular path, else all values found; a list of one counts as its element."""
        found = self.values(value)
        if not found:
            return _NOTHING
        return found[0] if self._one_place or len(found) == 1 else found

    def list(self, value: Any) -> Any:
        """Return the list at a singular path, else all values found."""
        found = self.values(value)
        return (found[0] if found else None) if self._one_place else found


class JsonDialect:
    """Fills the template of a request, and reads answers by path."""

    accept = "application/json"
    streams = False

    def __init__(self, config: HttpSpeech) -> None:
        _check_template(config.body)
        self._body = config.body
        self.uses_workspace = "workspace" in json_text(config.body)
        self._output = _path(config.output_path)
        self._tool_calls = _path(config.tool_calls_path)
        self._usage = _path(config.usage_path)
        self._state = _path(config.state_path)

    def body(self, request: TurnRequest) -> bytes:
        """Return the filled template."""
        return write_json(_fill(self._body, request))

    def read(self, raw: bytes, request: TurnRequest) -> Reply:
        """Return what the paths find. Without `output_path` the whole answer is the output."""
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


def _check_template(template: Any) -> None:
    """Raise `ConfigurationError` for a placeholder that nothing can fill."""
    if isinstance(template, dict):
        template = list(template.values())
    if isinstance(template, list):
        for item in template:
            _check_template(item)
    elif isinstance(template, str):
        for match in _PLACEHOLDER.finditer(template):
            name = match[1].partition(".")[0]
            if name not in _NAMES:
                meant = near_miss(name, _NAMES)
                hint = f"did you mean `{{{{{meant}}}}}`?" if meant else f"there are {', '.join(_NAMES)}"
                raise ConfigurationError(f"`body`: nothing is called `{{{{{name}}}}}`", hint)
        if "{{" in _PLACEHOLDER.sub("", template):
            raise ConfigurationError(f"`body`: `{cut(template, 80)}` has a `{{{{` that begins no placeholder")


def _fill(template: Any, request: TurnRequest) -> Any:
    """Return the template with its placeholders replaced."""
    if isinstance(template, dict):
        return {key: _fill(value, request) for key, value in template.items()}
    if isinstance(template, list):
        return [_fill(item, request) for item in template]
    if not isinstance(template, str):
        return template
    if alone := _PLACEHOLDER.fullmatch(template.strip()):
        return _value(alone[1], request)
    return _PLACEHOLDER.sub(lambda match: _as_text(_value(match[1], request)), template)


def _value(path: str, request: TurnRequest) -> Any:
    name, *steps = path.split(".")
    value: Any
    if name == "workspace":
        value = str(request.workspace())
    else:
        value = getattr(request, name) if name in _OF_REQUEST else request.context.get(name)
    for step in steps:
        if isinstance(value, list) and step.isdecimal():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)
