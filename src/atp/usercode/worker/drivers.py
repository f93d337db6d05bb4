"""What the drivers of frameworks share: finding the agent in a module, making it, and calling what blocks."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..load import find_name, load_place
from ..unusable import Unusable


class Sought:
    """What a framework calls an agent, and how one is told from all else in a module."""

    def __init__(self, one: str, several: str, hint: str, makers: Sequence[str]) -> None:
        self.one = one
        """What it is called."""
        self.several = several
        """What two of them are called."""
        self.hint = hint
        """How a user names the one that is meant."""
        self.makers = makers
        """Words in the names of functions that make one."""

    def find(
        self,
        place: str,
        name: str | None,
        folders: Sequence[Path],
        kinds: Sequence[Callable[[Any, ModuleType], bool]],
    ) -> Any:
        """What a place calls so. Without a name, the only one there is. Raises `Unusable`.

        That is the only thing of the first of the `kinds` that there is anything of; else the only function that makes
        one, by its name.
        """
        module = load_place(place, folders)
        if name is not None:
            return find_name(module, name, place)
        public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
        groups = [{key: value for key, value in public.items() if is_kind(value, module)} for is_kind in kinds]
        groups.append({key: value for key, value in public.items() if self._makes(key, value, module)})
        for found in groups:
            if len({id(value) for value in found.values()}) == 1:
                return next(iter(found.values()))
            if found:
                names = ", ".join(sorted(found))
                raise Unusable(f"there are {len(found)} {self.several} in {place}: {names}", self.hint)
        raise Unusable(f"there is no {self.one} in {place}", f"{self.hint}, or the function that makes it")

    def _makes(self, name: str, value: Any, module: ModuleType) -> bool:
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        return own and any(word in name.lower() for word in self.makers)


def wants_argument(function: Callable[..., Any]) -> bool:
    """Whether a function can't be called without one."""
    return bool(_wanted(function))


def check_maker(function: Callable[..., Any], name: str, one: str) -> None:
    """See that something that is to make an agent can be called for that. Raises `Unusable`."""
    wanted = _wanted(function)
    if len(wanted) > 1:
        raise Unusable(
            f"`{name}` makes no {one}: it takes {', '.join(f'`{each}`' for each in wanted)}",
            f"name the {one} itself, or a function that takes nothing or the configuration and returns it",
        )


def _wanted(function: Callable[..., Any]) -> list[str]:
    """What a function must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # one that is not written in Python
        return []
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one.name for one in parameters if one.default is one.empty and one.kind not in kinds]


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call what may block in a thread, in the same context."""
    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(None, context.run, function)
