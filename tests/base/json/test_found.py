"""Finding JSON in text: whole, fenced, in prose."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.json.found import DEEPEST, MISSING, MOST_BLOCKS, MOST_TRIES, SearchCutShort, find_json, read_whole

SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    SCALARS | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
CONTAINERS = JSON.filter(lambda value: isinstance(value, dict | list))
PROSE = st.text(alphabet=st.characters(exclude_characters="{}[]`~\"'", exclude_categories=["Cs"]), max_size=40)


@given(JSON)
def test_a_text_that_is_json_is_that_value(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False), f"\ufeff\n {json.dumps(value)}\n"):
        assert find_json(text) == value
        assert read_whole(text) == value


@given(CONTAINERS, PROSE, PROSE)
def test_json_in_prose_is_found(value: Any, before: str, after: str) -> None:
    assert find_json(f"{before} {json.dumps(value)} {after}") == value


@given(JSON, PROSE, PROSE, st.sampled_from(["```", "````", "~~~"]))
def test_json_in_a_fence_is_found(value: Any, before: str, after: str, fence: str) -> None:
    assert find_json(f"{before}\n{fence}json\n{json.dumps(value, indent=1)}\n{fence}\n{after}") == value


@given(PROSE)
def test_prose_without_brackets_holds_none(text: str) -> None:
    found = find_json(text)
    assert found is MISSING or not isinstance(found, dict | list)


@given(st.text(alphabet='{}[]",:01 \n`~\\atrue"'))
def test_whatever_is_found_stands_there(text: str) -> None:
    check_search(text)


def check_search(text: str) -> None:
    """A search finds what stands in the text, finds nothing, or says which limit ended it."""
    try:
        found = find_json(text)
    except SearchCutShort:
        return
    if found is MISSING:
        return
    squeezed = "".join(text.split())
    assert isinstance(found, dict | list) or json.dumps(found)[:1] in squeezed or found in (True, None)
    assert json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('According to [1], it is {"a": 2}.', {"a": 2}),
        ('- [ ] open\n- [x] done\n\n{"a": 1}', {"a": 1}),
        ('First {"a": 1}, then {"a": 2}.', {"a": 1}),
        ('Example: {"a": 1}. Answer: {"a": 1, "b": 2}', {"a": 1, "b": 2}),
        ('Use {braces} or "quoted {" and so: {"b": [true]}', {"b": [True]}),
        ('{"a": broken} but {"b": 2}', {"b": 2}),
        ('```python\nx = {"a": 1}\n```\n```json\n{"b": 2}\n```', {"b": 2}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('1. Do this:\n   ```json\n   {"a": 1}\n   ```', {"a": 1}),
        ('```json\nnot json\n```\nbut {"a": 1}', {"a": 1}),
        ('````\n```\n{"a": 1}\n````', {"a": 1}),
        ("```\n42\n``` then [7]", [7]),
        ("```json\n42\n```", 42),
        ('inline ```{"a": 1}``` code', {"a": 1}),
        ("[1, 2", MISSING),
        ('{"results": [{"status": "ok"}, {"stat', MISSING),
        ('{"a": NaN}', MISSING),
        ("[Infinity]", MISSING),
        ('{"a": "NaN"}', {"a": "NaN"}),
        ("", MISSING),
        ("   ", MISSING),
        ("{", MISSING),
        ("true story", MISSING),
        ("nullify", MISSING),
        ("-", MISSING),
        ("{'a': 1}", MISSING),
        ('{"a": 1} trailing', {"a": 1}),
        ('{"a": "' + "x" * 5000 + '"} end', {"a": "x" * 5000}),
        ('go: {"a": "\\u00e9' + "y" * 300 + '\\ud83d\\ude00"}', {"a": "é" + "y" * 300 + "😀"}),
    ],
)
def test_forms(text: str, value: Any) -> None:
    found = find_json(text)
    assert found is value if value is MISSING else found == value


WRAPS = pytest.mark.parametrize("wrap", ["{}", "so {} it is", "```json\n{}\n```"])


@WRAPS
def test_deep_json_is_found_down_to_the_limit(wrap: str) -> None:
    assert find_json(wrap.format("[" * DEEPEST + "]" * DEEPEST)) is not MISSING
    assert find_json(wrap.format('{"a": "' + "[" * 500 + '"}')) == {"a": "[" * 500}


@WRAPS
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "200 levels"),
        ("[" * 3000 + "1" + "]" * 3000, "200 levels"),
        ('{"a":' * 100_000, "200 levels"),
        ('{"n": ' + "9" * 5000 + "}", "digits"),
        ("[1 " * (MOST_TRIES + 1) + '{"leak": 1}', "places"),
    ],
)
def test_a_search_that_a_limit_ends_is_not_taken_for_no_json(wrap: str, text: str, limit: str) -> None:
    with pytest.raises(SearchCutShort, match=limit):
        find_json(wrap.format(text))


def test_more_fenced_blocks_than_are_read() -> None:
    with pytest.raises(SearchCutShort, match="fenced blocks"):
        find_json("```\nno\n```\n" * (MOST_BLOCKS + 1) + '```json\n{"leak": 1}\n```')


def test_a_text_that_is_one_long_number() -> None:
    with pytest.raises(SearchCutShort, match="digits"):
        read_whole("9" * 5000)
