"""What a comparison says, in sentences and in the cells of tables: the same in the terminal, Markdown and HTML."""

import time
from collections.abc import Iterator, Sequence

from atp.base.numbers import counted
from atp.base.text import one_line
from atp.report.facts import figure_text
from atp.stats.compare import LEAST_DIFFERENT, LEAST_RUNS
from atp.stats.comparison import (
    CaseClass,
    CaseComparison,
    Comparison,
    FigureComparison,
    Limits,
    OverallComparison,
    Side,
    Tally,
)

FIGURES = {"duration_ms": "duration", "cost_usd": "cost"}
"""Figures whose names are not words."""
MOST_NAMED = 5
"""Cases that the sentence about what got worse names."""


def heading(comparison: Comparison) -> str:
    """The verdict, as short as a title."""
    overall = comparison.overall
    if comparison.has_regressed:
        return "Worse"
    if not overall.cases:
        return "Nothing could be compared"
    if overall.kind == "improved" or comparison.improved:
        return "Better"
    return "The same" if overall.kind == "same" else "No difference is shown"


def sentences(comparison: Comparison) -> list[str]:
    """The verdict in sentences for people who know no statistics, the most important first."""
    if not comparison.overall.cases:
        return ["Nothing could be compared: A and B share no case that both ran, unchanged and not in quarantine."]
    found = [_overall_sentence(comparison), _others_sentence(comparison), _left_out_sentence(comparison)]
    if comparison.regressed:
        found.insert(0 if comparison.overall.kind != "regressed" else 1, _regressed_sentence(comparison))
    found.append(_doubt_sentence(comparison))
    if comparison.margin is not None:
        found.append(_margin_sentence(comparison))
    return [sentence for sentence in found if sentence]


def _regressed_sentence(comparison: Comparison) -> str:
    cases = comparison.of_class("regressed")
    named = ", ".join(one_line(case.id, 40) for case in cases[:MOST_NAMED])
    more = f" and {len(cases) - MOST_NAMED:,} more" if len(cases) > MOST_NAMED else ""
    return (
        f"{counted(len(cases), 'case')} got worse: {named}{more}. "
        "In the long run, at most 1 of 20 cases that are named so is named wrongly."
    )


def _overall_sentence(comparison: Comparison) -> str:
    overall = comparison.overall
    assert overall.difference is not None
    assert overall.p_value is not None
    cases = "the case" if overall.cases == 1 else f"the {overall.cases:,} cases"
    if not overall.different:
        return f"B passes as often as A: {cases} that both ran came to the same."
    less = f"{points(abs(overall.difference))} {'less' if overall.difference < 0 else 'more'} often"
    range_ = f", in the long run {_between(overall.interval)}" if overall.interval else ""
    if overall.kind == "regressed":
        return f"B is worse than A: it passes {less} over {cases}{range_} ({p_text(overall.p_value)})."
    if overall.kind == "improved":
        return f"B is better than A: it passes {less} over {cases}{range_} ({p_text(overall.p_value)})."
    if overall.observed == "equal":
        return f"Over {cases}, B passes as often as A{range_} ({p_text(overall.p_value)})."
    if overall.kind == "same":
        return f"B passes {less} over {cases}, which is within the margin{range_}."
    if overall.different < LEAST_DIFFERENT:
        few = f"fewer than {LEAST_DIFFERENT} cases differ, too few to tell a trend from chance"
        return f"Over {cases}, B passes {less}{range_}; {few}."
    return f"Over {cases}, B passes {less}; that can be chance{range_} ({p_text(overall.p_value)})."


def _others_sentence(comparison: Comparison) -> str:
    unsure = [case for case in comparison.of_class("inconclusive") if case.is_compared]
    parts = [
        f"{counted(comparison.improved, 'case')} got better" if comparison.improved else "",
        f"{counted(len(unsure), 'case')} differ{'s' if len(unsure) == 1 else ''}, perhaps by chance" if unsure else "",
        f"{counted(same, 'case')} stayed the same" if (same := len(comparison.of_class("same"))) else "",
    ]
    text = "; ".join(filter(None, parts))
    return f"{text}." if text and comparison.overall.different else ""


def _left_out_sentence(comparison: Comparison) -> str:
    """Which cases that both runs have are not compared: what the sentences before say is not about them."""
    changed, quarantined = len(comparison.of_class("changed")), len(comparison.of_class("quarantined"))
    parts = [
        f"{counted(changed, 'case')} that changed since A" if changed else "",
        f"{counted(quarantined, 'case')} in quarantine" if quarantined else "",
    ]
    text = ", ".join(filter(None, parts))
    return f"Not compared: {text}." if text else ""


def _doubt_sentence(comparison: Comparison) -> str:
    """Why nothing is sure, and what would help."""
    compared = [case for case in comparison.cases if case.is_compared]
    fewest = min(min(case.a.judged, case.b.judged) for case in compared if case.a and case.b)
    if comparison.overall.different and fewest < LEAST_RUNS and not comparison.regressed:
        return (
            f"With fewer than {LEAST_RUNS} runs on each side no single case can be called worse: "
            "run each case more often (--runs 5)."
        )
    return ""


def _margin_sentence(comparison: Comparison) -> str:
    margin = points(comparison.margin or 0.0)
    if comparison.overall.non_inferior:
        return f"B is shown to be less than {margin} worse than A."
    return f"It is not shown that B is less than {margin} worse than A."


def column_sentence(overall: OverallComparison) -> str:
    """How an agent of a run does beside the first agent: `+12.5 points over 20 cases, better (p = 0.012)`."""
    if overall.difference is None or overall.p_value is None:
        return "not compared: no case was judged with both"
    cases = counted(overall.cases, "case")
    if not overall.different:
        return f"the same in {cases}"
    words = {"regressed": "worse", "improved": "better", "same": "the same", "inconclusive": "which can be chance"}
    difference = f"{difference_text(overall.difference)} point{'' if abs(overall.difference) == 1 else 's'}"
    return f"{difference} over {cases}, {words[overall.kind]} ({p_text(overall.p_value)})"


def points(value: float) -> str:
    """A number of percentage points: `12.5 points`."""
    text = f"{value:,.1f}".removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def _between(interval: Limits) -> str:
    low, high = interval

    def side(value: float) -> str:
        return f"{points(abs(value))} {'less' if value < 0 else 'more'}"

    return f"between {side(low)} and {side(high)}"


def p_text(p_value: float) -> str:
    """A p-value: `p = 0.012`."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def difference_text(difference: float | None) -> str:
    """A signed difference in percentage points; a dash if there is none to give."""
    if difference is None:
        return "–"
    return "0" if abs(difference) < 0.05 else f"{difference:+,.1f}".removesuffix(".0")


def tally_text(tally: Tally | None) -> str:
    """The runs of a case on one side: `4/5`."""
    if tally is None:
        return "–"
    return f"{tally.passed}/{tally.judged}" + (f" and {counted(tally.errors, 'error')}" if tally.errors else "")


def tallies_text(case: CaseComparison) -> str:
    """The runs of a case on both sides: `4/5 → 0/5`."""
    return f"{tally_text(case.a)} → {tally_text(case.b)}"


def side_text(side: Side) -> str:
    """Which run a side is: `main (run 2026…, 2026-11-18 04:12, commit 1a2b3c4d5e)`."""
    parts = [f"run {side.run}"] if side.name != side.run else []
    parts.append(time.strftime("%Y-%m-%d %H:%M", time.localtime(side.at)))
    parts += [f"commit {side.commit[:10]}{' with changes' if side.dirty else ''}"] if side.commit else []
    rate = f", {side.pass_rate:.1f}% passed".replace(".0%", "%") if side.pass_rate is not None else ""
    agent = f"{side.agent}, " if side.agent else ""
    return f"{agent}{side.name} ({', '.join(parts)}){rate}"


def figure_name(name: str) -> str:
    """The figure's name in words."""
    return FIGURES.get(name, name)


def moved_figures(comparison: Comparison) -> list[FigureComparison]:
    """The figures that differ in some case; the others would only be noise to a reader."""
    return [figure for figure in comparison.figures if figure.shift or figure.p_value < 1]


def figure_cells(figure: FigureComparison) -> tuple[str, str, str, str, str]:
    """The name of a figure, its medians in A and B, the shift with its interval, and how sure the shift is."""
    change = _shift_text(figure, figure.shift)
    if figure.interval:
        low, high = (_shift_text(figure, one) for one in figure.interval)
        change += f" ({low} to {high})"
    a, b = figure_text(figure.name, figure.a), figure_text(figure.name, figure.b)
    return figure_name(figure.name), a, b, change, p_text(figure.p_value)


def _shift_text(figure: FigureComparison, value: float) -> str:
    if figure.scale == "percent":
        return f"{value:+,.1f}%".replace(".0%", "%")
    sign = "-" if value < 0 else "+"
    return f"{sign}{figure_text(figure.name, abs(value))}"


def groups(comparison: Comparison) -> Iterator[tuple[str, CaseClass, Sequence[CaseComparison]]]:
    """The cases that readers look at, group by group: the title, the class, and the cases, the largest change first."""

    def by_difference(case: CaseComparison) -> float:
        return -abs(case.difference or 0.0)

    unsure = comparison.of_class("inconclusive")
    worse = [case for case in unsure if case.observed == "worse"]
    better = [case for case in unsure if case.observed == "better"]
    all_groups: tuple[tuple[str, CaseClass, list[CaseComparison]], ...] = (
        ("Got worse", "regressed", comparison.of_class("regressed")),
        ("Passed less often, perhaps by chance", "inconclusive", worse),
        ("Got better", "improved", comparison.of_class("improved")),
        ("Passed more often, perhaps by chance", "inconclusive", better),
        ("Not compared: changed since A", "changed", comparison.of_class("changed")),
        ("Not compared: in quarantine", "quarantined", comparison.of_class("quarantined")),
        ("Not compared: no verdict", "inconclusive", [case for case in unsure if not case.is_compared]),
        ("Only in A", "only in A", comparison.of_class("only in A")),
        ("Only in B", "only in B", comparison.of_class("only in B")),
    )
    for title, kind, cases in all_groups:
        if cases:
            yield title, kind, sorted(cases, key=by_difference)


def error_text(case: CaseComparison) -> str:
    """On which side how many runs of a case came to no verdict."""
    sides = (("A", case.a), ("B", case.b))
    return ", ".join(f"{counted(tally.errors, 'run')} in {side}" for side, tally in sides if tally and tally.errors)
