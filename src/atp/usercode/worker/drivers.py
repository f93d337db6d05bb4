"""Finds an agent in the user's code by its kind, and what the drivers of frameworks share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..load import UnusableCode, find_name, load_place
from ..signature import Callee, required

PROMPT_KEYS = ("prompt", "input", "question", "query", "user_input", "task", "text", "message", "topic")
"""Names under which agents with a state of their own shape take the prompt, in the order of preference."""


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
        """What a place calls so. Without a name, the only one there is. Raises `UnusableCode`.

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
                raise UnusableCode(f"there are {len(found)} {self.several} in {place}: {names}", self.hint)
        raise UnusableCode(f"there is no {self.one} in {place}", f"{self.hint}, or the function that makes it")

    def _makes(self, name: str, value: Any, module: ModuleType) -> bool:
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        return own and any(word in name.lower() for word in self.makers)


def make(spec: dict[str, Any]) -> Callee:
    """Make the agent that a spec names: `kind`, `place`, `name` (or none), `folders`. Raises `UnusableCode`."""
    place, name = spec["place"], spec["name"]
    folders = [Path(folder) for folder in spec["folders"]]
    if spec["kind"] == "langgraph":
        from .langgraph_driver import make_langgraph

        return make_langgraph(place, name, folders)
    if spec["kind"] == "crewai":
        from .crewai_driver import make_crewai

        return make_crewai(place, name, folders)
    found = find_name(load_place(place, folders), name, place)
    if not callable(found):
        raise UnusableCode(f"`{place}:{name}` is not a function", f"it is of type {type(found).__name__}")
    return Callee(found)


def check_maker(function: Callable[..., Any], name: str, one: str) -> None:
    """Check that something can be called to make an agent. Raises `UnusableCode`."""
    wanted = required(function)
    if len(wanted) > 1:
        raise UnusableCode(
            f"`{name}` makes no {one}: it takes {', '.join(f'`{each}`' for each in wanted)}",
            f"name the {one} itself, or a function that takes nothing or the configuration and returns it",
        )
