"""The decision of a case's gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stats.cases import made

from atp.journal.collect import finish_case
from atp.stats.case_counts import case_counts
from atp.stats.case_gate import decide_case, observed_interval


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
