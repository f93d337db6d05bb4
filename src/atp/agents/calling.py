"""How a function of the user's is called: with what it names, in the way it is made for."""

import inspect
from collections.abc import Callable
from typing import Any

from atp.agents.adapter import ConfigurationError, TurnRequest
from atp.suite.near import near_miss

OFFERED = ("messages", "prompt", "task", "context", "options", "workspace")


class Callee:
    """A function, and which of the things we offer it takes."""

    def __init__(self, function: Callable[..., Any], config: dict[str, Any]) -> None:
        self.function = _instance(function)
        self.is_async = _is_async(self.function) or _is_async(type(self.function).__call__)
        """A call of it only makes a coroutine or an async generator, and so can't block."""
        self._config = config
        self._by_place, self._by_name = _taken(self.function)

    def arguments(self, request: TurnRequest) -> tuple[list[Any], dict[str, Any]]:
        """What to call it with. All of it is fresh: what the agent changes is its own."""
        given = {name: self._give(name, request) for name in (*self._by_place, *self._by_name)}
        return [given.pop(name) for name in self._by_place], given

    def _give(self, name: str, request: TurnRequest) -> Any:
        match name:
            case "prompt":
                return request.prompt
            case "messages":
                return _fresh(request.messages)
            case "task":
                return _fresh(request.task)
            case "options":
                return _fresh({**self._config, **request.options})
            case "workspace":
                return request.workspace()
            case _:
                return _fresh({"config": self._config, **request.context, "state": request.state})


def _fresh(value: Any) -> Any:
    if type(value) is dict:
        return {key: _fresh(item) for key, item in value.items()}
    if type(value) is list:
        return [_fresh(item) for item in value]
    return value


def _instance(function: Any) -> Callable[..., Any]:
    """A class whose instances can be called stands for an instance of it, one for all trials."""
    made = function
    if inspect.isclass(function):
        if "__call__" not in dir(function):
            raise ConfigurationError(f"instances of the class `{function.__name__}` can't be called")
        try:
            made = function()
        except (Exception, SystemExit) as error:
            raise ConfigurationError(f"`{function.__name__}()` raised {type(error).__name__}: {error}") from error
    called: Callable[..., Any] = made
    return called


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _taken(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """Which of the offered things it takes: those by place, and those by name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"it can't be seen what it takes: {error}") from error
    by_place: list[str] = []
    by_name: list[str] = []
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            by_name = [each for each in OFFERED if each not in by_place]
        elif one.name in OFFERED and one.kind is one.POSITIONAL_ONLY:
            by_place.append(one.name)
        elif one.name in OFFERED and one.kind is not one.VAR_POSITIONAL:
            by_name.append(one.name)
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
            meant = near_miss(one.name, OFFERED)
            hint = f"did you mean `{meant}`?" if meant else f"it can take {', '.join(OFFERED)}"
            raise ConfigurationError(f"it takes `{one.name}`, which no agent is given", hint)
    return by_place, by_name
