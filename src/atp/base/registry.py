"""One registry for every family of plugins: kinds of check, kinds of agent, types of model, reporters.

A built-in is listed as `name → "module:Class"`, the form of an entry point, and is loaded like one: when its name is
first asked for. A plugin registers its class by a decorator, or names the class in an entry point of the group.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

from atp.base.errors import Error

Plugin = TypeVar("Plugin")
Registered = TypeVar("Registered")


class PluginError(Error):
    """A plugin that can't be loaded, or that is not what its entry point says."""


class BrokenPlugin(NamedTuple):
    """An entry point that could not be loaded."""

    name: str
    """The name of the entry point."""
    package: str
    """The distribution that it comes from."""
    reason: str
    """What loading the entry point raised."""


class Registry(Generic[Plugin]):
    """The members of one family by name: the built-in ones, and those that plugins add."""

    def __init__(self, group: str, built_in: Mapping[str, str], names_of: Callable[[Any], Iterable[str]]) -> None:
        """`group` is the group of entry points, `built_in` has the places of our own members by name.

        `names_of` gives the names that a class says it goes by. It may raise `PluginError`.
        """
        self.group = group
        self.packages: dict[str, str] = {}
        """The distribution that each plugin comes from, by the plugin's name, as far as plugins were discovered."""
        self.broken: list[BrokenPlugin] = []
        """The entry points that could not be loaded."""
        self._built_in = dict(built_in)
        self._members: dict[str, Any] = {}
        self._names_of = names_of
        self._discovered = False

    def register(self, plugin: Registered) -> Registered:
        """Add a class under the names that it goes by. Usable as a decorator."""
        self._members |= dict.fromkeys(self._names_of(plugin), plugin)
        return plugin

    def unregister(self, *names: str) -> None:
        """Forget what was registered under these names. A built-in of the same name is found again."""
        for name in names:
            self._members.pop(name, None)

    def find(self, name: str) -> Plugin | None:
        """The member of this name, loaded when it is asked for the first time.

        Plugins are discovered only for a name that is not known otherwise, because discovery takes time.
        """
        if name not in self._members:
            if name in self._built_in:
                self._members[name] = EntryPoint(name, self._built_in[name], self.group).load()
            else:
                self._discover_for(name)
        found: Plugin | None = self._members.get(name)
        return found

    def _discover_for(self, name: str) -> None:
        """Discover the plugins. Raises `PluginError` if none is called `name` and one of them could not be loaded."""
        self.discover()
        if name not in self._members and self.broken:
            broken = self.broken[0]
            raise PluginError(
                f"the plugin `{broken.name}` of the package {broken.package} can't be loaded: {broken.reason}",
                f"fix the package {broken.package}, or uninstall it",
            )

    def discover(self) -> None:
        """Load the plugins of all installed packages, once."""
        if self._discovered:
            return
        self._discovered = True
        for entry in sorted(entry_points(group=self.group)):
            package = entry.dist.name if entry.dist is not None else entry.value
            known = set(self._members)
            try:
                loaded = entry.load()
                if not isinstance(loaded, ModuleType):  # a module registers its classes itself, by the decorator
                    self.register(loaded)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                self.broken.append(BrokenPlugin(entry.name, package, reason))
            self.packages |= dict.fromkeys(self._members.keys() - known, package)

    def is_built_in(self, name: str, member: object) -> bool:
        """Whether a member is our own of this name, and not a plugin's that took the name."""
        return name in self._built_in and getattr(member, "__module__", "") == self._built_in[name].partition(":")[0]

    @property
    def names(self) -> list[str]:
        """All names that are known: the built-in ones in their order, then those that were registered."""
        return [*self._built_in, *(name for name in self._members if name not in self._built_in)]

    def __str__(self) -> str:
        """The names in alphabetical order, for a message."""
        return ", ".join(f"`{name}`" for name in sorted(self.names))
