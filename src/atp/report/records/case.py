"""The records of a case: one that ran against an agent, and one that did not run."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from msgspec import UNSET, UnsetType

from atp.report.facts import (
    assertion_errors,
    case_usage,
    left_out,
    messages_count,
    milliseconds,
    no_assertions,
    reason,
    response,
    shown_trial,
    warnings,
)
from atp.report.records.figures import MetricRecord
from atp.report.records.record import Count, Interval, Number, Percent, Record, Share
from atp.report.records.stability import (
    FlakyRecord,
    SelfConsistencyRecord,
    VariationRecord,
    judge_consistency,
    stability_fields,
)
from atp.report.records.trial import (
    ArtifactRecord,
    AssertionRecord,
    CheckpointRecord,
    FileRecord,
    RunDetailRecord,
    ToolCallRecord,
    TurnRecord,
)
from atp.stats.flaky import flakiness
from atp.stats.group_figures import figures_of
from atp.stats.stability import Classification, case_score, is_judged, missed_score, passed_trials
from atp.stats.summary import percent
from atp.suite.case import Case
from atp.suite.metrics import metrics_of, values_by_name
from atp.suite.result import Blame, CaseResult, CaseStatus, Quarantined, StoppedBy, TrialResult


class UsageRecord(Record, kw_only=True):
    """What the agent used in all trials of a case, as far as known."""

    input_tokens: Number | UnsetType = UNSET
    output_tokens: Number | UnsetType = UNSET
    total_tokens: Number | UnsetType = UNSET
    cache_creation_tokens: Number | UnsetType = UNSET
    cache_read_tokens: Number | UnsetType = UNSET
    steps: Number | UnsetType = UNSET
    tool_calls: Number | UnsetType = UNSET
    llm_calls: Number | UnsetType = UNSET
    cost_usd: Number | UnsetType = UNSET
    wall_time_seconds: Number | UnsetType = UNSET


class QuarantineRecord(Record, kw_only=True):
    """Why failures of a case are taken out of the exit code."""

    owner: str
    reason: str
    expires: str

    @classmethod
    def of(cls, found: Quarantined) -> Self:
        """The record of an entry of the quarantine file."""
        return cls(owner=found.owner, reason=found.reason, expires=found.expires)


class ResultRecord(Record, kw_only=True):
    """A case that ran against an agent. From `runs` on, the keys are those of a case that ran more than once."""

    id: str
    name: str
    agent_id: str
    status: CaseStatus
    input: Any
    output: Any
    expected: Any
    duration_ms: Count
    error: str | None
    blame: Blame | None
    pass_rate: Percent
    messages_count: Count
    response: str
    assertions: list[AssertionRecord]
    assertion_errors: list[str]
    turns: list[TurnRecord]
    total_turns: Count
    checkpoints: list[CheckpointRecord]
    missing_checkpoints: list[str]
    tool_calls: list[ToolCallRecord]
    artifacts: list[ArtifactRecord]
    files: list[FileRecord] | UnsetType = UNSET
    file: str | None
    line: Count
    tags: list[str]
    user: str | UnsetType = UNSET
    team: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    quarantine: QuarantineRecord | UnsetType = UNSET
    score: Percent | None
    dimensions: dict[str, Share]
    left_out: dict[str, str] | UnsetType = UNSET
    usage: UsageRecord | None
    attempt: Count
    retries: list[str]
    warnings: list[str]
    no_assertions: bool
    metrics: dict[str, MetricRecord] | UnsetType = UNSET
    judge_consistency: SelfConsistencyRecord | UnsetType = UNSET
    flaky: FlakyRecord | UnsetType = UNSET
    runs: Count | UnsetType = UNSET
    planned: Count | UnsetType = UNSET
    passed: Count | UnsetType = UNSET
    failed: Count | UnsetType = UNSET
    consistency: Share | UnsetType = UNSET
    output_consistency: Share | UnsetType | None = UNSET
    stable: bool | UnsetType = UNSET
    classification: Classification | UnsetType | None = UNSET
    avg_duration_ms: Count | UnsetType = UNSET
    min_duration_ms: Count | UnsetType = UNSET
    max_duration_ms: Count | UnsetType = UNSET
    std_deviation_ms: Number | UnsetType = UNSET
    std_deviation_score: Number | UnsetType = UNSET
    iterations: Count | UnsetType = UNSET
    variations: list[VariationRecord] | UnsetType = UNSET
    judged_runs: Count | UnsetType = UNSET
    pass_rate_interval: Interval | UnsetType = UNSET
    stopped_by: StoppedBy | UnsetType | None = UNSET
    estimate: Percent | UnsetType | None = UNSET
    estimate_interval: Interval | UnsetType | None = UNSET
    surplus_runs: Count | UnsetType = UNSET
    run_details: list[RunDetailRecord] | UnsetType = UNSET

    @classmethod
    def of(cls, case: CaseResult) -> Self:
        """The record of a case. Where trials differ, `shown_trial` stands for all of them."""
        trial, trials, counted = shown_trial(case), case.trials, case.counted
        seen, output = trial.transcript, trial.transcript.output
        score = case_score(counted)
        passed = passed_trials(counted, missed_score(case))
        has_passed = case.status == "passed"
        made = cls(
            id=case.case,
            name=case.name or case.case,
            agent_id=case.agent,
            status=case.status,
            input=case.input,
            output=output,
            expected=case.expected,
            duration_ms=milliseconds(trial.duration_ms),
            error=None if has_passed else case.reason or trial.error or case.error,
            blame=None if has_passed else trial.blame,
            pass_rate=percent(passed, len(counted) + case.missing),
            messages_count=messages_count(case, trial),
            response=response(output),
            assertions=list(map(AssertionRecord.of, trial.verdicts)),
            assertion_errors=assertion_errors(trial),
            turns=list(map(TurnRecord.of, seen.turns)),
            total_turns=len(seen.turns),
            checkpoints=list(map(CheckpointRecord.of, trial.checkpoints)),
            missing_checkpoints=[],
            tool_calls=list(map(ToolCallRecord.of, seen.tool_calls)),
            artifacts=list(map(ArtifactRecord.of, seen.artifacts)),
            files=list(map(FileRecord.of, trial.files)) or UNSET,
            file=case.file,
            line=case.line,
            tags=case.tags,
            user=UNSET if case.user is None else case.user,
            team=UNSET if case.team is None else case.team,
            metadata=case.metadata or UNSET,
            quarantine=UNSET if case.quarantine is None else QuarantineRecord.of(case.quarantine),
            score=None if score is None else round(score, 2),
            dimensions=_mean_dimensions(trials),
            left_out=left_out(trials) or UNSET,
            usage=UsageRecord(**used) if (used := case_usage(trials)) else None,
            attempt=trial.attempt,
            retries=trial.retries,
            warnings=[],
            no_assertions=False,
        )
        if trial.checkpoints:
            made.missing_checkpoints = [point.id for point in trial.checkpoints if point.required and not point.passed]
        if len(trials) != 1:
            made.duration_ms = milliseconds(sum([run.duration_ms for run in trials]))
            made.attempt = max([run.attempt for run in trials], default=1)
            made.retries = [why for run in trials for why in run.retries]
        if len(trials) != 1 or trial.warnings:
            made.warnings, made.no_assertions = warnings(trials), no_assertions(trials)
        if case.repeated or trial.metrics:
            made.metrics = _case_metrics(case) or UNSET
        if (len(trials) != 1 or trial.rejudged) and (consistency := judge_consistency(trials)) is not None:
            made.judge_consistency = consistency
        if case.repeated:
            for name, value in stability_fields(case).items():
                setattr(made, name, value)
            if (flaky := flakiness(case)) is not None:
                made.flaky = FlakyRecord(blame=flaky.blame)
            made.run_details = list(map(RunDetailRecord.of, trials))
        return made


class SkippedRecord(Record, kw_only=True):
    """A case that did not run. `agent_id` is there if the test itself asked to be left out, when it ran."""

    id: str
    name: str
    status: Literal["skipped"] = "skipped"
    file: str | None
    line: Count
    tags: list[str]
    agent_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET

    @classmethod
    def of(cls, file: str | None, case: Case) -> Self:
        """The record of a case that its file leaves out."""
        return cls(
            id=case.id,
            name=case.name or case.id,
            file=file,
            line=case.place.line,
            tags=case.tags,
            reason=UNSET if case.skip_reason is None else case.skip_reason,
        )

    @classmethod
    def of_result(cls, case: CaseResult) -> Self:
        """The record of a case that was left out when it ran, by the test itself, against one agent."""
        return cls(
            id=case.case,
            name=case.name or case.case,
            file=case.file,
            line=case.line,
            tags=case.tags,
            agent_id=case.agent,
            reason=reason(case),
        )


def _case_metrics(case: CaseResult) -> dict[str, MetricRecord]:
    """The metrics of a case over its judged runs; of one that ran once, those that were given by name."""
    judged = filter(is_judged, case.counted)
    values = values_by_name(metrics_of(trial) if case.repeated else trial.metrics for trial in judged)
    found = {name: figures_of(some, some) for name, some in values.items()}
    return {name: MetricRecord.of(figures, of_case=True) for name, figures in found.items() if figures is not None}


def _mean_dimensions(trials: Sequence[TrialResult]) -> dict[str, float]:
    if len(trials) == 1:
        return {name: round(float(value), 4) for name, value in trials[0].dimensions.items()}
    values = values_by_name(trial.dimensions for trial in trials)
    return {name: round(sum(found) / len(found), 4) for name, found in values.items()}
