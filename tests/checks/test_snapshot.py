"""What snapshots compare: texts with folded blanks, JSON without ignored places, safe and distinct file names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.checks.golden_files import GoldenAgent, golden_names
from atp.checks.matching.compare import equal
from atp.checks.matching.json_paths import look_up, without
from atp.checks.matching.patterns import LONGEST, allow_searching
from atp.checks.snapshot import SnapshotAssertion, normalized
from atp.suite.case import Case

BLANKS = st.text(alphabet=" \t\r\n\u00a0", min_size=1)
WORDS = st.lists(st.text(alphabet=st.characters(exclude_categories=["Z", "C"]), min_size=1), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


@given(WORDS, st.data())
def test_normalized_text_depends_on_the_words_alone(words: list[str], data: st.DataObject) -> None:
    ragged = data.draw(BLANKS) + "".join(word + data.draw(BLANKS) for word in words)
    assert normalized(ragged) == " ".join(words) == normalized(normalized(ragged))


@given(JSON)
def test_what_is_ignored_is_gone_and_the_rest_stays(value: Any) -> None:
    allow_searching(LONGEST)
    before = repr(value)
    left = without(["$..a"], value)
    assert repr(value) == before
    assert look_up("$..a", {"root": left}) == look_up("$.none", {})
    assert equal(without(["$..a"], left), left)
    assert equal(without(["$.none", "$[999]"], value), value)


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        (["$.list[0]", "$.list[2]"], {"list": [1], "a": {"b": 1}}),
        (["$.list[*]"], {"list": [], "a": {"b": 1}}),
        (["$.list[-1]", "a.b"], {"list": [0, 1], "a": {}}),
        (["$.a", "$.a.b"], {"list": [0, 1, 2]}),
        (["$.list[?@ > 0]"], {"list": [0], "a": {"b": 1}}),
        (["$.*"], {}),
    ],
)
def test_paths_are_followed_before_anything_is_left_out(paths: list[str], left: Any) -> None:
    allow_searching(LONGEST)
    assert without(paths, {"list": [0, 1, 2], "a": {"b": 1}}) == left


IDS = st.text(min_size=1, max_size=80)


@given(
    IDS, IDS, st.sampled_from([None, "x"]), st.sampled_from([None, "x", "x+1"]), st.integers(0, 2), st.integers(0, 2)
)
def test_no_two_trials_share_a_golden_file(
    one: str, other: str, agent: str | None, another: str | None, variation: int, later: int
) -> None:
    def names(case: str, of: str | None, number: int) -> set[str]:
        checks = [{"type": "snapshot"}, {"type": "snapshot", "match": "json"}, {"type": "snapshot", "name": case}]
        made = Case.model_validate({"id": case, "name": case, "input": "x", "assertions": checks})
        return set(golden_names(made, GoldenAgent(of), number).values())

    first, second = names(one, agent, variation), names(other, another, later)
    assert len(first) == 3
    if (one, agent, variation) == (other, another, later):
        assert first == second
    else:
        assert not first & second
    for name in first:
        assert "/" not in name
        assert "\0" not in name
        assert name.isascii()
        assert name.isprintable()
        assert not name.startswith((".", "-"))
        assert len(name) < 255


def test_equal_snapshots_share_a_file_and_others_are_counted() -> None:
    checks: list[dict[str, Any]] = [
        {"type": "snapshot", "match": "json"},
        {"type": "contains", "value": "x"},
        {"type": "all_of", "assertions": [{"type": "snapshot", "match": "json", "weight": 2}]},
        {"type": "snapshot", "match": "json", "ignore": ["$.id"]},
    ]
    case = Case.model_validate({"id": "a", "name": "a", "input": "x", "assertions": checks})
    assert list(golden_names(case, GoldenAgent(None), 0).values()) == ["a.json.json", "a.json+2.json"]
    assert list(golden_names(case, GoldenAgent("shop"), 2).values()) == ["a@shop+2.json.json", "a@shop+2.json+2.json"]
    assert SnapshotAssertion(type="snapshot").match == "text"
