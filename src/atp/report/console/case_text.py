"""A case on the console: its status, its checks, its failures, its conversation."""

from collections.abc import Container, Iterator
from typing import Any

from atp.base.durations import elapsed
from atp.base.numbers import counted
from atp.base.secrets import Hide
from atp.base.text import Line, one_line, some_lines, value_text
from atp.report.console.failure_text import FailedChecks
from atp.report.facts import (
    below_min_score,
    flaky_text,
    given_messages,
    judge_flips,
    left_out,
    long_run_text,
    messages_count,
    no_assertions,
    quarantine_text,
    reason,
    shown_trial,
    stability_text,
    warnings,
)
from atp.stats.stability import blames_agent
from atp.suite.result import CaseResult, ToolCall, TrialResult

MOST_WARNINGS = 5
MOST_SAID_AGAIN = 160
"""How much of a reason the list at the end shows."""
MOST_SAID = 200
"""How many lines of a conversation are shown: its last ones."""
MOST_LOGS = 10
_INDENT = "    "

_MARKS = {
    "passed": ("✓", "passed"),
    "failed": ("✗", "failed"),
    "timeout": ("✗", "failed"),
    "error": ("!", "error"),
    "blocked": ("!", "error"),
    "cancelled": ("-", "other"),
    "inconclusive": ("?", "error"),
    "skipped": ("-", "other"),
}


def mark(case: CaseResult, trial: TrialResult) -> tuple[str, str]:
    """The sign of a case and its colour: `✗` for what the summary counts as failed, errors of the agent included."""
    return _MARKS["failed" if blames_agent(trial) and case.status == "error" else case.status]


def title(name: str, identity: str, hide: Hide) -> str:
    """`[id] name`, or `[id]` if the name is the same."""
    shown = f"[{one_line(hide(identity), 80)}]"
    return f"{shown} {one_line(hide(name), 120)}" if name and name != identity else shown


def case_lines(
    case: CaseResult, hide: Hide, *, name_agent: bool = False, name_file: bool = False, detail: int = 0
) -> list[Line]:
    """The lines about a case. `detail`: 0 for its result, 1 for how many checks it had, too, 2 for its conversation.

    With 1 they have the form of the JSONL format.
    """
    trial = shown_trial(case)
    sign, look = mark(case, trial)
    by = f" – {one_line(hide(case.agent), 60)}" if name_agent else ""
    if case.status == "skipped":  # by the test itself, when it ran
        why = some_lines(hide(trial.error or ""), "  ")
        return [(f"{sign} {title(case.name, case.case, hide)}{by} (skipped)", look), *why]
    note = f"{case.status}, " if case.status in ("blocked", "cancelled", "inconclusive") else ""
    took = elapsed(sum(one.duration_ms for one in case.trials))
    where = f", {_place(case, hide)}" if name_file and case.file else ""
    lines: list[Line] = [(f"{sign} {title(case.name, case.case, hide)}{by} ({note}{took}{where})", look)]
    if detail and case.status != "blocked":
        lines.append((_checked(case, trial), "detail"))
    if trial.checkpoints:
        lines.append((f"  {_reached(trial, hide)}", "detail"))
    if excuse := quarantine_text(case):
        lines.append((f"  {one_line(hide(excuse))}", "other"))
    if case.repeated:
        lines.append((f"  {stability_text(case)}", "detail"))
        if told := long_run_text(case):
            lines.append((f"  Rate: {told}", "detail"))
        if flaky := flaky_text(case):
            lines.append((f"  {flaky}", "detail"))
        undecided = case.status == "inconclusive" and trial.status == "passed"  # then there is no failure to show
        if case.status != "passed" and len(case.trials) > 1 and not undecided:
            lines.append((f"  {_which(case, trial)}:", "detail"))
    for place, (name, flips) in enumerate(judge_flips(case, hide)):
        lines.append((f"{'    ' if place else '  '}{name}: {flips}", "detail"))
    lines.extend(went_wrong(case, trial, hide))
    lines.extend(_besides(case, trial, hide, verbose=detail > 1))
    if detail > 1:
        for one in case.trials:
            conversation = conversation_lines(case, one, hide)
            lines.extend([(f"  {_which(case, one)}:", "detail")] if conversation and len(case.trials) > 1 else [])
            lines.extend(conversation)
    return lines


def _checked(case: CaseResult, trial: TrialResult) -> str:
    text = f"  Messages: {messages_count(case, trial)}"
    if points := trial.checkpoints:
        text += f", Checkpoints: {sum(one.passed for one in points)}/{len(points)} reached"
    if checks := trial.verdicts:
        return f"{text}, Assertions: {sum(one.passed for one in checks)}/{len(checks)} passed"
    if points:
        return text
    return f"{text}, {'no assertions' if no_assertions(case.trials) else 'Assertions: not reached'}"


def _reached(trial: TrialResult, hide: Hide) -> str:
    """`reached: ask_type (turn 1); missing: confirm`: the checkpoints of a dialogue."""
    points = trial.checkpoints
    groups = {
        "reached": [f"{one_line(hide(one.id), 60)} (turn {one.reached_at_turn})" for one in points if one.passed],
        "missing": [one_line(hide(one.id), 60) for one in points if one.required and not one.passed],
        "not reached, but optional": [
            one_line(hide(one.id), 60) for one in points if not one.required and not one.passed
        ],
    }
    return "; ".join(f"{name}: {', '.join(found)}" for name, found in groups.items() if found)


def _place(case: CaseResult, hide: Hide) -> str:
    return one_line(hide(case.file or "")) + (f":{case.line}" if case.line else "")


def _which(case: CaseResult, trial: TrialResult) -> str:
    """`run 2`, `variation 3 (generated), run 2`: the trial, by what the case has several of."""
    parts = []
    if any(one.variation for one in case.trials):
        made = f" ({trial.origin})" if trial.origin not in (None, "listed") else ""
        parts.append(f"variation {trial.variation + 1}{made}")
    if any(one.run > 1 for one in case.trials):
        parts.append(f"run {trial.run}")
    return ", ".join(parts)


def explained(case: CaseResult, hide: Hide, *, name_agent: bool = False, details: bool = False) -> list[Line]:
    """A case that did not pass, for the list at the end: why, its file and its line; with `details`, its checks."""
    trial, why = shown_trial(case), hide(reason(case))
    sign, look = mark(case, trial)
    by = f" – {one_line(hide(case.agent), 60)}" if name_agent else ""
    blame = f" (blame: {trial.blame})" if trial.blame not in (None, "agent") else ""
    named = case.file and case.status != "cancelled"
    place = f"  ({_place(case, hide)})" if named else ""
    headline = one_line(why, MOST_SAID_AGAIN)
    excused = " (quarantined)" if case.excused else ""
    lines: list[Line] = [(f"  {sign} {title(case.name, case.case, hide)}{by}{excused}: {headline}{blame}{place}", look)]
    if details and case.status != "cancelled":
        error, told = trial.error or case.reason, reason(case) if headline == why else None
        shown = {told, *(one.message for one in trial.verdicts if one.message == error)}
        rest = [*_reasons(case, trial, hide, shown, ""), *FailedChecks(case, trial, hide).lines(told)]
        lines += [(f"  {text}", look) for text, look in rest]
    return lines


def went_wrong(case: CaseResult, trial: TrialResult, hide: Hide) -> Iterator[Line]:
    """Why a case did not pass: the reason, and each failed check with what it expected and found."""
    if case.status == "passed":
        return
    shown: set[str | None] = {case.status, *(one.message for one in trial.verdicts if not one.passed)}
    if case.status == "inconclusive" and case.repeated:
        shown.add(case.reason)  # it stands with the rate
    blame = f" (blame: {trial.blame})" if trial.blame else ""
    yield from _reasons(case, trial, hide, shown, blame)
    if blame and (not trial.error or trial.error in shown):
        yield f"  blame: {trial.blame}", "error"
    yield from FailedChecks(case, trial, hide).lines()


def _reasons(case: CaseResult, trial: TrialResult, hide: Hide, shown: Container[str | None], blame: str) -> list[Line]:
    """Why the case did not pass, and why the trial did not, except the texts in `shown`."""
    lines = some_lines(hide(case.reason), "  ", "failed") if case.reason and case.reason not in shown else []
    if trial.error and trial.error not in shown:
        lines += some_lines(hide(trial.error), "  ", "failed")
        lines[-1] = (lines[-1][0] + blame, lines[-1][1])
    return lines


def _besides(case: CaseResult, trial: TrialResult, hide: Hide, *, verbose: bool) -> Iterator[Line]:
    """Retries, warnings, the workspace and the score."""
    if trial.retries:
        yield f"  tried {trial.attempt} times: {one_line(hide(trial.retries[-1]))}", "detail"
    found = warnings(case.trials)
    for warning in found[:MOST_WARNINGS]:
        yield f"  warning: {one_line(hide(warning))}", "detail"
    if len(found) > MOST_WARNINGS:
        yield f"  … and {counted(len(found) - MOST_WARNINGS, 'more warning')}", "detail"
    if trial.workspace:
        yield f"  workspace: {one_line(hide(trial.workspace))}", "detail"
    if (verbose or below_min_score(case)) and trial.score is not None:
        parts = ", ".join(f"{name} {value:.2f}" for name, value in trial.dimensions.items())
        yield f"  score: {trial.score:g}{f' ({parts})' if parts else ''}", "detail"
        if without := left_out([trial]):
            why = ", ".join(f"{name} ({one_line(hide(told), 80)})" for name, told in without.items())
            yield f"  left out of the score: {why}", "detail"


def conversation_lines(case: CaseResult, trial: TrialResult, hide: Hide) -> list[Line]:
    """The messages, the tool calls before each answer, and what the agent printed."""
    seen = trial.transcript
    given = given_messages(case) or 1
    lines: list[Line] = []
    turn, answered = 1, set()
    for number, message in enumerate(seen.messages):
        role, new = message.get("role"), number >= given
        if new and role == "user":
            turn += 1
        if new and role == "assistant" and turn not in answered:
            answered.add(turn)
            lines.extend(_tool(call, hide) for call in seen.tool_calls if call.turn == turn)
        if not (new and role == "tool"):  # a result is shown with its call
            lines.extend(_message(message, hide))
        if case.input_data and number == seen.inherited:
            lines.extend(some_lines(f"input data: {value_text(hide(case.input_data))}", _INDENT))
    lines.extend(_tool(call, hide) for call in seen.tool_calls if call.turn not in answered)
    if len(lines) > MOST_SAID:
        lines[:-MOST_SAID] = [(f"{_INDENT}… {len(lines) - MOST_SAID} earlier lines", "detail")]
    for entry in seen.logs[-MOST_LOGS:]:
        lines.extend(some_lines(f"log: {hide(entry)}", _INDENT))
    return lines


def _message(message: dict[str, Any], hide: Hide) -> list[Line]:
    content = hide(message.get("content"))
    if content in (None, ""):
        return []
    text = content if isinstance(content, str) else value_text(content)
    return some_lines(f"{one_line(hide(str(message.get('role'))), 20)}: {text}", _INDENT, "")


def _tool(call: ToolCall, hide: Hide) -> Line:
    arguments = "" if call.arguments is None else value_text(hide(call.arguments), 120)
    result = f"error: {one_line(hide(call.error), 120)}" if call.error else value_text(hide(call.result), 120)
    return f"{_INDENT}tool: {one_line(hide(call.name), 60)}({arguments}) → {result}", "detail"
