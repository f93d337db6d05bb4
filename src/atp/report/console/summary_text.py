"""The summary at the end of a run, in the form of the JSONL format."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from atp.base.durations import elapsed
from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.base.text import Line, one_line
from atp.history.figures import CaseFigures
from atp.journal.listeners import RunEnd
from atp.report.compare.words import column_sentence
from atp.report.facts import (
    agent_usage,
    below_min_score,
    dollars,
    no_assertions,
    not_run,
    trials_text,
    warnings,
)
from atp.report.figure_text import SIGNS, gate_text, gate_title, group_rate_text, metric_text, named_metrics
from atp.report.judge_text import by_judge, criterion_title, judge_title, left_out_text, verdicts_text
from atp.report.side_by_side import SideBySide, cell_text, ended_as
from atp.report.totals import AgentTotals
from atp.stats.group_figures import GroupFigures, MetricFigures, run_groups
from atp.suite.result import CaseResult, TrialResult, Usage

WIDTH = 63
THICK = ("═" * WIDTH, "rule")
THIN = ("─" * WIDTH, "rule")
MOST_NAMED = 3
"""How many slow and how many flaky cases are named."""
SLOW_MS = 1000.0
"""A faster case is not called slow."""


def heading(text: str) -> list[Line]:
    """A title between two rules."""
    return [THIN, (f"  {text}", "title"), THIN]


def summary_lines(end: RunEnd, hide: Hide, more: Sequence[Line] = ()) -> list[Line]:
    """The counts, the rarer ones only where they are not zero; then the lines in `more`."""
    lines = heading("Summary")
    lines.extend(_counts(end.counts))
    lines.extend(_excused(end.counts))
    if expected := end.counts.get("expected_wrong_decisions"):
        lines.append((f"  Decided: at most {expected:g} wrong decisions are to be expected over all cases", ""))
    missing = not_run(end)
    lines.extend(_trials(end, cases_left_out=missing > 0))
    if missing:
        lines.append((f"  Not run: {missing}", "error"))
    groups = run_groups(end.numbers)
    if rate := group_rate_text(groups.all):
        lines.append((f"  Rate:    {rate}", ""))
    lines.append((f"  Time:    {elapsed(end.duration_ms)}", ""))
    lines.extend(more)
    lines.extend(_metric_lines(named_metrics(groups.all.metrics), hide))
    lines.extend(gate_lines(end, hide))
    lines.extend(judge_lines(end, hide))
    if end.reason:
        lines.append((f"  {'Note:' if end.damaged else 'Stopped:':<8} {one_line(hide(end.reason))}", "error"))
    wide = max((len(label[1]) for text, _ in lines if (label := _LABEL.match(text))), default=0)
    if wide <= _NARROW:
        return lines
    return [(_LABEL.sub(lambda label: f"  {label[1]:<{wide}} ", text), look) for text, look in lines]


_LABEL = re.compile(r"^  ([A-Z][\w ]*:) +")

_NARROW = 8
"""The width of the labels' column in document 5. `Cancelled:` and `Inconclusive:` need a wider one."""


def _counts(counts: dict[str, Any]) -> Iterator[Line]:
    yield f"  Total:   {counted(counts['total'], 'test')}", ""
    yield f"  Passed:  {counts['passed']}", ""
    yield f"  Failed:  {counts['failed']}", "failed" if counts["failed"] else ""
    for name in ("errors", "blocked", "cancelled", "inconclusive", "skipped"):
        if number := counts.get(name):
            yield f"  {name.capitalize() + ':':<8} {number}", "" if name == "skipped" else "error"


def _excused(counts: dict[str, Any]) -> Iterator[Line]:
    if number := counts.get("quarantined"):
        yield f"  Excused: {number} in quarantine, not in the exit code", "other"


def _trials(end: RunEnd, *, cases_left_out: bool) -> Iterator[Line]:
    """Variations and runs are two axes: where there are both, the line names both."""
    counts, runs = end.counts, end.info.runs
    total, cases = counts.get("total_runs", 0), counts.get("total_cases", 0)
    planned = counts.get("planned_runs", total)  # more only where a stop left some out
    if planned <= cases:
        return
    variations = counts.get("total_variations", cases)
    number = str(total) if planned == total else f"{total} of {planned} planned"
    rate = f"{counts['overall_pass_rate']:g}% passed"
    if end.info.adaptive:
        rate = f"{counts['overall_pass_rate']:g}% pass in the mean of the cases"
    if cases_left_out:  # the rate is about cases that began, so it would not be the share of all that was planned
        yield f"  Runs:    {total} of {end.info.trials} planned, {counts['passed_runs']} passed", ""
    elif variations > cases:
        yield f"  Trials:  {number} ({trials_text(planned, variations, runs)}), {rate}", ""
    else:
        yield f"  Runs:    {number}, {rate}", ""
    repeated = counts["stable_cases"] + counts["unstable_cases"]
    which = "case" if repeated == cases else "repeated case"
    yield f"  Stable:  {counts['stable_cases']} of {counted(repeated, which)}", ""


def _metric_lines(metrics: dict[str, MetricFigures], hide: Hide) -> Iterator[Line]:
    """A line for each metric that was given by name, where there are any."""
    if metrics:
        yield "  Metrics:", ""
    names = {name: one_line(hide(name), 60) for name in metrics}
    width = max(map(len, names.values()), default=0)
    for name, found in metrics.items():
        parts = [
            f"{what} {metric_text(name, value, interval)}"
            for what, value, interval in (
                ("mean", found.mean, found.mean_interval),
                ("median", found.median, found.median_interval),
                ("p95", found.p95, found.p95_interval),
            )
        ]
        yield f"    {names[name]:<{width}}  {', '.join(parts if found.runs > 1 else parts[:1])}", ""


def gate_lines(end: RunEnd, hide: Hide) -> Iterator[Line]:
    """A line for each gate, where there are any."""
    if end.gates:
        passed = sum(gate.outcome == "passed" for gate in end.gates)
        yield f"  Gates:   {passed} of {len(end.gates)} passed", "" if passed == len(end.gates) else "error"
    looks = {"passed": "", "failed": "failed", "inconclusive": "error"}
    for gate in end.gates:
        text = f"{one_line(hide(gate_title(gate, end.info)), 200)}  {one_line(hide(gate_text(gate)), 400)}"
        yield f"    {SIGNS[gate.outcome]} {text}", looks[gate.outcome]


def judge_lines(end: RunEnd, hide: Hide) -> Iterator[Line]:
    """What the verdicts of each judge are worth, where there are any."""
    if end.judges:
        yield "  Judges:", ""
    for judge, figures, left in by_judge(end.judges):
        yield f"    {one_line(hide(judge_title(judge)), 200)}", ""
        for one in figures:
            title = one_line(hide(criterion_title(one.counts)), 60)
            yield f"      {title}: {one_line(hide(verdicts_text(one)), 400)}", ""
        if left:
            yield f"      {left_out_text(left)}", "detail"


class Used:
    """Adds up what trials used."""

    def __init__(self) -> None:
        self.agents = _Sum()
        """What the agents under test used."""
        self.roles = _Sum()
        """What judging and simulating used."""

    def add(self, trial: TrialResult) -> None:
        """Count a trial."""
        self.agents.add(agent_usage(trial))
        if trial.role_usage is not None:
            self.roles.add(trial.role_usage)

    def lines(self) -> list[Line]:
        """The lines of the summary about money and tokens."""
        found: list[Line] = []
        if self.agents.usd:
            found.append((f"  Cost:    {dollars(self.agents.usd)}", ""))
        if self.agents.tokens:
            found.append((f"  Tokens:  {self.agents.tokens:,}", ""))
        if self.roles.usd or self.roles.tokens:
            parts = [dollars(self.roles.usd)] if self.roles.usd else []
            parts += [f"{self.roles.tokens:,} tokens"] if self.roles.tokens else []
            found.append((f"  Judging: {', '.join(parts)} (judge and simulator, not in the above)", ""))
        return found


class _Sum:
    """Tokens and money."""

    def __init__(self) -> None:
        self.tokens = 0
        self.usd = 0.0

    def add(self, usage: Usage) -> None:
        self.tokens += usage.tokens or 0
        self.usd += usage.cost_usd or 0.0


def agent_lines(totals: AgentTotals, hide: Hide, grid: SideBySide, groups: dict[str, GroupFigures]) -> list[Line]:
    """A line for each agent, where there are several, with how sure its pass rate is.

    It begins with the letter of the agent's column in the table that follows.
    """
    names = {agent: one_line(hide(agent), 80) for agent in totals.agents}
    width = max(map(len, names.values()), default=0)
    table = list(_grid_lines(grid))
    letters = _letters(grid) if table else {}
    lines: list[Line] = []
    for agent, found in totals.agents.items():
        letter = f"{letters[hide(agent)]}  " if hide(agent) in letters else ""
        rate = group_rate_text(groups[agent]) if agent in groups else ""
        lines.append((f"    {letter}{names[agent]:<{width}}  {found.text}{'; ' if rate else ''}{rate}", ""))
    return [("  By agent:", ""), *lines, *table] if lines else []


MOST_COLUMNS = 16
"""More agents than this have no table here: the lines would be wider than a terminal."""
MOST_ROWS = 20
"""How many cases the table shows."""


def _letters(grid: SideBySide) -> dict[str, str]:
    return dict(zip(grid.agents, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", strict=False))


def _grid_lines(grid: SideBySide) -> Iterator[Line]:
    """The table: a line for each case, a column for each agent."""
    rows, left = grid.rows(MOST_ROWS)
    if len(grid.agents) > MOST_COLUMNS or not rows:
        return
    names = [one_line(row.id, 40) for row in rows]
    cells = [[_cell(cell, repeated=grid.repeated) for cell in row.cells] for row in rows]
    wide = max(len(name) for name in ("Case", *names))
    narrow = max(len(text) for line in cells for text in line)
    for name, line in zip(("Case", *names), (list(_letters(grid).values()), *cells), strict=True):
        yield f"    {name:<{wide}}  {'  '.join(f'{text:>{narrow}}' for text in line)}".rstrip(), ""
    if left:
        yield f"    {left}", "detail"
    compared = grid.comparisons()
    corrected = f", corrected for {len(compared)} comparisons" if len(compared) > 1 else ""
    yield f"  Compared with A{corrected}:", ""
    for one in compared:
        look = {"regressed": "failed", "improved": "passed"}.get(one.overall.kind, "")
        yield f"    {_letters(grid)[one.agent]}  {column_sentence(one.overall)}", look


def _cell(cell: CaseFigures | None, *, repeated: bool) -> str:
    if cell is None:
        return "–"
    sign = SIGNS.get(ended_as(cell), "!")
    return f"{sign} {cell_text(cell)}" if repeated else sign


class Notable:
    """Keeps the slowest and the flakiest cases of a run, and counts what the lines of its cases don't show.

    These are cases that failed by their score alone, and, where cases that pass are not listed, those with warnings and
    those without assertions.
    """

    def __init__(self, *, all_listed: bool) -> None:
        self._all_listed = all_listed
        self._warned = 0
        self._unchecked = 0
        self._cases = 0
        self._low = 0
        self._slow: list[tuple[float, str, str, bool]] = []
        self._flaky: list[tuple[float, str, str, str]] = []
        self._flaky_cases = 0

    def add(self, case: CaseResult) -> None:
        """Consider a case."""
        self._cases += 1
        self._low += below_min_score(case)
        if not self._all_listed and case.status == "passed":
            self._warned += bool(warnings(case.trials))
            self._unchecked += no_assertions(case.trials)
        longest, passed, runs = 0.0, 0, 0
        for trial in case.trials:
            longest = trial.duration_ms if trial.duration_ms > longest else longest
            if trial.status != "cancelled" and not trial.surplus:
                runs += 1
                passed += trial.status == "passed"
        if longest >= SLOW_MS:
            self._slow = sorted([*self._slow, (-longest, case.case, case.agent, len(case.trials) > 1)])[:MOST_NAMED]
        if 0 < passed < runs:
            self._flaky_cases += 1
            uneven = abs(passed / runs - 0.5)  # as many passes as failures is the flakiest
            self._flaky = sorted([*self._flaky, (uneven, case.case, case.agent, f"{passed}/{runs}")])[:MOST_NAMED]

    def lines(self, hide: Hide, *, name_agent: bool = False) -> list[Line]:
        """The lines of the summary about these cases. A run of few cases names no slowest."""

        def named(case: str, agent: str) -> str:
            return one_line(hide(case), 40) + (f" – {one_line(hide(agent), 40)}" if name_agent else "")

        found: list[Line] = []
        if self._low:
            # Else nobody understands how cases can fail whose trials passed.
            low = f"{counted(self._low, 'case')} below min_score, although enough trials passed"
            found.append((f"  Scores:  {low}", "error"))
        if self._warned:
            found.append((f"  Warned:  {counted(self._warned, 'case')} passed with warnings; -v shows them", "error"))
        if self._unchecked:
            bare = counted(self._unchecked, "case")
            found.append((f"  Checks:  none in {bare} that passed; -v shows which", "error"))
        if self._slow and self._cases > MOST_NAMED:
            slow = ", ".join(
                f"{named(case, agent)} ({f'up to {elapsed(-took)} a trial' if several else elapsed(-took)})"
                for took, case, agent, several in self._slow
            )
            found.append((f"  Slowest: {slow}", ""))
        if self._flaky:
            flaky = ", ".join(f"{named(case, agent)} ({rate} passed)" for _, case, agent, rate in self._flaky)
            more = self._flaky_cases - len(self._flaky)
            found.append((f"  Flaky:   {flaky}{f' and {more:,} more' if more else ''}", "error"))
        return found
