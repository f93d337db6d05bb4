"""A run as objects: how it began, what it came to, and where it ran."""

from datetime import UTC, datetime
from typing import Any

from atp.base.secrets import Hide
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.result_object import milliseconds, reason
from atp.suite.case import Case
from atp.suite.result import CaseResult


def start_object(info: RunInfo, hide: Hide) -> dict[str, Any]:
    """Document 4's `start`."""
    return {
        "timestamp": timestamp(info.started_at),
        "agent_id": hide(agent_id(info)),
        "total_cases": info.cases,
        "agents": hide(info.agents),
        "total_runs": info.trials,
        "runs_per_case": info.runs,
        "run_id": info.id,
        "input": hide(info.input),
        "connector": hide(info.connector),
        "environment": environment_object(info, hide),
        "resumed": info.resumed,
        "version": info.version,
    }


def summary_object(end: RunEnd, hide: Hide) -> dict[str, Any]:
    """Document 4's `summary`: the counts, and what was run."""
    info = end.info
    return {
        **end.counts,
        "not_run": not_run(end),
        "duration_ms": milliseconds(end.duration_ms),
        "agent_id": hide(agent_id(info)),
        "agents": hide(info.agents),
        "connector": hide(info.connector),
        "runs_per_case": info.runs,
        "run_id": info.id,
        "stopped": hide(end.reason),
        "exit_code": end.exit_code,
    }


def not_run(end: RunEnd) -> int:
    """How many cases were planned and never came to an end, because the run was stopped."""
    ended = end.counts.get("total_cases", end.info.cases) + end.counts.get("skipped_by_test", 0)
    return max(0, end.info.cases - int(ended))


def environment_object(info: RunInfo, hide: Hide) -> dict[str, Any]:
    """Document 4's `environment`: `user_id`, `team_id`, `locale`, and the rest as it is called."""
    names = {"user": "user_id", "team": "team_id"}
    made: dict[str, Any] = hide({names.get(name, name): value for name, value in info.environment.items()})
    return made


def metadata_object(end: RunEnd, hide: Hide) -> dict[str, Any]:
    """Document 4's `metadata`."""
    info = end.info
    return {
        "started_at": timestamp(info.started_at),
        "completed_at": timestamp(end.ended_at),
        "version": info.version,
        "run_id": info.id,
        "input": hide(info.input),
        "journal": hide(info.folder),
        "parallel": info.parallel,
        "resumed": info.resumed,
    }


def skipped_object(file: str | None, case: Case, hide: Hide) -> dict[str, Any]:
    """A case that its file leaves out."""
    made = {
        "id": hide(case.id),
        "name": hide(case.name or case.id),
        "status": "skipped",
        "file": hide(file),
        "line": case.place.line,
        "tags": hide(case.tags),
    }
    return made if case.skip_reason is None else {**made, "reason": hide(case.skip_reason)}


def skipped_test_object(case: CaseResult, hide: Hide) -> dict[str, Any]:
    """A case that was left out when it ran, by the test itself, against one agent."""
    return {
        "id": hide(case.case),
        "name": hide(case.name or case.case),
        "status": "skipped",
        "file": hide(case.file),
        "line": case.line,
        "tags": hide(case.tags),
        "agent_id": hide(case.agent),
        "reason": reason(case, hide),
    }


def agent_id(info: RunInfo) -> str:
    """The agent's name, or all of them."""
    return ", ".join(info.agents)


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC, as document 4 writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
