"""Variables in a file: `${NAME}` and `${NAME:default}`, filled in from the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from atp.loader.diagnostics import Diagnostics
from atp.loader.yaml_nodes import Dollar, Parsed, read_plain
from atp.suite.record import Defaulted, Place

_USE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\})?")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
SHORTEST_SECRET = 6
"""Shorter values are not masked: they would blacken harmless text."""

Defaulted.read = staticmethod(read_plain)


def is_secret(name: str, value: str) -> bool:
    """Whether the value of a variable so named must not be shown."""
    return len(value) >= SHORTEST_SECRET and bool(_SECRET_NAME.search(name))


@dataclass(slots=True)
class _Uses:
    """The variables of one file."""

    text: str
    env: Mapping[str, str]
    notes: Diagnostics
    first_line: int
    defaults: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)

    def gather(self, dollar: Dollar) -> None:
        """A default given once serves every bare use of the name."""
        for use in _USE.finditer(dollar.node.value):
            name, default = use.group(1), use.group(2)
            if name is None or default is None:
                continue
            if self.defaults.setdefault(name, default) != default:
                self.notes.error(
                    "conflicting-default",
                    f"`{name}` has two different defaults: `{self.defaults[name]}` and `{default}`",
                    self.place(dollar, use.group()),
                    "give one of them, once",
                )

    def fill(self, dollar: Dollar) -> None:
        """Put the variables' values where they are used."""
        text: str = dollar.node.value
        only = _USE.fullmatch(text)
        if only and only.group(1) and only.group(1) not in self.env and only.group(1) in self.defaults:
            dollar.holder[dollar.key] = Defaulted(self.defaults[only.group(1)])
            return
        dollar.holder[dollar.key] = _USE.sub(lambda use: self.one(use, dollar), text)

    def one(self, use: "re.Match[str]", dollar: Dollar) -> str:
        if use.group() == "$${":
            return "${"
        name = use.group(1)
        if name is None:
            self.notes.error(
                "bad-variable",
                "`${` does not begin a variable",
                self.place(dollar, use.group(), use.start()),
                "write ${NAME} or ${NAME:default}, or $${ for a plain ${",
            )
            return use.group()
        value = self.env.get(name, self.defaults.get(name))
        if value is None:
            self.notes.error(
                "missing-variable",
                f"the variable `{name}` is not set",
                self.place(dollar, use.group(), use.start()),
                f"set {name} in the environment, or give a default: ${{{name}:…}}",
            )
            return use.group()
        if is_secret(name, value):
            self.secrets.add(value)
        return value

    def place(self, dollar: Dollar, use: str, start: int = 0) -> Place:
        """Where a use stands: in the text of its value, so that two in one string are told apart."""
        begin, end = dollar.node.start_mark, dollar.node.end_mark
        at = self.text.find(use, begin.index + start, end.index)
        at = at if at >= 0 else self.text.find(use, begin.index, end.index)
        if at < 0:
            return Place(begin.line + self.first_line, begin.column + 1)
        return Place(self.first_line + self.text.count("\n", 0, at), at - self.text.rfind("\n", 0, at))


def fill_variables(parsed: Parsed, text: str, env: Mapping[str, str], notes: Diagnostics) -> frozenset[str]:
    """Fill in all variables of a file, in place. Returns the values that must stay secret."""
    uses = _Uses(text, env, notes, parsed.locator.first_line)
    for dollar in parsed.dollars:
        uses.gather(dollar)
    for dollar in parsed.dollars:
        uses.fill(dollar)
    return frozenset(uses.secrets)
