"""JSON with comments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atp.base.json.comments import without_comments

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
    assert json.loads(without_comments(sprinkled)) == {"// key": value}


@pytest.mark.parametrize(
    "text", ["{,}", '{"a": 1,,}', "[,1]", '{"a": "open}', '{"a": 1}\n/* open', '{"a": 1} / 2', '{"a": 1 /* b */ "b"}']
)
def test_what_is_not_json_stays_so(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(without_comments(text))


@given(st.text(alphabet='"\\\\/*,{}[] \n1a'))
def test_what_is_left_keeps_its_place(text: str) -> None:
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert all(left in (was, " ") for left, was in zip(plain, text, strict=True))
    assert plain.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", ["," * 200_000, ",/* " * 50_000, '"\\"' * 50_000, "/ " * 100_000])
def test_it_takes_no_time(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(without_comments(text))
