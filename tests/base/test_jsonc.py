"""JSON with comments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.jsonc import NotJson, read_jsonc, without_comments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=5), below, max_size=4),
    max_leaves=10,
)
NOISE = st.sampled_from(("", " ", '// a "comment" }\n', "/* , { \n */", "\n\t", "/**/"))


@given(value=JSON, noise=st.lists(NOISE, min_size=1, max_size=5), last_comma=st.booleans())
def test_comments_and_last_commas_do_not_matter(value: Any, noise: list[str], last_comma: bool) -> None:
    comma = "," if last_comma else ""
    sprinkled = ("".join(noise)).join(("", "{", f'"// key": {json.dumps(value)}', f"{comma}", "}", ""))
    assert read_jsonc(sprinkled) == {"// key": value}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1, column 1: Expecting value"),
        ('// x\n{"a": }', "line 2, column 7: Expecting value"),
        ('/* x\n\n*/ {"a": 1 "b"}', "line 3, column 12: Expecting ',' delimiter"),
        ('{"a": 1, "a": 2}', "the key `a` stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("{,}", "line 1"),
        ('{"a": 1,,}', "line 1"),
        ("[,1]", "line 1"),
        ('{"a": "open}', "line 1, column 7: Unterminated string"),
        ('{"a": 1}\n/* open', "line 2, column 1: Extra data"),
        ('{"a": 1} / 2', "line 1, column 10: Extra data"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5_000, r"Exceeds the limit \(4300 digits\)"),
    ],
)
def test_what_is_wrong_and_where(text: str, why: str) -> None:
    with pytest.raises(NotJson, match=why):
        read_jsonc(text)


@given(st.text(alphabet='"\\\\/*,{}[] \n1a'))
def test_what_is_left_keeps_its_place(text: str) -> None:
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert all(left in (was, " ") for left, was in zip(plain, text, strict=True))
    assert plain.count("\n") == text.count("\n")


def test_a_byte_order_mark() -> None:
    assert read_jsonc("\ufeff{}") == {}


@pytest.mark.parametrize("text", ["," * 200_000, ",/* " * 50_000, '"\\"' * 50_000, "/ " * 100_000])
def test_it_takes_no_time(text: str) -> None:
    with pytest.raises(NotJson):
        read_jsonc(text)
