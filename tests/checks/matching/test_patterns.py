"""Regular expressions: `re`'s meaning, within bounded time."""

import asyncio
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atp.checks.matching.patterns import LONGEST, TooSlow, allow_searching, search
from atp.suite.result import Verdict

Judge = Callable[..., Verdict]

WORDS = r"""
a b x . \d \w \s [ab] [^a] [[:alpha:]] [a[] []a] [^]a] {e} {i<=1} { } {2} {1,2} {,2} {2,} {,} {} * + ? *? | ( ) (?: (?=
(?! (?P<n> (?P=n) \1 ^ $ \b (?i) \. \{ \[ - é ß \Z \A (?i: [a-c&&b] [a--b] [\w-] [\]]
"""
PIECES = st.sampled_from(WORDS.split())
TEXTS = [
    "",
    "a",
    "ab",
    "aab",
    "x{e}",
    "b b",
    "é",
    "A1",
    "xx[",
    "a]",
    "ß",
    "aaab\n",
    "{}",
    "x{2",
    "alpha:]",
    "&b",
    "1 2",
]


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=6))
def test_a_pattern_means_what_re_makes_of_it(pieces: list[str]) -> None:
    pattern = "".join(pieces)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            standard = re.compile(pattern)
        except (re.error, OverflowError):
            return
    allow_searching(LONGEST)
    for text in TEXTS:
        ours, theirs = search(pattern, text), standard.search(text)
        assert (ours and ours.span()) == (theirs and theirs.span()), (pattern, text)


HOSTILE = [
    ("(a|aa)+$", "a" * 5000 + "b"),
    ("(x+x+)+y", "x" * 5000),
    (r"\s+$", " " * 500_000 + "x"),
    ("x.*y.*z", "x" * 10_000 + "y" * 10_000),
]


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_search_ends_in_time(pattern: str, text: str) -> None:
    allow_searching(0.1)
    with pytest.raises(TooSlow):  # without a limit, the quickest of them takes minutes
        search(pattern, text)


def test_patience_is_shared_by_all_searches_of_a_check(judge: Judge, fast_patience: None) -> None:
    output = {"items": ["a" * 5000 + "b"] * 1000}
    given = {"type": "json_path", "path": "$.items[*]", "value": [{"$regex": "(a|aa)+$"}] * 1000}
    assert judge(given, output).outcome == "unjudged"  # a limit for each of the searches would take a day


BAD = "a" * 5000 + "cb"
KEYS: dict[str, Any] = {"patternProperties": {"(a|aa)+$": {}}}


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"type": "regex", "pattern": "(a|aa)+$"}, BAD),
        ({"type": "equals", "value": {"$regex": "(a|aa)+$"}}, BAD),
        ({"type": "json_schema", "schema": {"type": "string", "pattern": "(a|aa)+$"}}, BAD),
        ({"type": "json_path", "path": "$[?match(@.x, '(a|aa)+b')]"}, [{"x": BAD}]),
        ({"type": "json_schema", "schema": KEYS}, {BAD: 1}),
        ({"type": "json_schema", "schema": {"allOf": [KEYS], "additionalProperties": False, **KEYS}}, {BAD: 1}),
    ],
)
@pytest.mark.parametrize("negate", [False, True])
def test_a_pattern_that_takes_too_long_is_unjudged(
    judge: Judge, fast_patience: None, given: dict[str, Any], output: Any, negate: bool
) -> None:
    verdict = judge({**given, "negate": negate}, output)
    assert verdict.outcome == "unjudged"
    assert "took longer than" in verdict.message


@pytest.mark.parametrize(("pattern", "text"), [*HOSTILE, (r"\s+$", " " * 2_000_000 + "x")])
def test_others_go_on_while_a_pattern_takes_its_time(pattern: str, text: str) -> None:
    """A search that is not done at once leaves the event loop."""
    from atp.checks.evidence import Evidence
    from atp.checks.output import RegexMatch
    from atp.checks.run_check import run_check
    from atp.suite.case import Case
    from atp.suite.result import Transcript, Turn

    turn = Turn(turn=1, input="", output=text)
    evidence = Evidence(case=Case(id="a"), transcript=Transcript(turns=[turn]))
    assertion = RegexMatch.model_validate({"type": "regex", "pattern": pattern})

    async def both() -> bool:
        checking = asyncio.ensure_future(run_check(assertion, evidence))
        await asyncio.sleep(0)  # the check's first step: had it searched to the end, it would be done
        done = checking.done()
        checking.cancel()
        return done

    assert not asyncio.run(both())
