"""Diagnostics for people: the message, the line it is about, a caret below the spot."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

import click

from atp.loader.diagnostics import Diagnostic

WIDEST = 100
"""How much of a source line is shown."""
_COLOURS = {"error": "red", "warning": "yellow"}


def render(diagnostics: Iterable[Diagnostic], colour: bool) -> str:
    """All of them, a paragraph each."""
    lines = _SourceLines()
    return "\n\n".join(_one(diagnostic, lines, colour) for diagnostic in diagnostics)


def summary(files: int, cases: int, diagnostics: Iterable[Diagnostic]) -> str:
    """One line that counts."""
    errors = warnings = 0
    for one in diagnostics:
        errors, warnings = errors + (one.severity == "error"), warnings + (one.severity == "warning")
    counts = [count(files, "file"), count(cases, "case"), count(errors, "error"), count(warnings, "warning")]
    return ", ".join(counts)


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _one(diagnostic: Diagnostic, lines: "_SourceLines", colour: bool) -> str:
    paint = _COLOURS[diagnostic.severity] if colour else None
    where = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}" if diagnostic.file else "-"
    head = click.style(f"{diagnostic.severity}[{diagnostic.code}]", fg=paint, bold=colour)
    parts = [f"{head}: {printable(diagnostic.message)}", f"  --> {printable(where)}"]
    source = lines.line(diagnostic.file, diagnostic.line)
    if source:
        shown, indent = _window(source, diagnostic.column)
        number = str(diagnostic.line)
        parts.append(f"{number} | {shown}")
        parts.append(f"{' ' * len(number)} | {' ' * indent}{click.style('^', fg=paint, bold=colour)}")
    if diagnostic.hint:
        parts.append(f"  help: {printable(diagnostic.hint)}")
    return "\n".join(parts)


def _window(source: str, column: int) -> tuple[str, int]:
    """The part of a line around a column, and how far in the column then stands on the screen."""
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
    """The lines of the files that diagnostics are about, each file read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def line(self, file: str | None, number: int) -> str:
        if file is None:
            return ""
        if file not in self._files:
            self._files[file] = _read_lines(Path(file))
        lines = self._files[file]
        return lines[number - 1] if number <= len(lines) else ""


def _read_lines(path: Path, most: int = 64 * 2**20) -> list[str]:
    if not path.is_file():
        return []
    try:
        with path.open("rb") as file:
            text = file.read(most).decode("utf-8-sig", "replace")
    except OSError:
        return []
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
