"""Picks the values that an agent's function takes out of a turn."""

from collections.abc import Iterable, Mapping
from typing import Any

from atp.agents.adapter import TurnRequest
from atp.agents.attachments import Attachments


class Offer:
    """Picks what an agent asks for out of a turn. All of it is fresh: what the agent changes is its own."""

    def __init__(self, config: Mapping[str, Any], attachments: Attachments | None = None) -> None:
        self._config = dict(config)
        self._attachments = attachments
        """Where files in messages are read from, for agents that can't be left to read them."""

    def of(self, names: Iterable[str], request: TurnRequest) -> dict[str, Any]:
        """The things of these names."""
        return {name: self._give(name, request) for name in names}

    def _give(self, name: str, request: TurnRequest) -> Any:
        match name:
            case "prompt":
                return request.prompt
            case "messages":
                messages = _fresh(request.messages)
                return messages if self._attachments is None else [self._attachments.message(one) for one in messages]
            case "task":
                return _fresh(request.task)
            case "options":
                return _fresh({**self._config, **request.options})
            case "workspace":
                return request.workspace()
            case "constraints":
                return _fresh(request.constraints)
            case _:
                return _fresh({"config": self._config, **request.context, "state": request.state})


def _fresh(value: Any) -> Any:
    if type(value) is dict:
        return {key: _fresh(item) for key, item in value.items()}
    if type(value) is list:
        return [_fresh(item) for item in value]
    return value
