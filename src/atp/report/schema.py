"""The JSON Schema of the JSON report, and of a line of the JSONL report. Their objects are closed."""

from typing import Any, get_args

from atp.suite.result import Blame, Status, Usage

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_WHOLE: Schema = {"type": "integer", "minimum": 0}
_NUMBER: Schema = {"type": "number", "minimum": 0}
_PERCENT: Schema = {"type": "number", "minimum": 0, "maximum": 100}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_YES_NO: Schema = {"type": "boolean"}
_ANY: Schema = {}
_TIME: Schema = {"type": "string", "format": "date-time"}
_STATUS: Schema = {"enum": list(get_args(Status))}
_CLASS: Schema = {"enum": ["stable", "mostly_stable", "unstable", "highly_unstable"]}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_BLAME = _or_null({"enum": list(get_args(Blame))})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(always: dict[str, Schema], sometimes: dict[str, Schema] | None = None) -> Schema:
    """A closed object: keys that are always there, and keys that may be."""
    more = sometimes or {}
    closed = {"required": list(always), "additionalProperties": False}
    return {"type": "object", "properties": {**always, **more}, **closed}


_COUNTS = (
    "total",
    "passed",
    "failed",
    "errors",
    "blocked",
    "cancelled",
    "skipped",
    "skipped_by_test",
    "total_cases",
    "total_variations",
    "total_runs",
    "passed_runs",
    "stable_cases",
    "unstable_cases",
    "not_run",
    "duration_ms",
    "runs_per_case",
    "exit_code",
)
_SUMMARY = {
    **dict.fromkeys(_COUNTS, _WHOLE),
    "overall_pass_rate": _PERCENT,
    "agent_id": _TEXT,
    "agents": _TEXTS,
    "connector": _or_null(_TEXT),
    "run_id": _TEXT,
    "stopped": _or_null(_TEXT),
}
_STOPPED = {"planned_runs": _WHOLE}
"""What is said beside that of a run that was stopped between the trials of a case."""
_ENVIRONMENT: Schema = {
    "type": "object",
    "properties": {"user_id": _TEXT, "team_id": _TEXT, "locale": _TEXT, "metadata": {"type": "object"}},
}
_START = {
    "timestamp": _TIME,
    "agent_id": _TEXT,
    "total_cases": _WHOLE,
    "agents": _TEXTS,
    "total_runs": _WHOLE,
    "runs_per_case": _WHOLE,
    "run_id": _TEXT,
    "input": _TEXTS,
    "connector": _or_null(_TEXT),
    "environment": _ENVIRONMENT,
    "resumed": _WHOLE,
    "version": _TEXT,
}
_METADATA = {
    "started_at": _TIME,
    "completed_at": _TIME,
    "version": _TEXT,
    "run_id": _TEXT,
    "input": _TEXTS,
    "journal": _TEXT,
    "parallel": _WHOLE,
    "resumed": _WHOLE,
}
_SKIPPED = {
    "id": _TEXT,
    "name": _TEXT,
    "status": {"const": "skipped"},
    "file": _or_null(_TEXT),
    "line": _WHOLE,
    "tags": _TEXTS,
}
_SKIPPED_BY_TEST = {"agent_id": _TEXT, "reason": _TEXT}
_ASSERTION = _object(
    {"type": _TEXT, "passed": _YES_NO},
    {
        "value": _ANY,
        "name": _TEXT,
        "unjudged": {"const": True},
        "message": _TEXT,
        "found": _ANY,
        "where": _TEXT,
        "score": _SHARE,
        "weight": _NUMBER,
        "critical": {"const": True},
        "judged": {"const": True},
        "evidence": _TEXTS,
        "assertions": _list({"$ref": "#/$defs/assertion"}),
    },
)
_USAGE = _object({}, dict.fromkeys(Usage.__struct_fields__, _NUMBER))
_STABILITY = {
    "runs": _WHOLE,
    "passed": _WHOLE,
    "failed": _WHOLE,
    "consistency": _SHARE,
    "output_consistency": _or_null(_SHARE),
    "stable": _YES_NO,
    "classification": _or_null(_CLASS),
    "avg_duration_ms": _WHOLE,
    "min_duration_ms": _WHOLE,
    "max_duration_ms": _WHOLE,
    "std_deviation_ms": _NUMBER,
}
_CUT_SHORT = {"planned": _WHOLE}
"""What is said beside that of a case which a stop has cut short."""
_DETAIL = _object(
    {
        "run": _WHOLE,
        "variation": _WHOLE,
        "status": _STATUS,
        "duration_ms": _WHOLE,
        "output": _ANY,
        "error": _or_null(_TEXT),
        "score": _or_null(_PERCENT),
    },
    {"blame": _BLAME, "assertion_errors": _TEXTS},
)
_RESULT = {
    "id": _TEXT,
    "name": _TEXT,
    "agent_id": _TEXT,
    "status": _STATUS,
    "input": _ANY,
    "output": _ANY,
    "expected": _ANY,
    "duration_ms": _WHOLE,
    "error": _or_null(_TEXT),
    "blame": _BLAME,
    "pass_rate": _PERCENT,
    "messages_count": _WHOLE,
    "response": _TEXT,
    "assertions": _list({"$ref": "#/$defs/assertion"}),
    "assertion_errors": _TEXTS,
    "turns": _list(_object({"turn": _WHOLE, "input": _ANY, "output": _ANY, "duration_ms": _WHOLE})),
    "total_turns": _WHOLE,
    "checkpoints": _list(_object({"id": _TEXT, "reached_at_turn": _or_null(_WHOLE), "passed": _YES_NO})),
    "missing_checkpoints": _TEXTS,
    "tool_calls": _list(
        _object(
            {"name": _TEXT, "arguments": _ANY, "result": _ANY, "turn": _WHOLE},
            {"error": _TEXT, "duration_ms": _WHOLE},
        )
    ),
    "artifacts": _list(
        _object(
            {"name": _TEXT, "kind": {"enum": ["file", "structured", "reference"]}},
            {"content_type": _TEXT, "size_bytes": _WHOLE, "sha256": _TEXT},
        )
    ),
    "file": _or_null(_TEXT),
    "line": _WHOLE,
    "tags": _TEXTS,
    "score": _or_null(_PERCENT),
    "dimensions": {"type": "object", "additionalProperties": _SHARE},
    "usage": _or_null(_USAGE),
    "attempt": _WHOLE,
    "retries": _TEXTS,
    "warnings": _TEXTS,
    "no_assertions": _YES_NO,
}
_REPEATED = {
    **_STABILITY,
    **_CUT_SHORT,
    "std_deviation_score": _NUMBER,
    "iterations": _WHOLE,
    "variations": _list(
        _object(
            {"variation": _WHOLE, "pass_rate": _PERCENT, **_STABILITY}, {**_CUT_SHORT, "std_deviation_score": _NUMBER}
        )
    ),
    "run_details": _list(_DETAIL),
}


def report_schema() -> Schema:
    """Of `-o x.json`."""
    keys = {
        "summary": _object(_SUMMARY, _STOPPED),
        "environment": _ENVIRONMENT,
        "results": _list(_object(_RESULT, _REPEATED)),
        "skipped": _list(_object(_SKIPPED, _SKIPPED_BY_TEST)),
        "metadata": _object(_METADATA),
    }
    return _schema("ATP report", _object(keys))


def event_schema() -> Schema:
    """Of a line of `-o x.jsonl`, or of `--json`."""
    kinds = {
        "start": _object({"type": {"const": "start"}, **_START}),
        "skipped": _object({"type": {"const": "skipped"}, **_SKIPPED}, _SKIPPED_BY_TEST),
        "result": _object({"type": {"const": "result"}, **_RESULT}, _REPEATED),
        "summary": _object({"type": {"const": "summary"}, **_SUMMARY}, _STOPPED),
    }
    return _schema("ATP event", {"oneOf": list(kinds.values())})


def _schema(title: str, schema: Schema) -> Schema:
    return {"$schema": _DIALECT, "title": title, **schema, "$defs": {"assertion": _ASSERTION}}
