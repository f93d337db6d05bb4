"""Loads an agent of any kind from the user's code. Has what the drivers of the frameworks share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..load import UnusableCode, find_name, load_place
from ..signature import Callee, required, wrap

PROMPT_KEYS = ("prompt", "input", "question", "query", "user_input", "task", "text", "message", "topic")
"""Keys that take the prompt in agents whose state has a schema, in the order of preference."""


class AgentFinder:
    """Finds the agent of a framework in a module."""

    def __init__(self, singular: str, plural: str, hint: str, factory_words: Sequence[str]) -> None:
        self.singular = singular
        """The framework's word for an agent."""
        self.plural = plural
        """The plural of `singular`."""
        self.hint = hint
        """How the user names an agent in the configuration."""
        self.factory_words = factory_words
        """Words in the names of functions that make an agent."""

    def find(
        self,
        place: str,
        name: str | None,
        folders: Sequence[Path],
        kinds: Sequence[Callable[[Any, ModuleType], bool]],
    ) -> Any:
        """The value of `name` in the module at a place. Raises `UnusableCode`.

        Without a name, the only value of the first of the `kinds` that has any in the module, else the only function
        whose name says that it makes an agent.
        """
        module = load_place(place, folders)
        if name is not None:
            return find_name(module, name, place)
        public = {key: value for key, value in vars(module).items() if not key.startswith("_")}
        groups = [{key: value for key, value in public.items() if is_kind(value, module)} for is_kind in kinds]
        groups.append({key: value for key, value in public.items() if self._is_factory(key, value, module)})
        for found in groups:
            if len({id(value) for value in found.values()}) == 1:
                return next(iter(found.values()))
            if found:
                names = ", ".join(sorted(found))
                raise UnusableCode(f"there are {len(found)} {self.plural} in {place}: {names}", self.hint)
        raise UnusableCode(f"there is no {self.singular} in {place}", f"{self.hint}, or the function that makes it")

    def _is_factory(self, name: str, value: Any, module: ModuleType) -> bool:
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        return own and any(word in name.lower() for word in self.factory_words)


def make(spec: dict[str, Any]) -> Callee:
    """Load the agent of a spec with `kind`, `place`, `name` (or None) and `folders`. Raises `UnusableCode`."""
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
        hint = f"it is of type {type(found).__name__}"
        if type(found).__module__ != "builtins":
            hint = f"{hint}; {wrap(name, type(found))}"
        raise UnusableCode(f"`{place}:{name}` is not a function", hint)
    return Callee(found)


def check_factory(function: Callable[..., Any], name: str, singular: str) -> None:
    """Check that a function can be called to make an agent. Raises `UnusableCode`."""
    parameters = required(function)
    if len(parameters) > 1:
        raise UnusableCode(
            f"`{name}` makes no {singular}: it takes {', '.join(f'`{each}`' for each in parameters)}",
            f"name the {singular} itself, or a function that takes nothing or the configuration and returns it",
        )
