"""From what a configuration names to something that can be called for a turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..load import find_name, load_place
from ..signature import Callee
from ..unusable import Unusable


def make(spec: dict[str, Any]) -> Callee:
    """The agent that a spec names: `kind`, `place`, `name` (or none), `folders`. Raises `Unusable`."""
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
        raise Unusable(f"`{place}:{name}` is not a function", f"it is of type {type(found).__name__}")
    return Callee(found)
