"""The page around the data of an HTML report: head, style, script, and a summary for readers without JavaScript."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from atp.base.exit_codes import FAILED
from atp.base.numbers import between_text, counted
from atp.base.secrets import Hide
from atp.base.text import one_line
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.facts import not_run
from atp.report.figure_text import gate_text, gate_title, group_rate_text, metric_text, named_metrics
from atp.report.judge_text import by_judge, criterion_title, judge_title, left_out_text, more_text
from atp.report.records.run import MetadataRecord, SummaryRecord, environment
from atp.report.rerun import run_command
from atp.stats.group_figures import run_groups
from atp.stats.suite_gates import GateResult

if TYPE_CHECKING:
    from atp.stats.comparison import Comparison

SCRIPTS = (
    "dom.js",
    "data.js",
    "search.js",
    "state.js",
    "text.js",
    "json.js",
    "markdown.js",
    "diff.js",
    "charts.js",
    "grid.js",
    "summary.js",
    "cases.js",
    "views.js",
    "calls.js",
    "checks.js",
    "timeline.js",
    "talk.js",
    "facts.js",
    "trial.js",
    "export.js",
    "main.js",
)
"""The parts of the page's script, in the order in which they build on each other."""
_HERE = "<!-- data -->"


def page_parts(end: RunEnd, listed: Sequence[tuple[str, str]], hide: Hide) -> tuple[bytes, bytes]:
    """The page before the data that the script needs at once, and after it."""
    style, script = assets()
    kind, words = verdict(end)
    return page_around_data(
        style,
        script,
        title=one_line(f"{words} – {hide(', '.join(end.info.input))}", 200),
        policy=policy(style, script),
        kind=kind,
        verdict=words,
        counts=[(name, number) for name, number in end.counts.items() if number and name in _COUNTED],
        listed=[*listed, *((one["gate"], one["text"]) for one in _missed_gates(end, hide))],
    )


def page_around_data(style: str, script: str, **shown: Any) -> tuple[bytes, bytes]:
    """The page with this style and script before the data, and after it; `shown` is what the template shows."""
    from jinja2 import Environment

    page = Environment(autoescape=True).from_string(_asset("page.html")).render(**shown)
    head, _, tail = page.partition(_HERE)
    # Not escaped: these are our own files, and the hashes in the policy are of exactly these bytes.
    head = head.replace("/* style */", style, 1)
    tail = tail.replace("/* script */", script, 1)
    return head.encode(), tail.encode()


def run_object(end: RunEnd, hide: Hide, compared: Mapping[str, str]) -> dict[str, Any]:
    """What the script shows of the run; `compared` says how each further agent does beside the first."""
    kind, words = verdict(end)
    return {
        "verdict": {"kind": kind, "words": words},
        "summary": hide(SummaryRecord.of(end)),
        "environment": hide(environment(end.info)),
        "metadata": hide(MetadataRecord.of(end)),
        "made_with": _made_with(end.info, hide),
        "notes": [hide(note) for note in (*end.info.notes, *end.notes)],
        "gates": [_gate(gate, end.info, hide) for gate in end.gates],
        "groups": _groups(end, hide),
        **({"judges": _judges(end, hide)} if end.judges else {}),
        **({"baseline": _baseline(end.comparison, hide)} if end.comparison is not None else {}),
        "damaged": end.damaged,
        "compared": compared,
        "planned": {"cases": end.info.cases, "trials": end.info.trials, "runs": end.info.runs},
    }


def _baseline(comparison: "Comparison", hide: Hide) -> dict[str, Any]:
    """How the run compares with its baseline, in the words of the console."""
    from atp.report.compare.text import comparison_tables
    from atp.report.compare.words import sentences, side_text

    sides = ("A", comparison.a), ("B", comparison.b)
    return {
        "sentences": [hide(sentence) for sentence in sentences(comparison)],
        "sides": [f"{side}: {hide(side_text(one))}" for side, one in sides],
        "tables": [
            {"title": one.title, "kind": one.kind, "rows": one.rows, "more": one.more}
            for one in comparison_tables(comparison, hide)
        ],
        "notes": [f"Note: {hide(note)}" for note in comparison.notes],
    }


def _missed_gates(end: RunEnd, hide: Hide) -> list[dict[str, Any]]:
    return [_gate(gate, end.info, hide) for gate in end.gates if gate.outcome != "passed"]


def _gate(gate: GateResult, info: RunInfo, hide: Hide) -> dict[str, Any]:
    return {"outcome": gate.outcome, "gate": hide(gate_title(gate, info)), "text": hide(gate_text(gate))}


def _judges(end: RunEnd, hide: Hide) -> list[dict[str, Any]]:
    """What the verdicts of each judge are worth, by criterion."""
    return [
        {
            "judge": hide(judge_title(judge)),
            "left": left_out_text(left),
            "rows": [
                {
                    "criterion": hide(criterion_title(one.counts)),
                    "judged": one.counts.verdicts.judged,
                    "rate": one.counts.verdicts.rate,
                    "corrected": one.corrected and one.corrected.rate,
                    "interval": one.corrected and [one.corrected.low, one.corrected.high],
                    "more": hide(more_text(one)),
                }
                for one in figures
            ],
        }
        for judge, figures, left in by_judge(end.judges)
    ]


def _groups(end: RunEnd, hide: Hide) -> dict[str, Any]:
    """The rates of all cases, agents, tags and files as far as they have intervals, and the metrics."""
    found = run_groups(end.numbers)
    rated = [("", "all cases", found.all)] if found.all.interval else []
    kinds = {"agent": found.agents if len(found.agents) > 1 else {}, "tag": found.tags, "file": found.files}
    rated += [(kind, name, one) for kind, some in kinds.items() for name, one in some.items() if one.interval]
    return {
        "rates": [
            {
                "kind": kind,
                "name": hide(name),
                "cases": one.cases,
                "rate": one.pass_rate,
                "interval": one.interval,
                "text": group_rate_text(one),
                "likely": between_text(one.interval) if one.interval else "",
            }
            for kind, name, one in rated
        ],
        "metrics": [
            {
                "name": hide(name),
                "runs": one.runs,
                "mean": metric_text(name, one.mean, one.mean_interval),
                "median": metric_text(name, one.median, one.median_interval),
                "p95": metric_text(name, one.p95, one.p95_interval),
            }
            for name, one in found.all.metrics.items()
            if one.runs > 1 or name in named_metrics(found.all.metrics)
        ],
    }


_ROLES = {"assessor": "Judge", "simulator": "Simulator", "generator": "Generator", "role_connector": "Model of roles"}


def _made_with(info: RunInfo, hide: Hide) -> dict[str, Any]:
    """The command, the code and the models that made the run."""
    commit = " ".join(
        filter(None, (info.commit, info.branch and f"({info.branch})", "with changes" * bool(info.dirty)))
    )
    return {
        "command": run_command(info, hide),
        "commit": hide(commit) or None,
        "roles": {label: hide(info.options[name]) for name, label in _ROLES.items() if info.options.get(name)},
        "models": [f"{name}: {model}" if name != model else name for name, model in hide(info.models).items()],
        "python": info.python,
        "platform": info.platform,
        "job": hide(info.ci_job),
    }


_COUNTED = ("passed", "failed", "errors", "blocked", "cancelled", "inconclusive", "skipped")


def verdict(end: RunEnd) -> tuple[str, str]:
    """The verdict on the run: `passed`, `failed`, `incomplete`, `empty` or `running`, and a sentence."""
    counts, missing = end.counts, not_run(end)
    ran = counts["total_cases"] + missing
    if end.running:
        return "running", f"Running: {counts['total_cases']:,} of {counted(ran, 'case')} done"
    failed, broken = counts["failed"], counts["errors"] + counts["blocked"] + counts["cancelled"]
    unfinished = f"{broken + missing} could not be completed" if broken + missing else ""
    if failed:
        words = f"{failed} of {counted(ran, 'case')} failed"
        return "failed", f"{words}, {unfinished}" if unfinished else words
    if unfinished:
        return "incomplete", f"{broken + missing} of {counted(ran, 'case')} could not be completed"
    if by_gates := _gates_verdict(end):
        return by_gates
    if end.comparison is not None and end.exit_code == FAILED:  # the cases and gates are not why
        return "failed", "Worse than the baseline"
    if undecided := counts["inconclusive"]:
        words = f"{undecided} of {counted(ran, 'case')} inconclusive: shown neither good enough nor too bad"
        return "incomplete", words
    if not counts["passed"]:
        return "empty", "Nothing ran"
    if end.reason:
        return "incomplete", "The journal is damaged" if end.damaged else "The run was stopped"
    return "passed", "The case passed" if ran == 1 else f"All {ran:,} cases passed"


def _gates_verdict(end: RunEnd) -> tuple[str, str] | None:
    """The verdict that the gates give on a run whose cases give none; None if all gates passed."""
    outcomes = [gate.outcome for gate in end.gates]
    gates = counted(len(outcomes), "gate")
    if failed := outcomes.count("failed"):
        return "failed", f"{failed} of {gates} failed"
    if undecided := outcomes.count("inconclusive"):
        return "incomplete", f"{undecided} of {gates} inconclusive: shown neither good enough nor too bad"
    return None


@cache
def assets() -> tuple[str, str]:
    """The style and the script of the page."""
    return f"\n{_asset('report.css')}", page_script()


def page_script(further: Sequence[str] = ()) -> str:
    """The script of the page, with `further` parts before the last, which begins. Nothing is seen from outside."""
    *parts, last = map(_asset, SCRIPTS)
    script = "\n".join([*parts, *further, last])
    return f'\n(() => {{\n"use strict";\n{script}}})();\n'


def _asset(name: str) -> str:
    return files("atp.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def policy(style: str, script: str, connect: str = "'none'") -> str:
    """The content security policy: our style and script, by their hashes, and pictures in the page.

    `connect` is where the page may send requests: a file from the disk needs none.
    """
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        f"connect-src {connect}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
