"""Gates as text and as mappings: what is read, what is refused, and that both forms say the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.damage import damaged

from atp.suite.gates import SuiteGate


def read(raw: Any) -> SuiteGate:
    return SuiteGate.model_validate(raw)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("pass_rate >= 0.9", {"metric": "pass_rate", "at_least": 0.9}),
        ("pass_rate>=90%", {"at_least": 0.9}),
        ("pass_rate >= 0.9 confidence 95% margin 0.05", {"at_least": 0.9, "confidence": 0.95, "margin": 0.05}),
        ("pass@3 >= 1", {"metric": "pass@3", "at_least": 1}),
        ("pass^3 ≥ 0.8", {"metric": "pass^3", "at_least": 0.8}),
        ("cost_usd p95 <= 0.05", {"metric": "cost_usd", "statistic": "p95", "at_most": 0.05}),
        ("recall >= -1e3", {"metric": "recall", "at_least": -1000}),
        ("passages median <= 4", {"metric": "passages", "statistic": "median", "at_most": 4}),
        ("[refund] pass_rate >= 0.9", {"tag": "refund", "at_least": 0.9}),
        ("[agent:my bot] score >= 80", {"agent": "my bot", "metric": "score", "at_least": 80}),
        ("[late fee, agent:bot]duration_ms p99.9<=2000", {
            "tag": "late fee", "agent": "bot", "metric": "duration_ms", "statistic": "p99.9", "at_most": 2000,
        }),
    ],
)  # fmt: skip
def test_a_text_says_the_same_as_a_mapping(text: str, keys: dict[str, Any]) -> None:
    assert read(text) == read(keys)
    assert read(read(text).text) == read(text)
    plain: Any = read(text).model_dump(mode="json")
    assert plain == read(text).text


@pytest.mark.parametrize(
    ("raw", "why", "hint"),
    [
        ("", "a gate is empty", "write it like"),
        ("[refund]", "a gate is empty", "write it like"),
        ("pass_rate", "there is no `>=` or `<=` in it", "write it like"),
        ("pass_rate > 0.9", "`>` stands where", "write >="),
        ("pass_rate == 0.9", "`==` stands where", "write it like"),
        ("pass_rate => 0.9", "`=>` stands where", "write >="),
        ("pass_rate >=", "there is no number after `>=`", "write it like"),
        ("pass_rate >= high", "`high` is not a number", "write it like"),
        ("pass_rate >= nan", "not a finite number", "write it like"),
        ("pass_rate <= 0.9", "takes only a least value", "write >="),
        ("pass_rate >= 90", "a share from 0 to 1", "`0.9`, if 90 % is meant"),
        ("pass_rate >= 0", "a share from 0 to 1", "above 0"),
        ("pass_rate mean >= 0.9", "takes no statistic", "leave `mean` out"),
        ("pass_rte >= 0.9", "is no figure of passed runs", "did you mean `pass_rate`?"),
        ("pass^0 >= 0.9", "is no figure of passed runs", "write `pass_rate`, `pass@3`"),
        ("pass^x >= 0.9", "is no figure of passed runs", "write `pass_rate`, `pass@3`"),
        ("9lives <= 3", "is not the name of a metric", "write it like"),
        ("cost_usd p95x <= 3", "is not a statistic", "did you mean `p95`?"),
        ("cost_usd average <= 3", "is not a statistic", "write `mean`"),
        ("cost_usd p95 <= 3%", "is not a number", "without %"),
        ("cost_usd p95 <= 3 confidance 0.9", "`confidance` is not understood", "did you mean `confidence`?"),
        ("cost_usd p95 <= 3 confidence 0.9 confidence 0.9", "`confidence` is not understood", "each once"),
        ("cost_usd mean <= 3 confidence 0.9", "needs `pass_rate` or a percentile", "the observed value is compared"),
        ("pass^3 >= 0.9 confidence 0.9", "needs `pass_rate` or a percentile", "the observed value is compared"),
        ("pass_rate >= 0.9 margin 0.1", "`margin` needs `pass_rate` and a `confidence`", "add `confidence`"),
        ("pass_rate >= 0.9 confidence 0.9 margin 0.9", "smaller than the pass rate", "give a smaller one"),
        ("pass_rate >= 1 confidence 0.9", "no number of runs can show", "add a `margin`"),
        ("[a, b] pass_rate >= 1", "names one tag, one agent, or both", "[agent:bot]"),
        ("[] pass_rate >= 1", "names one tag, one agent, or both", "[agent:bot]"),
        ({"at_least": 0.9, "at_most": 1}, "either `at_least` or `at_most`", "one of the two"),
        ({"metric": "x"}, "either `at_least` or `at_most`", "one of the two"),
        ({"tag": "a]b", "at_least": 0.9}, "no `]`", "rename it"),
        ({"tag": "agent:x", "at_least": 0.9}, "does not begin with `agent:`", "use the key `agent`"),
    ],
)
def test_what_is_no_gate_is_refused_with_a_hint(raw: Any, why: str, hint: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read(raw)
    (error,) = caught.value.errors()
    assert why in error["msg"]
    assert hint in error["ctx"]["hint"]


NUMBERS = st.floats(-1e6, 1e6)
WORDS = st.from_regex(r"[a-z][a-z0-9 _-]{0,10}[a-z]", fullmatch=True)


@given(
    WORDS.map(lambda word: word.replace(" ", "_")).filter(lambda word: not word.startswith("pass")),
    st.sampled_from([None, "mean", "median", "p50", "p95", "p99.9"]),
    st.sampled_from(["at_least", "at_most"]),
    NUMBERS,
    st.none() | WORDS,
    st.none() | WORDS,
)
def test_every_gate_on_a_metric_reads_as_itself(
    metric: str, statistic: str | None, side: str, limit: float, tag: str | None, agent: str | None
) -> None:
    given = {"metric": metric, "statistic": statistic, side: limit, "tag": tag, "agent": agent}
    gate = read(given)
    assert read(gate.text) == gate


@given(st.floats(0.001, 1, exclude_max=True), st.none() | st.floats(0.5, 0.999), st.floats(0, 0.9))
def test_every_gate_on_a_rate_reads_as_itself(rate: float, confidence: float | None, margin: float) -> None:
    gate = read({"at_least": rate, "confidence": confidence, "margin": rate * margin if confidence else None})
    assert read(gate.text) == gate


_WORDS = (
    "pass_rate pass^3 pass@2 cost_usd >= <= ≥ = 0.9 5% 1e-9 nan 1e999 p95 p99.9 median margin confidence [a] [agent:b]"
)
GATES = st.lists(st.sampled_from(_WORDS.split()), max_size=8).map(" ".join) | damaged(
    "[refund, agent:a b] pass_rate >= 0.9 confidence 0.95 margin 0.05"
)


def check_gate(text: str) -> None:
    """A text is a gate that reads as itself, or it is refused."""
    try:
        gate = read(text)
    except ValidationError:
        return
    assert read(gate.text) == gate


@given(st.text() | GATES)
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    check_gate(text)
