"""The records of a run: its summary, its environment, when and how it ran."""

from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, UnsetType

from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.facts import agent_id, milliseconds, not_run, runs_per_case, timestamp
from atp.report.records.figures import rate_fields
from atp.report.records.record import Count, Interval, Number, Percent, Record, Time
from atp.stats.group_figures import run_groups

_ENVIRONMENT_KEYS = {
    **{key: {"type": "string"} for key in ("user_id", "team_id", "locale")},
    "metadata": {"type": "object"},
}
Environment = Annotated[dict[str, Any], Meta(extra_json_schema={"properties": _ENVIRONMENT_KEYS})]
"""The test environment: `user_id`, `team_id`, `locale`, and other keys as the run has them."""


def environment(info: RunInfo) -> dict[str, Any]:
    """The test environment under the keys of the JSONL test package."""
    names = {"user": "user_id", "team": "team_id"}
    made: dict[str, Any] = {names.get(name, name): value for name, value in info.environment.items()}
    return made


class SummaryRecord(Record, kw_only=True):
    """What the run came to. `planned_runs` is there if a stop left out some trials of the cases that ran.

    `expected_wrong_decisions` is there if gates of cases have a confidence.
    """

    total: Count
    passed: Count
    failed: Count
    errors: Count
    blocked: Count
    cancelled: Count
    inconclusive: Count = 0
    skipped: Count
    skipped_by_test: Count
    quarantined: Count = 0
    total_cases: Count
    total_variations: Count
    total_runs: Count
    passed_runs: Count
    overall_pass_rate: Percent
    pass_rate: Percent | UnsetType | None = UNSET
    pass_rate_interval: Interval | UnsetType = UNSET
    se_runs: Number | UnsetType = UNSET
    stable_cases: Count
    unstable_cases: Count
    expected_wrong_decisions: Number | UnsetType = UNSET
    planned_runs: Count | UnsetType = UNSET
    not_run: Count
    duration_ms: Count
    agent_id: str
    agents: list[str]
    connector: str | None
    runs_per_case: Count | None
    run_id: str
    stopped: str | None
    exit_code: Count

    @classmethod
    def of(cls, end: RunEnd) -> Self:
        """The record of a run's end."""
        info = end.info
        return cls(
            **end.counts,
            **rate_fields(run_groups(end.numbers).all),
            not_run=not_run(end),
            duration_ms=milliseconds(end.duration_ms),
            agent_id=agent_id(info),
            agents=info.agents,
            connector=info.connector,
            runs_per_case=runs_per_case(info),
            run_id=info.id,
            stopped=end.reason,
            exit_code=end.exit_code,
        )


class MetadataRecord(Record, kw_only=True):
    """When and how the run ran."""

    started_at: Time
    completed_at: Time
    version: str
    run_id: str
    input: list[str]
    journal: str
    parallel: Count
    resumed: Count
    rechecks: str | UnsetType = UNSET

    @classmethod
    def of(cls, end: RunEnd) -> Self:
        """The record of a run."""
        info = end.info
        return cls(
            started_at=timestamp(info.started_at),
            completed_at=timestamp(end.ended_at),
            version=info.version,
            run_id=info.id,
            input=info.input,
            journal=info.folder,
            parallel=info.parallel,
            resumed=info.resumed,
            rechecks=info.rechecks or UNSET,
        )
