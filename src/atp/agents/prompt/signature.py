"""The signature of a Python function as a JSON Schema for a model, and the check of a model's arguments."""

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from typing_extensions import TypedDict  # pydantic takes typing's own only from Python 3.12 on

from atp.base.errors import ConfigurationError

OURS = ("context", "workspace")
"""Parameters that ATP fills in. The model does not see them."""
_SECTION = re.compile(r"(?:args|arguments|parameters|params):?", re.IGNORECASE)
_NEXT_SECTION = re.compile(r"\w[\w ]*:")
_ITEM = re.compile(r"(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)")
_FIELD = re.compile(r":param\s+(?:[^:\s]+\s+)?(\w+):\s*(.*)")


class BadArguments(Exception):
    """Arguments that do not fit the function. The message says which and why."""


class Signature:
    """The parameters of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises `ConfigurationError` for a function that can't be described to a model."""
        self.description, about = read_docstring(inspect.getdoc(function) or "")
        parameters = _parameters(function)
        self.takes = tuple(name for name in OURS if name in parameters)
        """Those of `OURS` that the function takes."""
        self._by_place = [one.name for one in parameters.values() if one.kind is one.POSITIONAL_ONLY]
        hints = _hints(function)
        fields = {
            name: _field(one, hints.get(name, Any), about.get(name))
            for name, one in parameters.items()
            if name not in OURS and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        }
        is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        self._arguments, self.schema = _adapter(fields, is_open)

    def read(self, arguments: dict[str, Any], ours: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a call. Raises `BadArguments`."""
        if reserved := [name for name in self.takes if name in arguments]:
            raise BadArguments(f"`{reserved[0]}` is not a parameter")
        try:
            given = dict(self._arguments.validate_python(arguments))
        except ValidationError as error:
            raise BadArguments("; ".join(_reason(one) for one in error.errors(include_url=False))) from error
        given |= ours
        return [given.pop(name) for name in self._by_place if name in given], given


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"it can't be seen what it takes: {error}") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except Exception as error:  # evaluating hints runs any code
        raise ConfigurationError(f"its type hints can't be read: {type(error).__name__}: {error}") from error


def _field(parameter: inspect.Parameter, hint: Any, about: str | None) -> Any:
    shown = Annotated[hint, Field(description=about)] if about else hint
    return shown if parameter.default is parameter.empty else NotRequired[shown]


def _adapter(fields: dict[str, Any], is_open: bool) -> tuple["TypeAdapter[Any]", dict[str, Any]]:
    # A TypedDict, not a model: keys may have any name, `json` or `copy` too.
    make: Any = TypedDict
    shape = make("Arguments", fields)
    shape.__pydantic_config__ = ConfigDict(extra="allow" if is_open else "forbid")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(shape)
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        why = str(error).partition("\n")[0]
        raise ConfigurationError(f"its parameters can't be described to a model: {why}") from error
    return adapter, _tidy(schema)


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove the titles that pydantic makes from names: a model learns nothing from them."""
    for one in [schema, *schema.get("properties", {}).values()]:
        one.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _reason(error: Any) -> str:
    where = ".".join(str(step) for step in error["loc"])
    return f"`{where}`: {error['msg']}" if where else str(error["msg"])


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says about the function, and about each parameter (`Args:` or `:param x:`)."""
    lines = text.split("\n")
    start = next((n for n, line in enumerate(lines) if _SECTION.fullmatch(line) or _FIELD.match(line)), len(lines))
    about: dict[str, str] = {}
    name, indent = "", 0
    for line in lines[start:]:
        item = _ITEM.fullmatch(line)
        if found := _FIELD.fullmatch(line):
            name, indent = found[1], 0
            about[name] = found[2]
        elif item and (not name or len(item[1]) <= indent):
            name, indent = item[2], len(item[1])
            about[name] = item[3]
        elif _NEXT_SECTION.fullmatch(line) or line[:1] == ":":
            name = "" if _SECTION.fullmatch(line) else "-"
            indent = 0
        elif name in about and line.strip():
            about[name] = f"{about[name]} {line.strip()}".strip()
    return "\n".join(lines[:start]).strip(), about
