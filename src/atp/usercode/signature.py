"""Matches the values that ATP can pass with the parameters of the user's function."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .load import UnusableCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

AGENT_VALUES = ("messages", "prompt", "task", "context", "options", "workspace")
"""The names of the values that an agent's function can take."""


def is_async(function: Any) -> bool:
    """True if a call only makes a coroutine or an async generator, and so can't block."""
    return _is_async(function) or _is_async(getattr(type(function), "__call__", None))  # noqa: B004


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


class Parameters:
    """The offered values that a function takes, by position and by name."""

    def __init__(self, by_position: Sequence[str], by_name: Sequence[str] | Mapping[str, str] = ()) -> None:
        """`by_name` gives the values by the names of their parameters, if they differ from the values' own."""
        self._by_position = by_position
        self._by_name = by_name if isinstance(by_name, dict) else {name: name for name in by_name}
        self.names = (*by_position, *self._by_name.values())
        """The offered values that the function takes."""

    def arguments(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The positional and the named arguments of a call."""
        by_name = {parameter: values[name] for parameter, name in self._by_name.items()}
        return [values[name] for name in self._by_position], by_name


def match_by_name(
    function: Callable[..., Any], offered: Sequence[str], role: str, *, lone: str | None = None
) -> Parameters:
    """Match parameters with offered values of the same name; `**kwargs` takes all that is left.

    `lone` names the value for a function's only required parameter, whatever that is called. Raises `UnusableCode` if
    a required parameter matches none. `role` is how the message calls the function.
    """
    by_position: list[str] = []
    by_name: dict[str, str] = {}
    parameters = _parameters(function)
    is_lone = lone is not None and sum(map(_is_required, parameters)) == 1
    for one in parameters:
        value = lone if is_lone and lone and _is_required(one) and one.name not in offered else one.name
        if one.kind is one.VAR_KEYWORD:
            by_name |= {each: each for each in offered if each not in (*by_position, *by_name.values())}
        elif value in offered and one.kind is one.POSITIONAL_ONLY:
            by_position.append(value)
        elif value in offered and one.kind is not one.VAR_POSITIONAL:
            by_name[one.name] = value
        elif _is_required(one):
            raise _not_offered(one.name, offered, role)
    return Parameters(by_position, by_name)


def match_in_order(function: Callable[..., Any], offered: Sequence[str], role: str) -> Parameters:
    """Match by name if every parameter has the name of an offered value, else by position, in the offered order.

    Raises `UnusableCode` if the function takes more than is offered.
    """
    try:
        parameters = _parameters(function)
    except UnusableCode:  # some built-in functions have no signature
        return Parameters(offered)
    plain = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY)]
    if len(plain) == len(parameters) and all(one.name in offered for one in plain):
        return Parameters((), [one.name for one in plain])
    taken: list[str] = []
    rest = list(offered)
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            taken += rest
            break
        optional = one.default is not one.empty or one.kind is one.VAR_KEYWORD
        if optional and one.name not in offered:
            break
        if not rest or one.kind is one.KEYWORD_ONLY:
            raise _not_offered(one.name, offered, role)
        taken.append(rest.pop(0))
    return Parameters(taken)


def required(function: Callable[..., Any]) -> list[str]:
    """The names of a function's required parameters."""
    try:
        parameters = _parameters(function)
    except UnusableCode:
        return []
    return [one.name for one in parameters if _is_required(one)]


def _is_required(one: inspect.Parameter) -> bool:
    return one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)


def takes_any(function: Callable[..., Any]) -> bool:
    """True if a function has a parameter."""
    return bool(_parameters(function))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UnusableCode(f"its parameters can't be found out: {error}") from error


def wrap(made: str, cls: type) -> str:
    """The hint for an object that is not called itself: the function to write. `made` is how it is got: `Desk()`."""
    methods = [name for name, one in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")]
    method = methods[0] if len(methods) == 1 else "run"
    return f"wrap it: write `def answer(messages): return {made}.{method}(messages)`, and name that function"


def _is_method(function: Any) -> bool:
    """True for a function that was taken from a class, and so lacks its first argument."""
    return inspect.isfunction(function) and required(function)[:1] == ["self"]


def _not_offered(name: str, offered: Sequence[str], role: str) -> UnusableCode:
    message = f"it takes `{name}`; {role} is given, by name, {', '.join(offered)}"
    return UnusableCode(message, word=name, known=offered)


class Callee:
    """The callable of an agent: a function, a callable object, or a class with an instance for each conversation."""

    def __init__(self, entry: Any, offered: Sequence[str] = AGENT_VALUES) -> None:
        """Raises `UnusableCode`."""
        self._class: Any = None
        self._instances: dict[str, Callable[..., Any]] = {}
        self._unused: list[Callable[..., Any]] = []
        function: Any = entry
        if inspect.isclass(entry):
            if "__call__" not in dir(entry):
                text = f"instances of the class `{entry.__name__}` can't be called"
                raise UnusableCode(text, wrap(f"{entry.__name__}()", entry))
            self._class = entry
            # Made now, so that an error is found before anything runs. The first conversation gets this instance.
            try:
                function = entry()
            except (Exception, SystemExit) as error:
                raise UnusableCode(f"`{entry.__name__}()` raised {type(error).__name__}: {error}") from error
            self._unused.append(function)
        elif _is_method(entry):
            cls, _, method = entry.__qualname__.rpartition(".")
            text = f"it takes `self`: it is a method of the class `{cls}`, and there is no object to call it on"
            code = f"def answer(messages): return {cls}().{method}(messages)"
            raise UnusableCode(text, f"wrap it: write `{code}`, and name that function")
        self._function: Callable[..., Any] = function
        self.parameters = match_by_name(function, offered, "an agent", lone="prompt")
        self.is_async = is_async(function)
        """True if a call can't block. So it is for every instance of a class."""

    def find(self, conversation: str) -> Callable[..., Any] | None:
        """The callable of a conversation. None if an instance has to be made first."""
        if self._class is None:
            return self._function
        return self._instances.get(conversation)

    def make(self, conversation: str) -> Callable[..., Any]:
        """Make the instance of a conversation. Runs the user's code, which may block."""
        instance = self._unused.pop() if self._unused else self._class()
        self._instances[conversation] = instance
        return instance

    def end(self, conversation: str) -> None:
        """Drop the instance of a conversation."""
        self._instances.pop(conversation, None)
