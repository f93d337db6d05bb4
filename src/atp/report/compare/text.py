"""A comparison as lines for a terminal: the verdict in sentences first, then the cases."""

from collections.abc import Iterator
from typing import NamedTuple

from atp.base.secrets import Hide
from atp.base.text import Line, one_line
from atp.report.compare.words import (
    difference_text,
    error_text,
    figure_cells,
    groups,
    moved_figures,
    p_text,
    sentences,
    side_text,
    tallies_text,
)
from atp.stats.comparison import CaseComparison, Comparison

MOST_LISTED = 10
"""Cases of a group that are listed, unless all are asked for."""
_LOOKS = {"regressed": "failed", "improved": "passed", "changed": "error", "quarantined": "other", "errors": "error"}


def comparison_lines(comparison: Comparison, hide: Hide, *, verbose: bool = False) -> Iterator[Line]:
    """The lines; `verbose` lists every case of each group."""
    look = "failed" if comparison.has_regressed else "title"
    for number, sentence in enumerate(sentences(comparison)):
        yield f"  {one_line(hide(sentence), 500)}", look if not number else ""
    yield f"  A: {one_line(hide(side_text(comparison.a)), 300)}", "detail"
    yield f"  B: {one_line(hide(side_text(comparison.b)), 300)}", "detail"
    for table in comparison_tables(comparison, hide, verbose=verbose):
        yield "", ""
        yield f"  {table.title}:", _LOOKS.get(table.kind, "title")
        yield from _lines(table.rows)
        if table.more:
            yield f"    … and {table.more:,} more", "detail"
    for note in comparison.notes:
        yield f"  Note: {one_line(hide(note), 500)}", "error"


class ComparisonTable(NamedTuple):
    """A part of a comparison: cases of a class, runs without a verdict, or figures."""

    title: str
    """What the rows are, and how many there are."""
    kind: str
    """The class of the cases; `errors`, `figures`."""
    rows: list[tuple[str, ...]]
    """The name of a case or of a figure, then its cells."""
    more: int = 0
    """Rows that are left out."""


def comparison_tables(comparison: Comparison, hide: Hide, *, verbose: bool = False) -> Iterator[ComparisonTable]:
    """The tables below the sentences; `verbose` lists every case of each."""
    several = len({case.agent for case in comparison.cases}) > 1
    most = None if verbose else MOST_LISTED
    for title, kind, cases in groups(comparison):
        rows = [_cells(case, hide, name_agent=several) for case in cases[:most]]
        yield ComparisonTable(f"{title} ({len(cases)})", kind, rows, len(cases) - len(rows))
    if errors := comparison.in_error:
        rows = [(_label(case, hide, name_agent=several), error_text(case)) for case in errors[:most]]
        yield ComparisonTable(f"Runs without a verdict ({len(errors)})", "errors", rows, len(errors) - len(rows))
    if figures := moved_figures(comparison):
        cells = [figure_cells(one) for one in figures]
        rows = [(hide(name), f"{a} → {b}", change, sure) for name, a, b, change, sure in cells]
        yield ComparisonTable("Figures (medians of A and B, and how much higher B is, typically)", "figures", rows)


def _label(case: CaseComparison, hide: Hide, *, name_agent: bool) -> str:
    agent = f" – {one_line(hide(case.agent), 40)}" if name_agent else ""
    return one_line(hide(case.id), 60) + agent


def _cells(case: CaseComparison, hide: Hide, *, name_agent: bool) -> tuple[str, ...]:
    label = _label(case, hide, name_agent=name_agent)
    if case.why is not None:
        return label, tallies_text(case), hide(case.why)
    sure = "" if case.p_value is None else p_text(case.p_value)
    return label, tallies_text(case), f"{difference_text(case.difference)} points", sure


def _lines(rows: list[tuple[str, ...]]) -> Iterator[Line]:
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(max(map(len, rows)))]
    for row in rows:
        cells = "  ".join(one_line(cell, 300).ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"    {cells.rstrip()}", "detail"
