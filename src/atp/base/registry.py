"""Makers: who makes the thing that a `type` names. Ours and a plugin's are registered in the same way.

A maker is a class or a function, or the place of one, which loads when it is needed for the first time.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Generic, TypeVar

Maker = TypeVar("Maker", bound=Callable[..., Any])


class Makers(dict[str, Maker | str], Generic[Maker]):
    """The makers of one family, or their places (`package.module:Name`), by the `type` that files give."""

    def find(self, kind: str, discover: Callable[[], object]) -> Maker | None:
        """The maker of this kind, if there is one.

        `discover` loads the plugins, which register what they have. Only an unknown kind asks for it.
        """
        if kind not in self:
            discover()
        found = self.get(kind)
        if isinstance(found, str):
            module, _, name = found.partition(":")
            loaded: Maker = getattr(import_module(module), name)
            self[kind] = loaded
            return loaded
        return found

    def __str__(self) -> str:
        """All kinds that there are, for a message."""
        return ", ".join(f"`{kind}`" for kind in sorted(self))
