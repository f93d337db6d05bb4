"""How a function of the user's is called: with what it names, in the way it is made for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .unusable import Unusable

OFFERED = ("messages", "prompt", "task", "context", "options", "workspace")
"""What a function of the user's may ask for."""


class Callee:
    """A function, and which of the things we offer it takes."""

    def __init__(self, function: Callable[..., Any], offered: Sequence[str] = OFFERED) -> None:
        self.function = _instance(function)
        self.is_async = _is_async(self.function) or _is_async(type(self.function).__call__)
        """A call of it only makes a coroutine or an async generator, and so can't block."""
        self._by_place, self._by_name = _taken(self.function, offered)

    @property
    def takes(self) -> tuple[str, ...]:
        """What it wants to be given."""
        return (*self._by_place, *self._by_name)

    def arguments(self, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What to call it with."""
        return [given[name] for name in self._by_place], {name: given[name] for name in self._by_name}


def _instance(function: Any) -> Callable[..., Any]:
    """A class whose instances can be called stands for an instance of it, one for all trials."""
    made = function
    if inspect.isclass(function):
        if "__call__" not in dir(function):
            raise Unusable(f"instances of the class `{function.__name__}` can't be called")
        try:
            made = function()
        except (Exception, SystemExit) as error:
            raise Unusable(f"`{function.__name__}()` raised {type(error).__name__}: {error}") from error
    called: Callable[..., Any] = made
    return called


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _taken(function: Callable[..., Any], offered: Sequence[str]) -> tuple[list[str], list[str]]:
    """Which of the offered things it takes: those by place, and those by name."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise Unusable(f"it can't be seen what it takes: {error}") from error
    by_place: list[str] = []
    by_name: list[str] = []
    for one in parameters:
        if one.kind is one.VAR_KEYWORD:
            by_name = [each for each in offered if each not in by_place]
        elif one.name in offered and one.kind is one.POSITIONAL_ONLY:
            by_place.append(one.name)
        elif one.name in offered and one.kind is not one.VAR_POSITIONAL:
            by_name.append(one.name)
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
            hint = f"it can take {', '.join(offered)}"
            raise Unusable(f"it takes `{one.name}`, which no agent is given", hint, word=one.name, known=offered)
    return by_place, by_name
