"""What was said in a trial, for `--verbose`."""

from typing import Any

from atp.base.secrets import Hide
from atp.base.text import Line, one_line, some_lines, value_text
from atp.report.result_object import given_messages
from atp.suite.result import CaseResult, ToolCall, TrialResult

MOST_SHOWN = 200
"""How many lines of a conversation are shown: its last ones."""
MOST_LOGS = 10
_INDENT = "    "


def conversation_lines(case: CaseResult, trial: TrialResult, hide: Hide) -> list[Line]:
    """The messages, with the tools that were called before each answer, and what the agent printed."""
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
    if len(lines) > MOST_SHOWN:
        lines[:-MOST_SHOWN] = [(f"{_INDENT}… {len(lines) - MOST_SHOWN} earlier lines", "detail")]
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
