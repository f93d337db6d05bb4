"""Files with marks in them: `«code»` stands right before the place where that diagnostic is expected."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from atp.loader import Diagnostic, Loaded
from atp.loader.load import FileDialect, load_text
from atp.loader.source import LoadContext

_MARK = re.compile(r"«(?:(warning):)?([a-z0-9-]+)»")


class Expected(NamedTuple):
    """A diagnostic as a mark describes it."""

    line: int
    column: int
    code: str
    severity: str

    @classmethod
    def of(cls, one: Diagnostic) -> "Expected":
        return cls(one.line, one.column, one.code, one.severity)


def unmark(marked: str) -> tuple[str, list[Expected]]:
    """The text without its marks, and what they say."""
    text = ""
    expected: list[Expected] = []
    end = 0
    for mark in _MARK.finditer(marked):
        text += marked[end : mark.start()]
        end = mark.end()
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        expected.append(Expected(line, column, mark.group(2), mark.group(1) or "error"))
    return text + marked[end:], sorted(expected)


@pytest.fixture
def expect() -> Callable[..., Loaded]:
    """Loads a text with marks and checks that the diagnostics are exactly the marked ones."""

    def load(
        marked: str,
        dialect: FileDialect | None = None,
        *,
        env: Mapping[str, str] | None = None,
        agent: bool = False,
        simulator: bool = False,
    ) -> Loaded:
        text, expected = unmark(marked)
        given = LoadContext(env=env or {}, agent=agent, simulator=simulator)
        loaded = load_text(text, dialect, given)
        found = sorted(Expected.of(one) for one in loaded.diagnostics)
        assert found == expected, "\n".join(f"{one.line}:{one.column} {one.message}" for one in loaded.diagnostics)
        return loaded

    return load
