"""What reports say of a gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.report.facts import figure_text
from atp.report.figure_text import gate_text
from atp.report.records.figures import GateRecord
from atp.stats.suite_gates import GateResult
from atp.suite.metrics import LARGEST


def test_a_gate_says_how_many_runs_its_value_is_of_where_some_ended_in_errors_of_others() -> None:
    reason = "errors that are not the agent's leave it open"
    gate = GateResult(gate="pass_rate >= 0.9", outcome="inconclusive", value=1.0, cases=2, known_cases=1, reason=reason)
    gate.judged_runs, gate.errors, gate.with_errors = 1, 1, (0.5, 1.0)
    assert gate_text(gate) == (
        f"inconclusive: {reason}; 1, observed over 1 of 2 cases; "
        "1 run judged, 1 ended in an error that is not the agent's: 0.5 – 1 with it"
    )
    record = GateRecord.of(gate)
    assert (record.known_cases, record.judged_runs, record.errors, record.with_errors) == (1, 1, 1, [0.5, 1.0])


def test_a_gate_without_errors_has_the_number_of_cases_alone() -> None:
    gate = GateResult(gate="pass_rate >= 0.9", outcome="passed", value=1.0, cases=2, known_cases=2, judged_runs=6)
    assert gate_text(gate) == "passed: 1, observed over 2 cases"


@pytest.mark.parametrize("name", ["m", "m_ms", "m_usd"])
@given(value=st.floats(-LARGEST, LARGEST))
def test_a_figure_of_any_size_is_short(name: str, value: float) -> None:
    assert len(figure_text(name, value)) <= 20


def test_figures_are_rounded_by_their_size_whatever_their_sign() -> None:
    assert [figure_text("m", one) for one in (1234.5, -1234.5, 0.123456, -3.0)] == ["1,234", "-1,234", "0.1235", "-3"]
