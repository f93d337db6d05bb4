"""The JSON report and the JSONL events, made of all other records. The JSON Schema is derived from them."""

from typing import Any, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from atp.base.errors import Error
from atp.base.json.text import UNREADABLE
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.facts import agent_id, runs_per_case, timestamp
from atp.report.records.case import ResultRecord, SkippedRecord
from atp.report.records.figures import GateRecord, GridRecord, GroupsRecord, MetricRecord, run_metrics
from atp.report.records.judges import JudgeRecord
from atp.report.records.record import Count, Record, Time
from atp.report.records.run import Environment, MetadataRecord, SummaryRecord, environment
from atp.stats.comparison import Comparison

FORMAT = 1
"""The format of the JSON report and of the JSONL events that this version writes."""


class Report(Record, kw_only=True):
    """A JSON report. Reports from before there was a `format` have format 0; the keys are the same."""

    format: Count = 0
    summary: SummaryRecord
    environment: Environment
    results: list[ResultRecord]
    skipped: list[SkippedRecord]
    gates: list[GateRecord] | UnsetType = UNSET
    metrics: dict[str, MetricRecord] | UnsetType = UNSET
    groups: GroupsRecord | UnsetType = UNSET
    judges: list[JudgeRecord] | UnsetType = UNSET
    comparison: Comparison | UnsetType = UNSET
    grid: GridRecord | UnsetType = UNSET
    metadata: MetadataRecord


class StartEvent(Record, kw_only=True, tag_field="type", tag="start"):
    """The run started."""

    format: Count = 0
    timestamp: Time
    agent_id: str
    total_cases: Count
    agents: list[str]
    total_runs: Count
    runs_per_case: Count | None
    run_id: str
    input: list[str]
    connector: str | None
    environment: Environment
    resumed: Count
    rechecks: str | UnsetType = UNSET
    version: str

    @classmethod
    def of(cls, info: RunInfo) -> Self:
        """The event of a run that starts."""
        return cls(
            format=FORMAT,
            timestamp=timestamp(info.started_at),
            agent_id=agent_id(info),
            total_cases=info.cases,
            agents=info.agents,
            total_runs=info.trials,
            runs_per_case=runs_per_case(info),
            run_id=info.id,
            input=info.input,
            connector=info.connector,
            environment=environment(info),
            resumed=info.resumed,
            rechecks=info.rechecks or UNSET,
            version=info.version,
        )


class SkippedEvent(SkippedRecord, kw_only=True, tag_field="type", tag="skipped"):
    """A case did not run."""


class ResultEvent(ResultRecord, kw_only=True, tag_field="type", tag="result"):
    """A case ended."""


class SummaryEvent(SummaryRecord, kw_only=True, tag_field="type", tag="summary"):
    """The run ended."""

    gates: list[GateRecord] | UnsetType = UNSET
    metrics: dict[str, MetricRecord] | UnsetType = UNSET

    @classmethod
    def of(cls, end: RunEnd) -> Self:
        """The event of a run's end."""
        made = super().of(end)
        made.gates, made.metrics = list(map(GateRecord.of, end.gates)), run_metrics(end)
        return made


Event = StartEvent | SkippedEvent | ResultEvent | SummaryEvent


class ReportError(Error):
    """A JSON report that can't be read."""


def read_report(data: bytes) -> Report:
    """The records of a JSON report. Raises `ReportError` if the report is of a newer format, or no report."""
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found <= FORMAT:
            return msgspec.json.decode(data, type=Report)
    except UNREADABLE as error:
        raise ReportError(f"this is no JSON report: {error}", "write one with -o report.json") from error
    message = f"the report has format {found}, and this version of ATP reads reports up to format {FORMAT}"
    raise ReportError(message, "read it with the version that wrote it, or a newer one")


class _Format(Struct):
    format: int = 0


def report_schema() -> dict[str, Any]:
    """The JSON Schema of the JSON report."""
    return _schema("ATP report", Report)


def event_schema() -> dict[str, Any]:
    """The JSON Schema of a line of the JSONL report, and of `--json`."""
    return _schema("ATP event", Event)


def _schema(title: str, record: Any) -> dict[str, Any]:
    (schema,), definitions = msgspec.json.schema_components([record], ref_template="#/$defs/{name}")
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **schema, "$defs": definitions}
