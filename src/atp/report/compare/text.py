"""A comparison as lines for a terminal: the verdict in sentences first, then the cases."""

from collections.abc import Iterator

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
    tally_text,
)
from atp.stats.comparison import CaseComparison, Comparison

MOST_LISTED = 10
"""Cases of a group that are listed, unless all are asked for."""
_LOOKS = {"regressed": "failed", "improved": "passed", "changed": "error"}


def comparison_lines(comparison: Comparison, hide: Hide, *, verbose: bool = False) -> Iterator[Line]:
    """The lines; `verbose` lists every case of each group."""
    look = "failed" if comparison.has_regressed else "title"
    for number, sentence in enumerate(sentences(comparison)):
        yield f"  {one_line(hide(sentence), 500)}", look if not number else ""
    yield f"  A: {one_line(hide(side_text(comparison.a)), 300)}", "detail"
    yield f"  B: {one_line(hide(side_text(comparison.b)), 300)}", "detail"
    several = len({case.agent for case in comparison.cases}) > 1
    for title, kind, cases in groups(comparison):
        yield "", ""
        yield f"  {title} ({len(cases)}):", _LOOKS.get(kind, "title")
        shown = cases if verbose else cases[:MOST_LISTED]
        yield from _rows([_cells(case, hide, name_agent=several) for case in shown])
        if len(shown) < len(cases):
            yield f"    … and {len(cases) - len(shown):,} more", "detail"
    if comparison.in_error:
        yield "", ""
        yield f"  Runs without a verdict ({len(comparison.in_error)}):", "error"
        named = comparison.in_error if verbose else comparison.in_error[:MOST_LISTED]
        yield from _rows([(_label(case, hide, name_agent=several), error_text(case)) for case in named])
        if len(named) < len(comparison.in_error):
            yield f"    … and {len(comparison.in_error) - len(named):,} more", "detail"
    if figures := moved_figures(comparison):
        yield "", ""
        yield "  Figures (medians of A and B, and how much higher B is, typically):", "title"
        cells = [figure_cells(one) for one in figures]
        yield from _rows([(hide(name), f"{a} → {b}", change, sure) for name, a, b, change, sure in cells])
    for note in comparison.notes:
        yield f"  Note: {one_line(hide(note), 500)}", "error"


def _label(case: CaseComparison, hide: Hide, *, name_agent: bool) -> str:
    agent = f" – {one_line(hide(case.agent), 40)}" if name_agent else ""
    return one_line(hide(case.id), 60) + agent


def _cells(case: CaseComparison, hide: Hide, *, name_agent: bool) -> tuple[str, ...]:
    label = _label(case, hide, name_agent=name_agent)
    if case.why is not None:
        return label, hide(case.why)
    sure = "" if case.p_value is None else p_text(case.p_value)
    return label, f"{tally_text(case.a)} → {tally_text(case.b)}", f"{difference_text(case.difference)} points", sure


def _rows(rows: list[tuple[str, ...]]) -> Iterator[Line]:
    widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(max(map(len, rows)))]
    for row in rows:
        cells = "  ".join(one_line(cell, 300).ljust(width) for cell, width in zip(row, widths, strict=False))
        yield f"    {cells.rstrip()}", "detail"
