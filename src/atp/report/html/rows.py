"""The rows of the HTML report's table: what the table, the filters and the charts show of each case."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from atp.base.secrets import Hide
from atp.base.text import cut
from atp.report.facts import (
    agent_usage,
    below_min_score,
    flaky_text,
    no_assertions,
    quarantine_text,
    reason,
    shown_trial,
    total_usage,
    warnings,
)
from atp.report.records.case import SkippedRecord
from atp.report.records.stability import stability_fields
from atp.stats.stability import case_score
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialResult, Usage

LONGEST = 400
"""The longest text in a row."""
MOST_TOOLS = 1000
"""How many different tools of a case can be searched for. More is an agent that makes names up."""
Spot = tuple[int, int]
"""Where details are: the number of the chunk, and the index in it."""


def case_row(case: CaseResult, hide: Hide, spot: Spot, spots: Sequence[Spot]) -> dict[str, Any]:
    """The row of a case, with the places of its details and those of its trials. Empty values are left out."""
    trial = shown_trial(case)
    score = case_score(case.counted)
    made: dict[str, Any] = {
        "id": cut(hide(case.case), LONGEST),
        "name": cut(hide(case.name), LONGEST) if case.name != case.case else None,
        "agent": cut(hide(case.agent), LONGEST),
        "file": hide(case.file),
        "line": case.line,
        "flaky": flaky_text(case),
        "quarantine": cut(hide(told), LONGEST) if (told := quarantine_text(case)) else None,
        "tags": [cut(hide(tag), LONGEST) for tag in case.tags],
        "status": case.status,
        "blame": trial.blame if case.status != "passed" else None,
        "error": cut(hide(reason(case)), LONGEST) if case.status != "passed" else None,
        "duration_ms": round(sum(one.duration_ms for one in case.trials), 1),
        "score": None if score is None else round(score, 2),
        "low": below_min_score(case) or None,
        "checks": _checks(trial),
        "usage": _spent([agent_usage(one) for one in case.trials]),
        "role_usage": _spent([one.role_usage for one in case.trials if one.role_usage is not None]),
        "turns": max((len(one.transcript.turns) for one in case.trials), default=0),
        "tools": _tools(case, hide),
        "retries": sum(len(one.retries) for one in case.trials),
        "warnings": len(warnings(case.trials)),
        "no_assertions": no_assertions(case.trials),
        "at": spot,
        "trials": [_trial(one, place) for one, place in zip(case.trials, spots, strict=True)],
    }
    if case.repeated:
        found = stability_fields(case)
        found.pop("variations", None)
        made["stability"] = found
    return {name: value for name, value in made.items() if value not in (None, [], {}, 0, "") or name == "score"}


def skipped_row(file: str | None, case: Case, hide: Hide) -> SkippedRecord:
    """The row of a case that its file leaves out."""
    row: SkippedRecord = hide(SkippedRecord.of(file, case))
    return replace(
        row, id=cut(row.id, LONGEST), name=cut(row.name, LONGEST), tags=[cut(tag, LONGEST) for tag in row.tags]
    )


def _trial(trial: TrialResult, spot: Spot) -> list[Any]:
    """Status, milliseconds, variation, run, score and place of a trial; true at the end if the trial is surplus.

    A list, because a report has very many.
    """
    score = None if trial.score is None else round(trial.score, 1)
    surplus = [True] if trial.surplus else []
    return [trial.status, round(trial.duration_ms, 1), trial.variation, trial.run, score, *spot, *surplus]


def _tools(case: CaseResult, hide: Hide) -> list[str]:
    """The names of the tools that the trials called, each once, for the search."""
    names = dict.fromkeys(cut(hide(call.name), LONGEST) for one in case.trials for call in one.transcript.tool_calls)
    return list(names)[:MOST_TOOLS]


def _checks(trial: TrialResult) -> list[int] | None:
    """How many checks passed, of how many."""
    return [sum(one.passed for one in trial.verdicts), len(trial.verdicts)] if trial.verdicts else None


def _spent(all_usage: Sequence[Usage]) -> dict[str, Any]:
    """Money and tokens, as far as known."""
    total = total_usage(all_usage)
    known = {"cost_usd": None if total.cost_usd is None else round(total.cost_usd, 9), "tokens": total.tokens}
    return {name: value for name, value in known.items() if value is not None}
