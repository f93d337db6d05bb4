"""Cases with a gate, made of a letter for each trial."""

from typing import Any

from atp.suite.result import CaseResult, Status, TrialResult


def trials(statuses: str) -> list[TrialResult]:
    """Trials by letter: passed, failed, timeout, agent's error, environment's error, blocked, cancelled, skipped."""
    known: dict[str, tuple[Status, Any]] = {
        "p": ("passed", None),
        "f": ("failed", None),
        "t": ("timeout", None),
        "a": ("error", "agent"),
        "e": ("error", "environment"),
        "b": ("blocked", None),
        "c": ("cancelled", None),
        "s": ("skipped", None),
    }
    return [
        TrialResult(key=str(run), agent="a", case="c", run=run, status=known[letter][0], blame=known[letter][1])
        for run, letter in enumerate(statuses, 1)
    ]


def made(statuses: str, rate: float = 0.9, margin: float = 0.0, **more: Any) -> CaseResult:
    planned = more.pop("planned", len(statuses))
    asked = {"required_rate": rate, "confidence": 0.95, "margin": margin, "planned": planned, "planned_runs": planned}
    return CaseResult(agent="a", case="c", trials=trials(statuses), **{**asked, **more})
