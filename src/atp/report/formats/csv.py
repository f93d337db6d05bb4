"""The CSV report (RFC 4180): a row for each trial, safe to open in a spreadsheet."""

import csv
import io
import re
from typing import IO, Any

from atp.base.json.text import whole_text
from atp.base.secrets import Hide
from atp.base.text import harmless
from atp.journal.listeners import RunEnd
from atp.report.facts import agent_usage, assertion_errors, response, timestamp
from atp.report.files import Spool
from atp.report.reporter import SpooledReport
from atp.suite.case import Case
from atp.suite.result import CaseResult, TrialResult

COLUMNS = (
    "file",
    "line",
    "case",
    "name",
    "tags",
    "agent",
    "variation",
    "origin",
    "run",
    "status",
    "blame",
    "error",
    "failed_checks",
    "checks_passed",
    "checks",
    "score",
    "started_at",
    "duration_ms",
    "attempt",
    "turns",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cost_usd",
    "role_tokens",
    "role_cost_usd",
    "metrics",
    "input",
    "output",
)
"""The columns of a row."""
_OURS = frozenset({"origin", "status", "blame", "started_at"})
"""Columns with our own words, which are not masked even if a secret is the same word."""
LONGEST = 32_000
"""Characters of a cell: spreadsheets accept little more."""
_FORMULA = re.compile(r"[\t\r\n]|[\s\ufeff]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]")
"""How a formula begins, after blanks or in full-width forms, too. The HTML report's export has the same rule."""


class CsvReport(SpooledReport):
    """A head, and a row for each trial in the order of the files."""

    format = "report.csv"
    extensions = (".csv",)

    def case_part(self, result: CaseResult) -> bytes:
        """The rows of a case."""
        about = _about(result.file, result.line, result.case, result.name, result.tags)
        about["input"] = response(result.input)
        return b"".join(_row(about | {"agent": result.agent} | _trial(one), self.hide) for one in result.trials)

    def skipped_part(self, file: str | None, case: Case) -> bytes:
        """The row of a skipped case."""
        about = _about(file, case.place.line, case.id, case.name, case.tags)
        return _row(about | {"status": "skipped"}, self.hide)

    def write(self, file: IO[bytes], end: RunEnd, results: Spool, skipped: Spool) -> None:
        """Write the head, the trials, and the skipped cases."""
        file.write(_line(COLUMNS))
        file.writelines(results)
        file.writelines(skipped)


def _about(file: str | None, line: int, case: str, name: str, tags: list[str]) -> dict[str, Any]:
    return {"file": file, "line": line or None, "case": case, "name": name or case, "tags": " ".join(tags)}


def _trial(trial: TrialResult) -> dict[str, Any]:
    seen, used, roles = trial.transcript, agent_usage(trial), trial.role_usage
    return {
        "variation": trial.variation + 1,  # counted from 1 for people
        "origin": trial.origin,
        "run": trial.run,
        "status": trial.status,
        "blame": trial.blame,
        "error": trial.error,
        "failed_checks": "\n".join(assertion_errors(trial)),
        "checks_passed": sum(one.passed for one in trial.verdicts),
        "checks": len(trial.verdicts),
        "score": None if trial.score is None else round(trial.score, 2),
        "started_at": timestamp(trial.started_at) if trial.started_at else None,
        "duration_ms": round(trial.duration_ms),
        "attempt": trial.attempt,
        "turns": len(seen.turns),
        "tool_calls": len(seen.tool_calls),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        "cost_usd": used.cost_usd,
        "role_tokens": roles.tokens if roles else None,
        "role_cost_usd": roles.cost_usd if roles else None,
        "metrics": response(trial.metrics) if trial.metrics else None,
        "output": response(seen.output),
    }


def _row(values: dict[str, Any], hide: Hide) -> bytes:
    return _line([cell(value if name in _OURS else hide(value)) for name in COLUMNS for value in (values.get(name),)])


def cell(value: Any) -> str | int | float:
    """A value for a spreadsheet. What could be taken for a formula gets an apostrophe before it."""
    if value is None or isinstance(value, int | float):
        return "" if value is None else value
    text = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    text = whole_text(harmless(text))
    return f"'{text}" if _FORMULA.match(value) else text


def _line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().encode()
