"""The result of a case as an object: document 4's keys, document 5's, and ours; the same in every format."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import to_builtins

from atp.base.json_text import encode
from atp.base.secrets import Hide
from atp.report.stability_object import stability_object
from atp.report.used import agent_usage, total_usage
from atp.stats.stability import blames_agent, case_score
from atp.stats.summary import percent
from atp.suite.result import Artifact, CaseResult, CheckpointResult, ToolCall, TrialResult, Turn, Verdict

NO_ASSERTIONS = "no assertions"
"""The warning of a trial that nothing was checked in."""


def result_object(case: CaseResult, hide: Hide) -> dict[str, Any]:
    """Everything a reader needs to know of a case, without secrets."""
    trial, trials = shown_trial(case), case.trials
    seen = trial.transcript
    output = hide(seen.output)
    score = case_score(trials)
    took, passed, attempt = 0.0, 0, 1
    for one in trials:
        took += one.duration_ms
        passed += one.status == "passed"
        attempt = one.attempt if one.attempt > attempt else attempt
    made: dict[str, Any] = {
        "id": hide(case.case),
        "name": hide(case.name or case.case),
        "agent_id": hide(case.agent),
        "status": case.status,
        "input": hide(case.input),
        "output": output,
        "expected": hide(case.expected),
        "duration_ms": milliseconds(took),
        "error": None if case.status == "passed" else hide(trial.error or case.error),
        "blame": None if case.status == "passed" else trial.blame,
        "pass_rate": percent(passed, len(trials) + case.missing),
        "messages_count": messages_count(case, trial),
        "response": response(output),
        "assertions": _each(_assertion, trial.verdicts, hide),
        "assertion_errors": assertion_errors(trial, hide),
        "turns": _each(_turn, seen.turns, hide),
        "total_turns": len(seen.turns),
        "checkpoints": _each(_checkpoint, trial.checkpoints, hide),
        "missing_checkpoints": _missing(trial.checkpoints, hide),
        "tool_calls": _each(_tool_call, seen.tool_calls, hide),
        "artifacts": _each(_artifact, seen.artifacts, hide),
        "file": hide(case.file),
        "line": case.line,
        "tags": hide(case.tags),
        "score": None if score is None else _rounded(score, 2),
        "dimensions": _dimensions(trials),
        "usage": usage(trials),
        "attempt": attempt,
        "retries": [hide(why) for one in trials for why in one.retries],
        "warnings": hide(warnings(trials)),
        "no_assertions": no_assertions(trials),
    }
    if case.repeated:
        made |= stability_object(case)
        made["run_details"] = _each(_detail, trials, hide)
    return made


def _each(make: Callable[[Any, Hide], dict[str, Any]], items: Sequence[Any], hide: Hide) -> list[dict[str, Any]]:
    """An object for each of them; most results have none of most."""
    return [make(one, hide) for one in items] if items else []


def shown_trial(case: CaseResult) -> TrialResult:
    """The trial that stands for its case: the first that ended as the case did, by the agent's doing if that counts."""
    if len(case.trials) == 1:
        return case.trials[0]
    alike = [trial for trial in case.trials if trial.status == case.status] or case.trials
    if not alike:
        return TrialResult(key="", agent=case.agent, case=case.case, status=case.status)
    return alike[0] if len(alike) == 1 else next(filter(blames_agent, alike), alike[0])


def is_failure(case: CaseResult) -> bool:
    """Whether the summary counts it as failed: it is the agent's doing."""
    if case.status == "error":
        return any(blames_agent(trial) for trial in case.trials)
    return case.status in ("failed", "timeout")


def reason(case: CaseResult, hide: Hide) -> str:
    """Why a case did not pass, in a sentence."""
    return str(hide(shown_trial(case).error or case.reason or case.status))


def milliseconds(value: float) -> int:
    """A duration as the documents write it: a whole number."""
    return round(value)


def messages_count(case: CaseResult, trial: TrialResult) -> int:
    """How many messages the agent was last given (document 5 counts the history, not the answer)."""
    messages = trial.transcript.messages
    if messages and len(trial.transcript.turns) < 2 and (given := given_messages(case)):
        return given
    for number in range(len(messages), 0, -1):
        if messages[number - 1].get("role") == "user":
            return number
    return 0


def given_messages(case: CaseResult) -> int:
    """The length of the message history that the case begins with; 0 if it has none."""
    given = case.input
    return len(given) if isinstance(given, list) and given and isinstance(given[0], dict) else 0


def response(output: Any) -> str:
    """The answer in words: a text as it is, any other value as JSON."""
    if isinstance(output, str):
        return output
    return "" if output is None else encode(output).decode()


def assertion_errors(trial: TrialResult, hide: Hide) -> list[str]:
    """Why the failed checks failed."""
    return [hide(one.message or f"{one.type} failed") for one in trial.verdicts if one.outcome == "failed"]


def usage(trials: list[TrialResult]) -> dict[str, Any] | None:
    """What all trials used together, as far as it is known."""
    total = agent_usage(trials[0]) if len(trials) == 1 else total_usage(map(agent_usage, trials))
    known: dict[str, Any] = to_builtins(total)  # which leaves out what is unknown
    return known or None


def warnings(trials: list[TrialResult]) -> list[str]:
    """What could not be observed, each said once."""
    found = [warning for trial in trials for warning in trial.warnings if warning != NO_ASSERTIONS]
    return list(dict.fromkeys(found)) if found else found


def no_assertions(trials: Iterable[TrialResult]) -> bool:
    """Whether it passed, or didn't, without anything being checked."""
    for trial in trials:  # noqa: SIM110  (a generator costs more than what it looks at)
        if NO_ASSERTIONS in trial.warnings:
            return True
    return False


def _dimensions(trials: list[TrialResult]) -> dict[str, float]:
    if len(trials) == 1:
        return {name: _rounded(float(value), 4) for name, value in trials[0].dimensions.items()}
    values: dict[str, list[float]] = {}
    for trial in trials:
        for name, value in trial.dimensions.items():
            values.setdefault(name, []).append(value)
    return {name: _rounded(sum(found) / len(found), 4) for name, found in values.items()}


def _rounded(value: float, digits: int) -> float:
    return value if value % 1 == 0 else round(value, digits)  # most are whole, and to round them takes a while


def _assertion(verdict: Verdict, hide: Hide) -> dict[str, Any]:
    made: dict[str, Any] = {"type": verdict.type}
    if verdict.expected is not None:
        made["value"] = hide(verdict.expected)
    if verdict.name is not None and verdict.name != verdict.expected:
        made["name"] = hide(verdict.name)
    made["passed"] = verdict.passed
    if verdict.outcome == "unjudged":
        made["unjudged"] = True
    if verdict.message:
        made["message"] = hide(verdict.message)
    if not verdict.passed and verdict.found is not None:
        made["found"] = hide(verdict.found)
    if verdict.where is not None:
        made["where"] = hide(verdict.where)
    if verdict.score is not None:
        made["score"] = verdict.score
    if verdict.weight != 1:
        made["weight"] = verdict.weight
    if verdict.critical:
        made["critical"] = True
    if verdict.judged:
        made |= {"judged": True, "evidence": hide(verdict.evidence)}
    if verdict.parts:
        made["assertions"] = [_assertion(part, hide) for part in verdict.parts]
    return made


def _checkpoint(point: CheckpointResult, hide: Hide) -> dict[str, Any]:
    return {"id": hide(point.id), "reached_at_turn": point.reached_at_turn, "passed": point.passed}


def _missing(points: list[CheckpointResult], hide: Hide) -> list[str]:
    return [hide(one.id) for one in points if one.required and not one.passed] if points else []


def _turn(turn: Turn, hide: Hide) -> dict[str, Any]:
    return {
        "turn": turn.turn,
        "input": hide(turn.input),
        "output": hide(turn.output),
        "duration_ms": milliseconds(turn.duration_ms),
    }


def _tool_call(call: ToolCall, hide: Hide) -> dict[str, Any]:
    made = {"name": hide(call.name), "arguments": hide(call.arguments), "result": hide(call.result), "turn": call.turn}
    if call.error is not None:
        made["error"] = hide(call.error)
    if call.duration_ms is not None:
        made["duration_ms"] = milliseconds(call.duration_ms)
    return made


def _artifact(artifact: Artifact, hide: Hide) -> dict[str, Any]:
    """What there is; the content stays in the journal, where it doesn't make a report of gigabytes."""
    made: dict[str, Any] = {"name": hide(artifact.name), "kind": artifact.kind}
    for name in ("content_type", "size_bytes", "sha256"):
        if (value := getattr(artifact, name)) is not None:
            made[name] = hide(value)
    return made


def _detail(trial: TrialResult, hide: Hide) -> dict[str, Any]:
    made = {
        "run": trial.run,
        "variation": trial.variation,
        "status": trial.status,
        "duration_ms": milliseconds(trial.duration_ms),
        "output": hide(trial.transcript.output),
        "error": hide(trial.error),
        "score": trial.score,
    }
    if trial.blame is not None:
        made["blame"] = trial.blame
    if failures := assertion_errors(trial, hide):
        made["assertion_errors"] = failures
    return made
