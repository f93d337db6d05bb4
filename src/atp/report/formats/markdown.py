"""The Markdown report: summary, environment, stability where there are several runs, and every result.

What an agent said is shown as it is, and can be neither a table, a fence, a link nor HTML.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from atp.base.durations import elapsed
from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.engine.prepare.identity import Identity
from atp.history.figures import CaseFigures
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.compare.markdown import comparison_markdown
from atp.report.compare.words import column_sentence
from atp.report.facts import (
    agent_id,
    below_min_score,
    class_text,
    flaky_text,
    is_failure,
    judge_flips,
    left_out,
    long_run_text,
    no_assertions,
    not_run,
    quarantine_text,
    reason,
    response,
    shown_trial,
    stability_text,
    trials_text,
    warnings,
)
from atp.report.figure_text import gate_text, gate_title, group_rate_text, metric_text, named_metrics
from atp.report.files import Spool
from atp.report.judge_text import by_judge, criterion_title, judge_title, left_out_text, verdicts_text
from atp.report.markdown_text import block, code, plain, table
from atp.report.reporter import SpooledReport
from atp.report.side_by_side import SideBySide, cell_text, ended_as
from atp.report.totals import AgentTotals
from atp.stats.group_figures import GroupFigures, run_groups
from atp.stats.intervals import LEAST_CASES
from atp.stats.stability import case_score, case_stability
from atp.stats.summary import percent
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialResult, Verdict

MOST_CHECKS = 10
"""How many failed checks of a case are shown."""
MOST_COMPARED = 200
"""How many cases are shown side by side."""
MOST_FILES = 20
"""How many of the files that an agent made are named."""
DEEPEST = 3
"""How many levels of groups of checks are shown."""
_STABILITY = ("Case", "Runs", "Passed", "Pass Rate", "Consistency", "Class", "Average", "Deviation")
_SIGNS = {"passed": "✅", "failed": "❌", "skipped": "⏭️"}  # ⚠️ for anything else: an error that is not the agent's fault


class MarkdownReport(SpooledReport):
    """Sections and tables, with the results in the order of the files."""

    format = "report.markdown"
    extensions = (".md",)

    def __init__(self, path: Path | None, secrets: Sequence[str] = ()) -> None:
        super().__init__(path, secrets)
        self._several = False
        self._totals = AgentTotals()
        self._grid = SideBySide(self.hide)
        self._low = 0

    def start(self, info: RunInfo) -> None:
        """Results name their agent where there are several."""
        super().start(info)
        self._several = len(info.agents) > 1
        self._totals.start(info)
        self._grid.start(info)

    def case_part(self, result: CaseResult) -> bytes:
        """The section of a case; before it, on the first line, the case's row of the stability table."""
        self._totals.add(result)
        self._grid.case(result)
        self._low += below_min_score(result)
        row = _stability_row(result, self.hide, self._several) if result.repeated else []
        return _bytes(["\t".join(row), *case_section(result, self.hide, self._several)])

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """The heading of a skipped case."""
        return _bytes([f"### ⏭️ {_title(case.id, case.name, self.hide)} - Skipped", ""])

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write all sections."""
        file.write(_bytes(["# Agent Test Report", "", *summary_section(end, self.hide, self._low)]))
        if end.comparison is not None:
            file.write(_bytes(comparison_markdown(end.comparison, self.hide)))
        if self._several:
            rates, agents = run_groups(end.numbers).agents, self._totals.agents
            told = {agent: group_rate_text(rates[agent]) if agent in rates else "" for agent in agents}
            totals = [
                (plain(self.hide(agent)), found.text + (f"; {told[agent]}" if told[agent] else ""))
                for agent, found in agents.items()
            ]
            file.write(_bytes(["## Agents", "", *table(("Agent", "Result"), totals)]))
            file.write(_bytes(_side_by_side(self._grid, rates)))
        file.write(_bytes([*gates_section(end, self.hide), *judges_section(end, self.hide)]))
        file.write(_bytes(_figures_sections(end, self.hide)))
        file.write(_bytes(environment_section(end.info, self.hide)))
        if end.info.trials > end.info.cases:
            rows = [row.split("\t") for item in results if (row := item.partition(b"\n")[0].decode())]
            file.write(_bytes(["## Stability", "", *table(_STABILITY, rows)]))
        file.write(_bytes(["## Results", ""]))
        file.writelines(item.partition(b"\n")[2] for item in results)
        file.writelines(skipped)


def _side_by_side(grid: SideBySide, groups: dict[str, GroupFigures]) -> list[str]:
    """A line for each case and a column for each agent; of many cases, those in which agents differ."""
    rows, left = grid.rows(MOST_COMPARED)
    if not rows:
        return []
    head = ("Case", *(plain(name, 80) for name in grid.agents))
    lines = [[plain(row.id, 80), *(_cell(cell) for cell in row.cells)] for row in rows]
    rates = [f"{rate:g}%" if (rate := one.pass_rate) is not None else "–" for one in grid.record(groups).agents]
    more = [f"{left}.", ""] if left else []
    compared = grid.comparisons()
    cells = [[plain(one.agent, 80), column_sentence(one.overall)] for one in compared]
    first = f"Compared with {plain(grid.agents[0], 80)}"
    first += f" (corrected for {len(compared)} comparisons)" if len(compared) > 1 else ""
    shown = table(head, [*lines, ["**Pass rate**", *rates]])
    return ["## Side by Side", "", *shown, *more, *table(("Agent", first), cells)]


def _cell(cell: CaseFigures | None) -> str:
    if cell is None:
        return "–"
    return f"{_SIGNS.get(ended_as(cell), '⚠️')} {cell_text(cell)}"


def summary_section(end: RunEnd, hide: Hide, low: int = 0) -> list[str]:
    """The summary of the JSONL test package; the rarer counts only where they are not zero."""
    info, counts = end.info, end.counts
    rows = [
        ("Agent", plain(hide(agent_id(info)))),
        ("Connector", plain(hide(info.connector)) if info.connector else "agent default"),
        *((name.capitalize(), str(counts[name])) for name in ("total", "passed", "failed")),
        *((name.capitalize(), str(counts[name])) for name in _RARE if counts.get(name)),
    ]
    rows += [("Not Run", str(not_run(end)))] if not_run(end) else []
    rows.append(("Pass Rate", f"{counts['overall_pass_rate']:g}%"))
    if rate := group_rate_text(run_groups(end.numbers).all):
        rows.append(("Case Pass Rate", rate))
    rows += [("Below Min Score", f"{counted(low, 'case')}, although enough trials passed")] if low else []
    if info.trials > info.cases:
        rows.append(_passed_row(counts, info.runs))
    rows.append(("Duration", elapsed(end.duration_ms)))
    rows += [("Note" if end.damaged else "Stopped", plain(hide(end.reason)))] if end.reason else []
    return ["## Summary", "", *table(("Metric", "Value"), rows)]


def _passed_row(counts: dict[str, Any], runs: int) -> tuple[str, str]:
    total, variations = counts["total_runs"], counts.get("total_variations", counts["total_cases"])
    text = f"{counts['passed_runs']} of {counts.get('planned_runs', total)} passed"
    if "planned_runs" in counts:
        text += f", {total} ran"
    if variations <= counts["total_cases"]:
        return "Runs", text
    return "Trials", f"{text} ({trials_text(counts.get('planned_runs', total), variations, runs)})"


def gates_section(end: RunEnd, hide: Hide) -> list[str]:
    """A table of the gates, where there are any."""
    signs = {"passed": "✅", "failed": "❌", "inconclusive": "❔"}
    rows = []
    for gate in end.gates:
        title = f"{signs[gate.outcome]} {code(hide(gate_title(gate, end.info)), 200)}"
        rows.append((title, plain(hide(gate_text(gate)), 400)))
    return ["## Gates", "", *table(("Gate", "Outcome"), rows)] if rows else []


def judges_section(end: RunEnd, hide: Hide) -> list[str]:
    """A table of what the verdicts of judges are worth, where there are any."""
    rows = []
    for judge, figures, left in by_judge(end.judges):
        name = plain(hide(judge_title(judge)))
        rows += [
            (name, plain(hide(criterion_title(one.counts))), plain(hide(verdicts_text(one)), 400)) for one in figures
        ]
        rows += [(name, left_out_text(left), "")] if left else []
    return ["## Judges", "", *table(("Judge", "Criterion", "Verdicts"), rows)] if rows else []


def _figures_sections(end: RunEnd, hide: Hide) -> Iterator[str]:
    """The metrics, if some were given by name or there are intervals; and the rates of tags and files."""
    groups = run_groups(end.numbers)
    if named_metrics(groups.all.metrics) or groups.all.cases >= LEAST_CASES:
        rows = [
            (
                code(hide(name), 80),
                str(found.runs),
                metric_text(name, found.mean, found.mean_interval),
                metric_text(name, found.median, found.median_interval),
                metric_text(name, found.p95, found.p95_interval),
            )
            for name, found in groups.all.metrics.items()
        ]
        head = ("Metric", "Runs", "Mean (approximate 95% interval)", "Median (95% interval)", "p95 (95% interval)")
        yield from ("## Metrics", "", *table(head, rows))
    rated = [
        (f"{kind} {code(hide(name), 80)}", str(found.cases), text)
        for kind, some in (("tag", groups.tags), ("file", groups.files))
        for name, found in some.items()
        if (text := group_rate_text(found))
    ]
    if rated:
        yield from ("## Tags and Files", "", *table(("Group", "Cases", "Pass rate"), rated))


_RARE = ("errors", "blocked", "cancelled", "inconclusive", "skipped", "quarantined")
_ENVIRONMENT = ("user", "team", "locale")
_USUAL: dict[str, Any] = {name: getattr(Identity(), name) for name in Identity.model_fields}


def environment_section(info: RunInfo, hide: Hide) -> list[str]:
    """The environment of the JSONL test package; other settings only where they are not the default."""
    rows = [
        (plain(name.replace("_", " ").capitalize()), plain(response(hide(value))))
        for name, value in info.environment.items()
        if name in _ENVIRONMENT or value != _USUAL.get(name, value or None)
    ]
    return ["## Environment", "", *table(("Setting", "Value"), rows)] if rows else []


def case_section(case: CaseResult, hide: Hide, name_agent: bool = False) -> Iterator[str]:
    """The section of a case."""
    trial = shown_trial(case)
    took = elapsed(sum(one.duration_ms for one in case.trials))
    yield f"### {_sign(case)} {_title(case.case, case.name, hide)} - {case.status.capitalize()} ({took})"
    yield ""
    yield from _facts(case, trial, hide, name_agent)
    if case.status == "passed":
        yield f"- Input: {code(response(hide(case.input)))}"
        yield f"- Output: {code(response(hide(trial.transcript.output)))}"
        yield ""
        return
    yield ""
    bad = [one for one in trial.verdicts if not one.passed]
    for verdict in bad[:MOST_CHECKS]:
        yield from _failure(verdict, hide, 1)
    if len(bad) > MOST_CHECKS:
        yield from (f"… and {len(bad) - MOST_CHECKS} more", "")
    for label, value in (("Input", case.input), ("Output", trial.transcript.output)):
        if value is not None:
            yield from (f"{label}:", "", *block(hide(value)))


def _facts(case: CaseResult, trial: TrialResult, hide: Hide, name_agent: bool) -> Iterator[str]:
    if case.status != "passed":
        blame = f" (blame: {trial.blame})" if trial.blame else ""
        yield f"- Why: {code(hide(reason(case)))}{blame}"
    if case.file:
        yield f"- Where: {code(hide(case.file) + (f':{case.line}' if case.line else ''))}"
    if name_agent:
        yield f"- Agent: {code(hide(case.agent))}"
    if case.tags:
        yield f"- Tags: {', '.join(code(tag) for tag in hide(case.tags))}"
    said = (
        ("User", case.user),
        ("Team", case.team),
        ("Metadata", case.metadata),
        ("Quarantine", quarantine_text(case)),
        ("Stability", flaky_text(case)),
    )
    for label, value in said:
        if value:
            yield f"- {label}: {code(response(hide(value)))}"
    yield from _repeats(case, hide)
    if (score := case_score(case.counted)) is not None:
        without = "; ".join(f"{plain(name)}, {code(hide(why))}" for name, why in left_out(case.trials).items())
        yield f"- Score: {score:.4g}" + (f" (left out: {without})" if without else "")
    if trial.checkpoints:
        reached = sum(one.passed for one in trial.checkpoints)
        missing = [code(hide(one.id)) for one in trial.checkpoints if one.required and not one.passed]
        yield f"- Checkpoints: {reached} of {len(trial.checkpoints)} reached" + (
            f", missing: {', '.join(missing)}" if missing else ""
        )
    yield from _made(trial, hide)
    if no_assertions(case.trials):
        yield "- No assertions: it passes if the agent answers"
    for warning in warnings(case.trials):
        yield f"- Warning: {code(hide(warning))}"


def _repeats(case: CaseResult, hide: Hide) -> Iterator[str]:
    """What the runs of a case, and repeated judgings of each, say of its stability."""
    if case.repeated:
        yield f"- {stability_text(case)}"
        if told := long_run_text(case):
            yield f"- Rate: {told}"
    for place, (name, flips) in enumerate(judge_flips(case, hide)):
        yield f"  - {code(name)}: {flips}" if place else f"- {name}: {flips}"


def _made(trial: TrialResult, hide: Hide) -> Iterator[str]:
    """The files that the agent made, and the artifacts that it handed over otherwise, by name."""
    found: dict[str, tuple[int | None, str | None]] = {
        one.name: (one.size_bytes, one.sha256) for one in trial.transcript.artifacts
    }
    found |= {one.name: (one.size, one.sha256) for one in trial.files}
    if found:
        yield "- Made by the agent:"
    for name, (size, digest) in list(found.items())[:MOST_FILES]:
        about = [counted(size, "byte")] if size is not None else []
        about += [f"sha256 {code(digest, 64)}"] if digest else []
        yield f"  - {code(hide(name), 160)}" + (f": {', '.join(about)}" if about else "")
    if len(found) > MOST_FILES:
        yield f"  - … and {len(found) - MOST_FILES:,} more"


def _failure(verdict: Verdict, hide: Hide, depth: int) -> Iterator[str]:
    unjudged = " not judged:" if verdict.outcome == "unjudged" else ""
    where = f" ({code(hide(verdict.where), 120)})" if verdict.where else ""
    yield f"**{plain(verdict.type)}**{where}:{unjudged} {code(hide(verdict.message or verdict.name or ''), 1000)}"
    yield ""
    for label, value in (("Expected", verdict.expected), ("Found", verdict.found)):
        if value is not None:
            yield from (f"{label}:", "", *block(hide(value)))
    if depth < DEEPEST:
        for part in [one for one in verdict.parts if not one.passed][:MOST_CHECKS]:
            yield from _failure(part, hide, depth + 1)


def _stability_row(case: CaseResult, hide: Hide, name_agent: bool) -> list[str]:
    found = case_stability(case)
    variations, planned = case.variations, found.planned
    runs = str(planned) if variations == 1 else trials_text(planned, variations, planned // variations)
    agent = f" ({plain(hide(case.agent), 60)})" if name_agent else ""
    return [
        plain(hide(case.case), 80) + agent,
        runs,
        str(found.passed),
        f"{percent(found.passed, found.planned):g}%",
        f"{found.consistency:.2f}",
        class_text(found),
        elapsed(found.avg_duration_ms),
        elapsed(found.std_deviation_ms),
    ]


def _sign(case: CaseResult) -> str:
    return _SIGNS.get("failed" if is_failure(case) else case.status, "⚠️")


def _title(identity: str, name: str, hide: Hide) -> str:
    shown = plain(hide(identity), 80)
    return shown if not name or name == identity else f"{shown}: {plain(hide(name), 120)}"


def _bytes(lines: Any) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
