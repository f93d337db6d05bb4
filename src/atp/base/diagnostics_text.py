"""Renders diagnostics for people: the message, the source line, a caret below the column."""

import os
import unicodedata
from collections.abc import Iterable, Sequence

import click

from atp.base.diagnostics import Diagnostic
from atp.base.numbers import counted
from atp.base.secret_values import blot_out_written
from atp.base.secrets import Hide, current_secrets, secrets_of

WIDEST = 100
"""How much of a source line is shown."""
_PIECE = 1 << 20
_LONGEST = 1 << 25
_COLOURS = {"error": "red", "warning": "yellow"}


def render(diagnostics: Sequence[Diagnostic], colour: bool, secrets: Iterable[str] = ()) -> str:
    """The diagnostics, a paragraph each, without secrets in them and in the source lines."""
    lines, hide = _SourceLines(diagnostics, secrets), secrets_of(secrets).mask_text
    return "\n\n".join(_one(diagnostic, lines, colour, hide) for diagnostic in diagnostics)


def summary(files: int, cases: int, diagnostics: Iterable[Diagnostic]) -> str:
    """One line with the counts of files, cases, errors and warnings."""
    errors = warnings = 0
    for one in diagnostics:
        errors, warnings = errors + (one.severity == "error"), warnings + (one.severity == "warning")
    counts = [counted(files, "file"), counted(cases, "case"), counted(errors, "error"), counted(warnings, "warning")]
    return ", ".join(counts)


def _one(diagnostic: Diagnostic, lines: "_SourceLines", colour: bool, hide: Hide) -> str:
    def paint(text: str) -> str:
        return click.style(text, fg=_COLOURS[diagnostic.severity], bold=True) if colour else text

    head = paint(f"{diagnostic.severity}[{diagnostic.code}]")
    first, *further = hide(diagnostic.message).split("\n  ")  # a message may have a list of things in it
    parts = [f"{head}: {printable(first)}", *(f"  {printable(line)}" for line in further)]
    if diagnostic.file:
        place = current_secrets().mask_text(_place(diagnostic.file, diagnostic.line, diagnostic.column))
        parts.append(f"  --> {printable(hide(place))}")
    source = lines.line(diagnostic.file, diagnostic.line)
    if source:
        shown, indent = _window(source, diagnostic.column)
        number = str(diagnostic.line)
        parts.append(f"{number} | {shown}")
        parts.append(f"{' ' * len(number)} | {' ' * indent}{paint('^')}")
    if diagnostic.hint:
        parts.append(f"  help: {printable(hide(diagnostic.hint))}")
    return "\n".join(parts)


def _place(file: str, line: int, column: int) -> str:
    """The place. A missing file and a name that is no file, such as `<command line>`, have no line."""
    return f"{file}:{line}:{column}" if os.path.exists(file) else file


def _window(source: str, column: int) -> tuple[str, int]:
    """The part of a line around a column, and the column's position on the screen."""
    start = max(0, min(column - 1 - WIDEST // 2, len(source) - WIDEST))
    piece = source[start : start + WIDEST]
    lead, tail = "…" if start else "", "…" if start + WIDEST < len(source) else ""
    before = printable(piece[: column - 1 - start])
    return f"{lead}{printable(piece)}{tail}", len(lead) + sum(map(_width, before))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str) -> str:
    """Text without anything that could take over a terminal; a tab is one blank, so that columns stay true."""
    return "".join(
        " " if one in "\t\n" else one if one.isprintable() or unicodedata.category(one) == "Zs" else "\ufffd"
        for one in text
    )


class _SourceLines:
    """The lines that diagnostics are about: each file is read once, and only those lines are kept."""

    def __init__(self, diagnostics: Iterable[Diagnostic], secrets: Iterable[str]) -> None:
        self._secrets = secrets
        self._wanted: dict[str, set[int]] = {}
        for one in diagnostics:
            if one.file is not None:
                self._wanted.setdefault(one.file, set()).add(one.line)
        self._files: dict[str, dict[int, str]] = {}

    def line(self, file: str | None, number: int) -> str:
        if file is None:
            return ""
        if file not in self._files:
            self._files[file] = _read_lines(file, self._wanted[file])
        # Blotted out, not masked: the line stays as wide as it was, and the caret true.
        line = secrets_of(self._secrets).blot_out(self._files[file].get(number, ""))
        return blot_out_written(current_secrets().blot_out(line))


def _read_lines(file: str, wanted: set[int]) -> dict[int, str]:
    """Some lines of a file by number. Long lines are read in pieces, up to `_LONGEST` characters."""
    lines: dict[int, str] = {}
    if not os.path.isfile(file):
        return lines
    try:
        with open(file, encoding="utf-8-sig", errors="replace") as text:
            number, last, length = 1, max(wanted), 0
            while number <= last and (piece := text.readline(_PIECE)):
                if number in wanted:
                    lines[number] = lines.get(number, "") + piece.rstrip("\n")
                length = 0 if piece.endswith("\n") else length + len(piece)
                if length > _LONGEST:
                    break
                number += piece.endswith("\n")
    except OSError:
        pass  # that it can't be read is what one of the diagnostics says
    return lines
