"""What is said of a case's long-run pass rate, and the decision of its gate."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.numbers import percent_text
from atp.journal.collect import finish_case
from atp.stats.case_counts import case_counts
from atp.stats.case_gate import case_text, decide_case, observed_interval, rate_text
from atp.stats.intervals import Interval
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


def test_what_counts() -> None:
    counts = case_counts(made("ppftaebcs"))
    assert (counts.passed, counts.judged, counts.errors) == (2, 5, 1)
    interval = observed_interval(counts)
    assert interval is not None
    assert interval.low < 2 / 6
    assert interval.high > 3 / 6
    assert observed_interval(case_counts(made("bcs"))) is None


@pytest.mark.parametrize(
    ("statuses", "rate", "margin", "status"),
    [
        ("p" * 29, 0.9, 0.0, "passed"),
        ("p" * 28, 0.9, 0.0, "inconclusive"),
        ("p" * 20 + "f" * 9, 0.9, 0.0, "failed"),
        ("p" * 29 + "e", 0.9, 0.0, "inconclusive"),  # the error may have been a failure
        ("f" * 3 + "e" * 30, 0.9, 0.0, "inconclusive"),  # the errors may have been passes
        ("p" * 15, 0.9, 0.1, "passed"),
        ("p" * 40 + "b", 0.9, 0.0, "inconclusive"),
        ("p" * 60 + "c", 0.9, 0.0, "inconclusive"),
        ("f" * 10 + "c", 0.9, 0.0, "failed"),
        ("e" * 5, 0.9, 0.0, "error"),
        ("b" * 5, 0.9, 0.0, "blocked"),
        ("s" * 5, 0.9, 0.0, "skipped"),
    ],
)
def test_the_status_of_a_case_with_a_gate(statuses: str, rate: float, margin: float, status: str) -> None:
    assert finish_case(made(statuses, rate, margin)).status == status


@given(st.text("pfe", min_size=1, max_size=40), st.integers(1, 40))
def test_a_case_that_is_cut_short_never_passes(statuses: str, missing: int) -> None:
    case = made(statuses, 0.5, planned=len(statuses) + missing)
    assert decide_case(case, complete=False) in ("failed", "inconclusive", None)
    assert finish_case(case, complete=False).status != "passed"


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (
            made("p" * 9 + "f", 0.75),
            "passed 9 of 10; between 60% and 98% in the long run; about 19 more runs would tell",
        ),
        (made("p" * 9 + "f", 0.9), "…; too near to the 90% asked for: not even 10,000 runs would tell"),
        (made("p" * 29 + "e", 0.9), "passed 29 of 29 and 1 error that is not the agent's; …; the errors leave it open"),
        (made("p" * 9 + "c", 0.9), "…; not all of its trials came to an end, so it can't pass"),
        (
            made("p" * 29, 0.9, other_runs=True),
            "…; it takes more, because the number of runs was changed after a look …",
        ),
        (made("p" * 29, 0.9), "passed 29 of 29; between 88% and 100% in the long run"),
    ],
)
def test_a_sentence_for_people(case: CaseResult, text: str) -> None:
    told = case_text(finish_case(case)) or ""
    parts = text.split("…")
    assert told.startswith(parts[0])
    assert told.endswith(parts[-1])
    assert all(part in told for part in parts)


def test_shares_for_people() -> None:
    assert [percent_text(share) for share in (0, 0.0001, 0.004, 0.5, 0.9996, 1)] == (
        ["0%", "0.1%", "0.4%", "50%", "99.9%", "100%"]
    )
    assert rate_text(0, 0, None) == "passed 0 of 0"
    assert rate_text(3, 4, Interval(0.3, 0.95), estimate=0.7) == (
        "passed 3 of 4; about 70%, between 30% and 95% in the long run"
    )
