"""Bodies of requests with places to fill in: `{{prompt}}`, `{{messages}}`, `{{task.description}}`, `{{session_id}}`.

A text that is nothing but a placeholder becomes the value itself, a list or a number too; inside other text a value is
written out. What is filled in is never looked through again, so nothing that an agent or a user says is a template.
"""

import re
from typing import Any

from atp.agents.adapter import TurnRequest
from atp.agents.breach import json_text
from atp.base.errors import ConfigurationError
from atp.base.near import near_miss

_PLACE = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.[\w-]+)*)\s*\}\}")
_OF_REQUEST = ("prompt", "messages", "task", "constraints", "context", "options", "state", "task_id", "turn")
_OF_CONTEXT = (
    *("session_id", "user", "team", "locale", "client_type", "client_ip", "referer", "accept", "connector"),
    *("run", "iteration", "case_id", "case_name", "agent", "metadata"),
)
NAMES = (*_OF_REQUEST, *_OF_CONTEXT, "workspace")


def check(template: Any) -> None:
    """Raise `ConfigurationError` for a placeholder that nothing can fill."""
    if isinstance(template, dict):
        template = list(template.values())
    if isinstance(template, list):
        for item in template:
            check(item)
    elif isinstance(template, str):
        for match in _PLACE.finditer(template):
            name = match[1].partition(".")[0]
            if name not in NAMES:
                meant = near_miss(name, NAMES)
                hint = f"did you mean `{{{{{meant}}}}}`?" if meant else f"there are {', '.join(NAMES)}"
                raise ConfigurationError(f"`body`: nothing is called `{{{{{name}}}}}`", hint)
        if "{{" in _PLACE.sub("", template):
            raise ConfigurationError(f"`body`: `{template[:80]}` has a `{{{{` that begins no placeholder")


def fill(template: Any, request: TurnRequest) -> Any:
    """The template with its places filled in."""
    if isinstance(template, dict):
        return {key: fill(value, request) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(item, request) for item in template]
    if not isinstance(template, str):
        return template
    if alone := _PLACE.fullmatch(template.strip()):
        return _value(alone[1], request)
    return _PLACE.sub(lambda match: _written(_value(match[1], request)), template)


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


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)
