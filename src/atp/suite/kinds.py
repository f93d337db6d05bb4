"""Kinds: which types of assertion and agent there are, and the shape of each.

A kind is registered by a decorator or found by its entry point, ours and a plugin's in the same way. The shapes live in
`suite/` so that a file can be checked before anything runs; what a kind *does* is loaded when a plan needs it.
"""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, get_args

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

Kind = TypeVar("Kind", bound=BaseModel)


class Kinds(Generic[Kind]):
    """The shapes of one family, by the `type` a file gives.

    In an `Annotated` type it stands for "one of these, told apart by `type`".
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.shapes: dict[str, type[Kind]] = {}
        self._on_change: list[Callable[[], object]] = []
        self._discovered = False

    def register(self, shape: type[Kind]) -> type[Kind]:
        """A decorator: this class is the shape of the kind that its `type` field names."""
        (name,) = get_args(shape.model_fields["type"].annotation)
        self.shapes[name] = shape
        for tell in self._on_change:
            tell()
        return shape

    def discover(self) -> None:
        """Load all plugins of this family. Looking for them takes time, so only an unknown `type` asks for it."""
        if not self._discovered:
            self._discovered = True
            for entry in entry_points(group=self.group):
                entry.load()

    def on_change(self, tell: Callable[[], object]) -> None:
        """Have `tell` called when a kind is added, to build again what holds the shapes."""
        self._on_change.append(tell)

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(shape) for name, shape in self.shapes.items()}
        return core_schema.tagged_union_schema(choices, discriminator="type")
