"""The records of one trial: its verdicts, turns, tool calls, checkpoints and files."""

from typing import Any, Literal, Self

from msgspec import UNSET, UnsetType

from atp.report.facts import assertion_errors, milliseconds
from atp.report.records.record import Count, Number, Percent, Record, Share, Yes
from atp.suite.result import (
    Artifact,
    Blame,
    CheckpointResult,
    MadeFile,
    Status,
    ToolCall,
    TrialResult,
    Turn,
    Verdict,
)


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
