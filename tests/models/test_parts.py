"""The parts of messages: the arguments of tool calls, which are read alike by models, checks and judges."""

from typing import Any

import pytest

from atp.base.json.found import SearchCutShort
from atp.checks.tools import arguments_of
from atp.models.parts import decode_arguments, read_arguments
from atp.roles.record import make_record
from atp.suite.result import ToolCall, Transcript, Turn

DECODED: list[tuple[Any, Any]] = [
    (None, {}),
    ("", {}),
    (" \n", {}),
    ("{}", {}),
    ({}, {}),
    ('{"a": 1}', {"a": 1}),
    ({"a": 1}, {"a": 1}),
    ("[1]", [1]),
    ("null", {}),
    ("rm -rf", "rm -rf"),
    ('{"a": ', '{"a": '),
]


@pytest.mark.parametrize(("given", "decoded"), DECODED)
def test_arguments_are_decoded_alike_everywhere(given: Any, decoded: Any) -> None:
    assert decode_arguments(given) == decoded
    assert arguments_of(ToolCall(name="x", arguments=given)) == decoded
    as_object = decoded if isinstance(given, str) and isinstance(decoded, dict) else given
    assert read_arguments(given) == as_object


@pytest.mark.parametrize(("given", "decoded"), DECODED)
def test_a_judge_is_shown_a_call_once_however_its_arguments_are_written(given: Any, decoded: Any) -> None:
    wish = {"id": "1", "function": {"name": "x", "arguments": given}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": None, "tool_calls": [wish]},
    ]
    seen = Transcript(messages=messages, turns=[Turn(turn=1, input="Go.")])
    for told in (given, decoded):
        seen.tool_calls = [ToolCall(name="x", arguments=told)]
        assert len([one for one in make_record(seen).pieces if one.by_agent]) == 1


def test_arguments_that_can_be_read_in_two_ways_stay_text() -> None:
    twice = '{"a": 1, "a": 2}'
    assert read_arguments(twice) == twice
    with pytest.raises(SearchCutShort, match="the same key twice"):
        decode_arguments(twice)
    with pytest.raises(SearchCutShort, match="the arguments of `x` could not be read"):
        arguments_of(ToolCall(name="x", arguments=twice))
