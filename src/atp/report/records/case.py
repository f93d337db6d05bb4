"""The records of the JSON report and of the JSONL events. The JSON Schema is derived from them.

Each record has an `of` that makes the record from what a run recorded. Secrets are masked when a record is written, by
`Reporter.masked_json`. A key that is absent from the report is `UNSET` in its record.
"""

from collections.abc import Sequence
from math import isfinite
from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from atp.base.errors import Error
from atp.base.json.text import UNREADABLE
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.report.facts import (
    agent_id,
    assertion_errors,
    case_usage,
    left_out,
    messages_count,
    milliseconds,
    no_assertions,
    not_run,
    reason,
    response,
    runs_per_case,
    shown_trial,
    timestamp,
    warnings,
)
from atp.stats.case_counts import case_counts
from atp.stats.comparison import Class, Comparison, Observed
from atp.stats.flaky import FlakyBlame, flakiness
from atp.stats.group_figures import GroupFigures, MetricFigures, figures_of, run_groups
from atp.stats.self_consistency import Flips, check_flips, trial_flips
from atp.stats.stability import (
    Classification,
    Stability,
    by_variation,
    case_score,
    case_stability,
    is_judged,
    missed_score,
    passed_trials,
)
from atp.stats.suite_gates import GateResult
from atp.stats.summary import percent
from atp.suite.case import Case
from atp.suite.metrics import metrics_of, values_by_name
from atp.suite.result import (
    Artifact,
    Blame,
    CaseResult,
    CaseStatus,
    CheckpointResult,
    Decision,
    MadeFile,
    Quarantined,
    Status,
    StoppedBy,
    ToolCall,
    TrialResult,
    Turn,
    Verdict,
)

FORMAT = 1
"""The format of the JSON report and of the JSONL events that this version writes."""

Count = Annotated[int, Meta(ge=0)]
Number = Annotated[float, Meta(ge=0)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0, le=1)]
Interval = Annotated[list[Percent], Meta(min_length=2, max_length=2)]
"""The lower and the upper limit, in percent."""
Limits = Annotated[list[float | None], Meta(min_length=2, max_length=2)]
"""The lower and the upper limit of a figure; null for one that is not known."""
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Yes = Annotated[bool, Meta(extra_json_schema={"const": True})]
_ENVIRONMENT_KEYS = {
    **{key: {"type": "string"} for key in ("user_id", "team_id", "locale")},
    "metadata": {"type": "object"},
}
Environment = Annotated[dict[str, Any], Meta(extra_json_schema={"properties": _ENVIRONMENT_KEYS})]
"""The test environment: `user_id`, `team_id`, `locale`, and other keys as the run has them."""


class Record(Struct, kw_only=True, forbid_unknown_fields=True):
    """An object of a report: closed, with the keys in the order of the fields."""


class AssertionRecord(Record, kw_only=True):
    """A check, and whether it passed."""

    type: str
    value: Any = UNSET
    name: str | UnsetType = UNSET
    passed: bool
    unjudged: Yes | UnsetType = UNSET
    message: str | UnsetType = UNSET
    found: Any = UNSET
    where: str | UnsetType = UNSET
    score: Share | UnsetType = UNSET
    weight: Number | UnsetType = UNSET
    critical: Yes | UnsetType = UNSET
    judged: Yes | UnsetType = UNSET
    evidence: list[str] | UnsetType = UNSET
    assertions: "list[AssertionRecord] | UnsetType" = UNSET

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """The record of a verdict; the parts of a group are records, too."""
        passed = verdict.passed
        made = cls(type=verdict.type, passed=passed)
        if verdict.expected is not None:
            made.value = verdict.expected
        if verdict.name is not None and verdict.name != verdict.expected:
            made.name = verdict.name
        if verdict.outcome == "unjudged":
            made.unjudged = True
        if verdict.message:
            made.message = verdict.message
        if not passed and verdict.found is not None:
            made.found = verdict.found
        if verdict.where is not None:
            made.where = verdict.where
        if verdict.score is not None:
            made.score = verdict.score
        if verdict.weight != 1:
            made.weight = verdict.weight
        if verdict.critical:
            made.critical = True
        if verdict.judged:
            made.judged, made.evidence = True, verdict.evidence
        if verdict.parts:
            made.assertions = [cls.of(part) for part in verdict.parts]
        return made


class TurnRecord(Record, kw_only=True):
    """A turn of the conversation."""

    turn: Count
    input: Any
    output: Any
    duration_ms: Count

    @classmethod
    def of(cls, turn: Turn) -> Self:
        """The record of a turn."""
        took = milliseconds(turn.duration_ms)
        return cls(turn=turn.turn, input=turn.input, output=turn.output, duration_ms=took)


class CheckpointRecord(Record, kw_only=True):
    """A checkpoint of a dialogue."""

    id: str
    reached_at_turn: Count | None
    passed: bool

    @classmethod
    def of(cls, found: CheckpointResult) -> Self:
        """The record of a checkpoint."""
        return cls(id=found.id, reached_at_turn=found.reached_at_turn, passed=found.passed)


class ToolCallRecord(Record, kw_only=True):
    """A call of a tool."""

    name: str
    arguments: Any
    result: Any
    turn: Count
    error: str | UnsetType = UNSET
    duration_ms: Count | UnsetType = UNSET

    @classmethod
    def of(cls, call: ToolCall) -> Self:
        """The record of a tool call."""
        return cls(
            name=call.name,
            arguments=call.arguments,
            result=call.result,
            turn=call.turn,
            error=UNSET if call.error is None else call.error,
            duration_ms=UNSET if call.duration_ms is None else milliseconds(call.duration_ms),
        )


class ArtifactRecord(Record, kw_only=True):
    """An artifact. Its content stays in the journal: with it, a report may have gigabytes."""

    name: str
    kind: Literal["file", "structured", "reference"]
    content_type: str | UnsetType = UNSET
    size_bytes: Count | UnsetType = UNSET
    sha256: str | UnsetType = UNSET

    @classmethod
    def of(cls, artifact: Artifact) -> Self:
        """The record of an artifact."""
        return cls(
            name=artifact.name,
            kind=artifact.kind,
            content_type=UNSET if artifact.content_type is None else artifact.content_type,
            size_bytes=UNSET if artifact.size_bytes is None else artifact.size_bytes,
            sha256=UNSET if artifact.sha256 is None else artifact.sha256,
        )


class FileRecord(Record, kw_only=True):
    """A file that the agent made or changed. The content of a `kept` one is in `files/<sha256>` of the run's folder."""

    name: str
    size_bytes: Count
    sha256: str | UnsetType = UNSET
    kept: Yes | UnsetType = UNSET

    @classmethod
    def of(cls, made: MadeFile) -> Self:
        """The record of a file."""
        return cls(
            name=made.name,
            size_bytes=made.size,
            sha256=UNSET if made.sha256 is None else made.sha256,
            kept=True if made.kept else UNSET,
        )


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


class MetricRecord(Record, kw_only=True):
    """A metric over the judged runs: of one case, or of a group of `cases`. Limits that are not known are null."""

    cases: Count | UnsetType = UNSET
    runs: Count
    mean: float
    mean_interval: Limits | UnsetType = UNSET
    median: float
    median_interval: Limits | UnsetType = UNSET
    p95: float
    p95_interval: Limits | UnsetType = UNSET

    @classmethod
    def of(cls, found: MetricFigures, *, of_case: bool = False) -> Self:
        """The record of a metric. Of a case that ran once, there is nothing to say about other runs."""
        made = cls(runs=found.runs, mean=_rounded(found.mean), median=_rounded(found.median), p95=_rounded(found.p95))
        if not of_case:
            made.cases = found.cases
        if found.runs > 1:
            for name in ("mean_interval", "median_interval", "p95_interval"):
                if (interval := getattr(found, name)) is not None and any(map(isfinite, interval)):
                    setattr(made, name, [_rounded(one) if isfinite(one) else None for one in interval])
        return made


class GroupRecord(Record, kw_only=True):
    """The cases of an agent, of a file or with a tag. The interval is there from 5 cases on."""

    name: str
    cases: Count
    pass_rate: Percent | None
    pass_rate_interval: Interval | UnsetType = UNSET
    se_runs: Number | UnsetType = UNSET
    metrics: dict[str, MetricRecord]

    @classmethod
    def of(cls, name: str, found: GroupFigures) -> Self:
        """The record of a group."""
        metrics = {metric: MetricRecord.of(one) for metric, one in found.metrics.items()}
        return cls(name=name, cases=found.cases, metrics=metrics, **rate_fields(found))


class GroupsRecord(Record, kw_only=True):
    """The figures of all groups of cases."""

    agents: list[GroupRecord]
    files: list[GroupRecord]
    tags: list[GroupRecord]

    @classmethod
    def of(cls, end: RunEnd) -> Self:
        """The record of a run's groups."""
        found = run_groups(end.numbers)
        kinds = {"agents": found.agents, "files": found.files, "tags": found.tags}
        return cls(**{kind: [GroupRecord.of(*one) for one in groups.items()] for kind, groups in kinds.items()})


class GateRecord(Record, kw_only=True):
    """What a gate came to. `value`, `interval` and `with_errors` have the unit that the gate's text has.

    `known_cases` is there if not all cases have a value; the others, if runs ended in errors that are not the agent's:
    `value` is of the `judged_runs`, and `with_errors` says where it would lie if the `errors` had been judged.
    """

    gate: str
    outcome: Decision
    value: float | None
    interval: Limits | None
    basis: Literal["observed", "approximate", "exact"]
    cases: Count
    known_cases: Count | UnsetType = UNSET
    judged_runs: Count | UnsetType = UNSET
    errors: Count | UnsetType = UNSET
    with_errors: list[float] | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    file: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET

    @classmethod
    def of(cls, gate: GateResult) -> Self:
        """The record of a gate."""
        return cls(
            gate=gate.gate,
            outcome=gate.outcome,
            value=None if gate.value is None else _rounded(gate.value),
            interval=None
            if gate.interval is None
            else [None if one is None else _rounded(one) for one in gate.interval],
            basis=gate.basis,
            cases=gate.cases,
            known_cases=UNSET if gate.known_cases == gate.cases else gate.known_cases,
            judged_runs=gate.judged_runs if gate.errors else UNSET,
            errors=gate.errors or UNSET,
            with_errors=UNSET if gate.with_errors is None else list(map(_rounded, gate.with_errors)),
            agent=UNSET if gate.agent is None else gate.agent,
            file=UNSET if gate.file is None else gate.file,
            reason=UNSET if gate.reason is None else gate.reason,
        )


def run_metrics(end: RunEnd) -> dict[str, MetricRecord]:
    """The metrics of all cases of a run."""
    return {name: MetricRecord.of(one) for name, one in run_groups(end.numbers).all.metrics.items()}


class VariationRecord(Record, kw_only=True):
    """The stability of one variation of a prompt."""

    variation: Count
    runs: Count
    planned: Count | UnsetType = UNSET
    passed: Count
    failed: Count
    pass_rate: Percent
    consistency: Share
    output_consistency: Share | None
    stable: bool
    classification: Classification | None
    avg_duration_ms: Count
    min_duration_ms: Count
    max_duration_ms: Count
    std_deviation_ms: Number
    std_deviation_score: Number | UnsetType = UNSET


class RunDetailRecord(Record, kw_only=True):
    """One trial of a case that ran more than once."""

    run: Count
    variation: Count
    status: Status
    duration_ms: Count
    output: Any
    error: str | None
    score: Percent | None
    blame: Blame | UnsetType | None = UNSET
    assertion_errors: list[str] | UnsetType = UNSET
    metrics: dict[str, float] | UnsetType = UNSET
    surplus: Yes | UnsetType = UNSET

    @classmethod
    def of(cls, trial: TrialResult) -> Self:
        """The record of a trial."""
        return cls(
            run=trial.run,
            variation=trial.variation,
            status=trial.status,
            duration_ms=milliseconds(trial.duration_ms),
            output=trial.transcript.output,
            error=trial.error,
            score=trial.score,
            blame=trial.blame or UNSET,
            assertion_errors=assertion_errors(trial) or UNSET,
            metrics=trial.metrics or UNSET,
            surplus=True if trial.surplus else UNSET,
        )


class FlipsRecord(Record, kw_only=True):
    """How often a judge came to another verdict on the same conversation; of a check, or of a case as a whole."""

    check: str | UnsetType = UNSET
    judgings: Count
    flip_rate: Percent
    interval: tuple[Percent, Percent]

    @classmethod
    def of(cls, flips: Flips) -> Self:
        """The record of judgings that came to a verdict at least twice."""
        low, high = (round(100 * one, 1) for one in flips.interval)
        rate = round(100 * (flips.rate or 0.0), 1)
        return cls(check=flips.check or UNSET, judgings=flips.judgings, flip_rate=rate, interval=(low, high))


class SelfConsistencyRecord(FlipsRecord, kw_only=True):
    """What `atp recheck --runs` tells of the judge of a case. The instability of the agent is not in it."""

    checks: list[FlipsRecord]


class FlakyRecord(Record, kw_only=True):
    """A case whose runs differ, and whose fault that is."""

    blame: FlakyBlame


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
            made.missing_checkpoints = [one.id for one in trial.checkpoints if one.required and not one.passed]
        if len(trials) != 1:
            made.duration_ms = milliseconds(sum([one.duration_ms for one in trials]))
            made.attempt = max([one.attempt for one in trials], default=1)
            made.retries = [why for one in trials for why in one.retries]
        if len(trials) != 1 or trial.warnings:
            made.warnings, made.no_assertions = warnings(trials), no_assertions(trials)
        if case.repeated or trial.metrics:
            made.metrics = _case_metrics(case) or UNSET
        if (len(trials) != 1 or trial.rejudged) and (flips := trial_flips(trials)).pairs:
            whole, checks = FlipsRecord.of(flips), [FlipsRecord.of(one) for one in check_flips(trials)]
            made.judge_consistency = SelfConsistencyRecord(**asdict(whole), checks=checks)
        if case.repeated:
            for name, value in stability_fields(case).items():
                setattr(made, name, value)
            if (flaky := flakiness(case)) is not None:
                made.flaky = FlakyRecord(blame=flaky.blame)
            made.run_details = [RunDetailRecord.of(one) for one in trials]
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


class GridCellRecord(Record, kw_only=True):
    """A case against one agent: of how many `runs` it passed. Runs without a verdict have not passed."""

    status: CaseStatus
    passed: Count
    runs: Count


class GridCaseRecord(Record, kw_only=True):
    """A case against each agent, in the order of `agents`; null if it did not run against one."""

    id: str
    file: str
    results: list[GridCellRecord | None]


class GridComparisonRecord(Record, kw_only=True, rename={"kind": "class"}):
    """An agent compared with the first agent of the run, as in `atp compare`: differences are in percentage points.

    `p_value` and `class` are corrected for how many agents are compared with the first (Holm); `interval`, of 95%, is
    not. `regressed` and `improved` count cases.
    """

    kind: Class
    observed: Observed | None
    difference: float | None
    interval: tuple[float, float] | None
    p_value: Share | None
    cases: Count
    regressed: Count
    improved: Count


class GridAgentRecord(Record, kw_only=True):
    """What the cases of one agent come to. `pass_rate` is the mean of the cases' rates, null if none was judged.

    `pass_rate_interval` says where that lies for other cases like these, with 95% confidence; null below 5 cases.
    `compared_with_first` is null for the first agent.
    """

    agent_id: str
    cases: Count
    passed: Count
    pass_rate: Percent | None
    pass_rate_interval: tuple[Percent, Percent] | None
    compared_with_first: GridComparisonRecord | None


class GridRecord(Record, kw_only=True):
    """The agents of a run side by side. In reports of runs with several agents."""

    agents: list[GridAgentRecord]
    cases: list[GridCaseRecord]


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
        made.gates, made.metrics = [GateRecord.of(one) for one in end.gates], run_metrics(end)
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


def environment(info: RunInfo) -> dict[str, Any]:
    """The test environment under the keys of the JSONL test package."""
    names = {"user": "user_id", "team": "team_id"}
    made: dict[str, Any] = {names.get(name, name): value for name, value in info.environment.items()}
    return made


def stability_fields(case: CaseResult) -> dict[str, Any]:
    """The stability fields of a case that ran more than once, and of each of its variations."""
    from atp.stats.case_gate import observed_interval  # only cases that ran more than once need the statistics

    made = _stability_fields(case_stability(case))
    counts = case_counts(case)
    made["judged_runs"] = counts.judged
    if (interval := observed_interval(counts)) is not None:
        made["pass_rate_interval"] = percents(interval)
    if case.min_runs:
        made["stopped_by"] = case.stopped_by
        made["estimate"] = None if case.estimate is None else round(100 * case.estimate, 1)
        made["estimate_interval"] = None if case.interval is None else percents(case.interval)
        made["surplus_runs"] = len(case.trials) - len(case.counted)
    variations = by_variation(case)
    if len(variations) > 1:
        made["iterations"] = len(variations)
        made["variations"] = [
            VariationRecord(variation=number, **_stability_fields(one)) for number, one in variations.items()
        ]
    return made


def rate_fields(group: GroupFigures) -> dict[str, Any]:
    """The pass rate of a group of cases in percent, where it lies, and its standard error over other runs."""
    made: dict[str, Any] = {"pass_rate": None if group.pass_rate is None else round(100 * group.pass_rate, 2)}
    if group.interval is not None:
        made["pass_rate_interval"] = percents(group.interval)
    if group.se_runs is not None:
        made["se_runs"] = round(100 * group.se_runs, 2)
    return made


def _case_metrics(case: CaseResult) -> dict[str, MetricRecord]:
    """The metrics of a case over its judged runs; of one that ran once, those that were given by name."""
    judged = filter(is_judged, case.counted)
    values = values_by_name(metrics_of(trial) if case.repeated else trial.metrics for trial in judged)
    found = {name: figures_of(some, some) for name, some in values.items()}
    return {name: MetricRecord.of(one, of_case=True) for name, one in found.items() if one is not None}


def _rounded(value: float) -> float:
    return round(value, 9)


def percents(interval: tuple[float, float]) -> list[float]:
    """The two limits in percent, with one decimal."""
    return [round(100 * limit, 1) for limit in interval]


def _stability_fields(found: Stability) -> dict[str, Any]:
    same = found.output_consistency
    made: dict[str, Any] = {
        "runs": found.runs,
        **({"planned": found.planned} if found.planned > found.runs else {}),
        "passed": found.passed,
        "failed": found.failed,
        "pass_rate": percent(found.passed, found.planned),
        "consistency": round(found.consistency, 2),
        "output_consistency": None if same is None else round(same, 2),
        "stable": found.stable,
        "classification": found.classification,
        "avg_duration_ms": round(found.avg_duration_ms),
        "min_duration_ms": round(found.min_duration_ms),
        "max_duration_ms": round(found.max_duration_ms),
        "std_deviation_ms": round(found.std_deviation_ms, 1),
    }
    if found.std_deviation_score is not None:
        made["std_deviation_score"] = round(found.std_deviation_score, 2)
    return made


def _mean_dimensions(trials: Sequence[TrialResult]) -> dict[str, float]:
    if len(trials) == 1:
        return {name: round(float(value), 4) for name, value in trials[0].dimensions.items()}
    values = values_by_name(trial.dimensions for trial in trials)
    return {name: round(sum(found) / len(found), 4) for name, found in values.items()}
