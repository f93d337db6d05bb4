"""What snapshots compare: texts with folded blanks, JSON without ignored places, safe and distinct file names."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.checks.conftest import make_assertion, make_evidence
from tests.damage import damaged_bytes

from atp.checks.golden_files import LARGEST, GoldenAgent, TrialGoldenFiles, Updates, golden_names
from atp.checks.matching.compare import equal
from atp.checks.matching.json_paths import look_up, without
from atp.checks.matching.patterns import LONGEST, allow_searching
from atp.checks.run_check import run_check
from atp.checks.snapshot import SnapshotAssertion, normalized
from atp.suite.case import Case
from atp.suite.result import ToolCall

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


MATCHES = ("text", "normalized", "json", "tools")
ANSWER = '{"a": [1, 2.5, "ä"], "b": null}'
CALLS: list[ToolCall | str] = [ToolCall(name="pay", arguments={"to": "bob", "cents": 5})]
GOLDEN = {
    "text": f"{ANSWER}\n".encode(),
    "normalized": f"{ANSWER}\n".encode(),
    "json": f"{json.dumps(json.loads(ANSWER), indent=2)}\n".encode(),
    "tools": b'[{"name": "pay", "arguments": {"to": "bob", "cents": 5}}]\n',
}


def outcomes(match: str, golden: bytes, output: Any = ANSWER) -> list[str]:
    """What a snapshot comes to with this golden file, and its negation."""
    evidence = make_evidence(output, calls=CALLS)
    assertion = {"type": "snapshot", "match": match}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "golden").write_bytes(golden)
        names = {SnapshotAssertion.model_validate(assertion).identity: "golden"}
        evidence.golden_files = TrialGoldenFiles(folder, names, "run 1", Updates())
        turned = {**assertion, "negate": True}
        return [asyncio.run(run_check(make_assertion(one), evidence)).outcome for one in (assertion, turned)]


def check_golden(match: str, golden: bytes) -> None:
    """A golden file that can be read decides, both ways; one that can't does neither, whatever is asked of it."""
    found = outcomes(match, golden)
    try:
        value: Any = golden.decode(errors="surrogatepass").removesuffix("\n")
        value = json.loads(value.removeprefix("\ufeff")) if match in ("json", "tools") else value
    except (ValueError, RecursionError):
        assert found == ["unjudged", "unjudged"]
        return
    assert found in (["passed", "failed"], ["failed", "passed"], ["unjudged", "unjudged"])
    if match in ("text", "normalized"):
        assert (found[0] == "passed") == (value == ANSWER or (match, normalized(value)) == ("normalized", ANSWER))
    elif found[0] == "passed":
        assert equal(value, json.loads(GOLDEN[match]))


@given(st.sampled_from(MATCHES).flatmap(lambda match: st.tuples(st.just(match), damaged_bytes(GOLDEN[match]))))
@example(("json", b"\xff\xfe{}"))
@example(("json", b"[" * 5000))
@example(("json", b'{"a": 1, "a": 2}'))
@example(("json", b"9" * 5000))
@example(("tools", b"7"))
@example(("text", b"\xed\xa0\x80"))
@example(("text", b""))
def test_a_damaged_golden_file_decides_nothing_that_it_does_not_have(given_: tuple[str, bytes]) -> None:
    check_golden(*given_)


@pytest.mark.parametrize("match", MATCHES)
def test_a_golden_file_as_it_was_written_is_equal(match: str) -> None:
    assert outcomes(match, GOLDEN[match]) == ["passed", "failed"]


@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.parametrize("golden", [b"x" * (LARGEST + 2), b"\x89PNG\r\n\x1a\n\x00", "ä".encode("latin-1")])
def test_a_golden_file_that_is_too_large_or_no_text_is_unjudged(match: str, golden: bytes) -> None:
    assert outcomes(match, golden) == ["unjudged", "unjudged"]
