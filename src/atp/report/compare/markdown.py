"""A comparison as Markdown for a pull request: the verdict, the cases that changed, and the rest folded away.

Names of cases and agents can be neither a table, a link, a mention nor HTML.
"""

from collections.abc import Iterator, Sequence

from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.report.compare.words import (
    difference_text,
    error_text,
    figure_cells,
    groups,
    heading,
    moved_figures,
    p_text,
    sentences,
    side_text,
    tally_text,
)
from atp.report.markdown_text import code, plain, table
from atp.stats.comparison import CaseComparison, Comparison

MOST_LISTED = 50
"""Cases of a group that are listed: GitHub takes no comment of more than 65,536 characters."""
_SIGNS = {"Worse": "❌", "Better": "✅", "The same": "✅", "Nothing could be compared": "⚠️"}
_HEAD = ("Case", "A", "B", "Points", "How sure")
_OPEN = ("regressed", "improved")
"""Classes that are not folded away."""


def comparison_markdown(comparison: Comparison, hide: Hide, *, level: int = 2) -> list[str]:
    """The lines; `level` is that of the heading."""
    title = heading(comparison)
    lines = [f"{'#' * level} {_SIGNS.get(title, 'ℹ️')} Comparison: {title.lower()}", ""]  # noqa: RUF001  (GitHub's sign)
    first, *rest = [plain(hide(sentence), 500) for sentence in sentences(comparison)]
    lines += [f"**{first}**", "", *([" ".join(rest), ""] if rest else [])]
    rows = [(side, plain(hide(side_text(one)))) for side, one in (("A", comparison.a), ("B", comparison.b))]
    lines += table(("", "Run"), rows)
    several = len({case.agent for case in comparison.cases}) > 1
    for title, kind, cases in groups(comparison):
        content = list(_case_table(cases, hide, name_agent=several))
        about = f"{title} ({len(cases)})"
        lines += [f"{'#' * (level + 1)} {about}", "", *content] if kind in _OPEN else _folded(about, content)
    if comparison.in_error:
        listed = comparison.in_error[:MOST_LISTED]
        errors = [(_label(case, hide, name_agent=several), error_text(case)) for case in listed]
        content = [*table(("Case", "Runs"), errors), *_more(comparison.in_error)]
        lines += _folded(f"⚠️ Runs without a verdict ({len(comparison.in_error)})", content)
    if figures := moved_figures(comparison):
        cells = [(plain(hide(name)), *more) for name, *more in map(figure_cells, figures)]
        lines += _folded("Figures", table(("Figure", "A", "B", "Change", "How sure"), cells))
    lines += [f"- {plain(hide(note), 500)}" for note in comparison.notes]
    return [*lines, ""] if comparison.notes else lines


def _folded(title: str, content: Sequence[str]) -> list[str]:
    # The blank lines let GitHub read what is inside as Markdown.
    return [f"<details><summary>{title}</summary>", "", *content, "</details>", ""]


def _case_table(cases: Sequence[CaseComparison], hide: Hide, *, name_agent: bool) -> Iterator[str]:
    listed = cases[:MOST_LISTED]
    if all(case.is_compared for case in listed):
        rows = [_cells(case, hide, name_agent=name_agent) for case in listed]
        yield from table(_HEAD, rows)
    else:
        rows = [(*_cells(case, hide, name_agent=name_agent)[:3], plain(hide(case.why or ""))) for case in listed]
        yield from table(("Case", "A", "B", "Why"), rows)
    yield from _more(cases)


def _more(cases: Sequence[CaseComparison]) -> list[str]:
    left = len(cases) - MOST_LISTED
    return [f"… and {counted(left, 'more case')}", ""] if left > 0 else []


def _label(case: CaseComparison, hide: Hide, *, name_agent: bool) -> str:
    return code(hide(case.id), 80) + (f" ({code(hide(case.agent), 60)})" if name_agent else "")


def _cells(case: CaseComparison, hide: Hide, *, name_agent: bool) -> tuple[str, ...]:
    return (
        _label(case, hide, name_agent=name_agent),
        tally_text(case.a),
        tally_text(case.b),
        difference_text(case.difference),
        "" if case.p_value is None else p_text(case.p_value),
    )
