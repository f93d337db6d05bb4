"""The end of a run in words, as in document 5."""

from collections.abc import Iterator, Sequence
from typing import Any

from atp.base.durations import elapsed
from atp.base.secrets import Hide
from atp.base.text import Line, one_line
from atp.journal.listeners import RunEnd
from atp.report.run_object import not_run
from atp.report.stability_object import trials_text

WIDTH = 63
THICK = ("═" * WIDTH, "rule")
THIN = ("─" * WIDTH, "rule")


def heading(text: str) -> list[Line]:
    """A title between two rules."""
    return [THIN, (f"  {text}", "title"), THIN]


def counted(number: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def summary_lines(end: RunEnd, hide: Hide, more: Sequence[Line] = ()) -> list[Line]:
    """The counts; those that are rarely anything else than zero only where they aren't; and what there is `more`."""
    lines = heading("Summary")
    lines.extend(_counts(end.counts))
    lines.extend(_trials(end.counts, end.info.runs))
    if missing := not_run(end):
        lines.append((f"  Not run: {missing}", "error"))
    lines.append((f"  Time:    {elapsed(end.duration_ms)}", ""))
    lines.extend(more)
    if end.reason:
        lines.append((f"  {'Note:' if end.damaged else 'Stopped:':<8} {one_line(hide(end.reason))}", "error"))
    return lines


def _counts(counts: dict[str, Any]) -> Iterator[Line]:
    yield f"  Total:   {counted(counts['total'], 'test')}", ""
    yield f"  Passed:  {counts['passed']}", ""
    yield f"  Failed:  {counts['failed']}", "failed" if counts["failed"] else ""
    for name in ("errors", "blocked", "cancelled", "skipped"):
        if number := counts.get(name):
            yield f"  {name.capitalize() + ':':<8} {number}", "" if name == "skipped" else "error"


def _trials(counts: dict[str, Any], runs: int) -> Iterator[Line]:
    """Variations and runs are two axes: where there are both, neither may pass for the other."""
    total, cases = counts.get("total_runs", 0), counts.get("total_cases", 0)
    planned = counts.get("planned_runs", total)  # more only where a stop left some out
    if planned <= cases:
        return
    variations = counts.get("total_variations", cases)
    said = str(total) if planned == total else f"{total} of {planned} planned"
    rate = f"{counts['overall_pass_rate']:g}% passed"
    if variations > cases:
        yield f"  Trials:  {said} ({trials_text(planned, variations, runs)}), {rate}", ""
    else:
        yield f"  Runs:    {said}, {rate}", ""
    yield f"  Stable:  {counts['stable_cases']} of {counted(cases, 'case')}", ""
