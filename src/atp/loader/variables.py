"""Fills in the variables of a file, `${NAME}` and `${NAME:default}`, from the environment."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from yaml.error import Mark
from yaml.nodes import ScalarNode

from atp.base.diagnostics import Diagnostics, Place
from atp.base.secret_values import is_secret
from atp.base.secrets import SHORTEST_SECRET
from atp.loader.source import place_of
from atp.loader.validate import Unfilled
from atp.loader.yaml.nodes import Dollar, Parsed, read_plain
from atp.suite.record import Defaulted, Filled

_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
"""A default may hold braces in pairs, as mappings are written: `${BOX:{a: {b: 1}}}`."""
_USE = re.compile(rf"\$\$\{{|\$\{{(?:([A-Za-z_][A-Za-z0-9_]*)(?::((?:[^{{}}]|{_BRACES}|\{{)*))?\}})?")
_SHELL_DEFAULT = re.compile(r"-(?![\d.])\S")
"""A default that a shell would write so; `-1` may be a number."""

Defaulted.read = staticmethod(read_plain)


def _secrets_in(value: str) -> Iterator[str]:
    """A secret and, if it may be read as a list or a mapping, each text in it."""
    yield value
    todo = [read_plain(value)] if value.lstrip()[:1] in ("[", "{") else []
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list):
            todo.extend(one.values() if isinstance(one, dict) else one)
        elif len(str(one)) >= SHORTEST_SECRET:
            yield str(one)


@dataclass(slots=True)
class _Uses:
    """The variables of one file."""

    text: str
    env: Mapping[str, str]
    notes: Diagnostics
    first_line: int
    defaults: dict[str, str] = field(default_factory=dict)

    def gather(self, dollar: Dollar) -> None:
        """Collect the defaults. A default given once serves every bare use of the name."""
        for number, use in enumerate(_USE.finditer(dollar.node.value)):
            name, default = use.group(1), use.group(2)
            if name is None or default is None:
                continue
            if _SHELL_DEFAULT.match(default):
                message = f"the default of `{name}` is `{default}`, with the `-`"
                hint = f"a shell writes ${{{name}:-…}}, ATP writes ${{{name}:{default[1:]}}}"
                self.notes.warn("shell-default", message, self.place(dollar, number), hint)
            if is_secret(name, default, dollar.key):
                self.notes.secrets.update(_secrets_in(default))
            if self.defaults.setdefault(name, default) != default and "${" not in default:
                self.notes.error(
                    "conflicting-default",
                    f"`{name}` has two different defaults: `{self.defaults[name]}` and `{default}`",
                    self.place(dollar, number),
                    "give one of them, once",
                )

    def fill(self, dollar: Dollar) -> None:
        """Replace the variables in a value."""
        text: str = dollar.node.value
        only = _USE.fullmatch(text)
        number, noted = count(), len(self.notes)
        filled = _USE.sub(lambda use: self.one(use, next(number), dollar), text)
        is_default = only is not None and only.group(1) in self.defaults and only.group(1) not in self.env
        whole = Filled if only is not None and only.group(1) else str
        kind = Unfilled if len(self.notes) > noted else Defaulted if is_default else whole
        dollar.holder[dollar.key] = kind(filled)

    def one(self, use: "re.Match[str]", number: int, dollar: Dollar) -> str:
        if use.group() == "$${":
            return "${"
        name = use.group(1)
        if name is None:
            self.notes.error(
                "bad-variable",
                "`${` does not begin a variable",
                self.place(dollar, number),
                "write ${NAME} or ${NAME:default}, or $${ for a plain ${",
            )
            return use.group()
        if "${" in (use.group(2) or ""):
            self.notes.error(
                "bad-variable",
                f"the default of `{name}` holds a variable",
                self.place(dollar, number),
                f"write ${{{name}}} or a plain default: one variable cannot stand in for another",
            )
            return use.group()
        value = self.env.get(name, self.defaults.get(name))
        if value is None:
            self.notes.error(
                "missing-variable",
                f"the variable `{name}` is not set",
                self.place(dollar, number),
                f"set {name} in the environment, or give a default: ${{{name}:…}}",
            )
            return use.group()
        if is_secret(name, value, dollar.key):
            self.notes.secrets.update(_secrets_in(value))
        return value

    def place(self, dollar: Dollar, number: int) -> Place:
        """The place of the use with this number in its text."""
        begin, end = dollar.node.start_mark, dollar.node.end_mark
        written = list(_USE.finditer(self.text, begin.index, end.index))
        if len(written) != len(_USE.findall(dollar.node.value)):  # written with escapes
            return place_of(self.text, begin.index, self.first_line)
        return place_of(self.text, written[number].start(), self.first_line)


def fill_variables(parsed: Parsed, text: str, env: Mapping[str, str], notes: Diagnostics) -> frozenset[str]:
    """Fill in all variables of a file, in place. Returns the values that must stay secret."""
    _fill(parsed.dollars, _Uses(text, env, notes, parsed.locator.places.first_line))
    return frozenset(notes.secrets)


def fill_table(table: dict[str, Any], text: str, start: int, env: Mapping[str, str], notes: Diagnostics) -> None:
    """Fill in the variables of a TOML table, in place. The table begins at the offset `start` of its file's text."""
    _fill(list(_dollars_of(table, text, start)), _Uses(text, env, notes, 1))


def _fill(dollars: Sequence[Dollar], uses: _Uses) -> None:
    for dollar in dollars:
        uses.gather(dollar)
    for dollar in dollars:
        uses.fill(dollar)


def _dollars_of(value: Any, text: str, start: int) -> Iterator[Dollar]:
    """The texts with a dollar sign in a value. tomllib keeps no places: each text is looked up where it is written."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(item, str) and "$" in item:
            found = text.find(item, start)
            begin, end = (found, found + len(item)) if found >= 0 else (start, start)
            yield Dollar(value, key, ScalarNode("", item, _mark(begin), _mark(end)))
        yield from _dollars_of(item, text, start)


def _mark(index: int) -> Mark:
    return Mark("", index, 0, 0, None, 0)
