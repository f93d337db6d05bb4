"""What is said of a case's long-run pass rate."""

import pytest
from tests.stats.cases import made

from atp.base.numbers import percent_text
from atp.journal.collect import finish_case
from atp.stats.intervals import Interval
from atp.stats.rate_text import case_rate_text, rate_text
from atp.suite.result import CaseResult


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
    told = case_rate_text(finish_case(case)) or ""
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


def test_an_estimate_that_all_runs_contradict_is_left_out() -> None:
    assert rate_text(156, 178, Interval(0.79, 0.95), estimate=1.0) == (
        "passed 156 of 178; between 79% and 95% in the long run"
    )
