"""An answer of a Python agent is no larger than one that comes over a pipe or a connection may be."""

from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import Talk

from atp.agents import reply
from atp.agents.adapter import AgentError
from atp.agents.reply import Answer

LARGE: dict[str, Any] = {
    "a text": "x" * 101,
    "many numbers": [1] * 51,
    "many digits": [10**60] * 2,
    "a text deep inside": {"output": {"a": [{"b": "x" * 101}]}},
    "a key": {"x" * 101: 1},
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "LARGEST_OUTPUT", 100)


@pytest.mark.parametrize("what", LARGE)
def test_a_returned_value_that_is_too_large_is_the_agents_error(tmp_path: Path, what: str) -> None:
    with pytest.raises(AgentError, match="agent error: answered with more than"):
        Answer(Talk(tmp_path).request()).given_back(LARGE[what])


def test_what_a_generator_yields_is_counted_together(tmp_path: Path) -> None:
    answer = Answer(Talk(tmp_path).request())
    for _ in range(10):
        answer.yielded("x" * 10)
    assert answer.finish().output == "x" * 100
    with pytest.raises(AgentError, match="answered with more than"):
        answer.yielded("x")


@pytest.mark.parametrize("value", ["x" * 100, [1] * 40, {"a": "x" * 90}, None])
def test_smaller_answers_are_taken(tmp_path: Path, value: Any) -> None:
    answer = Answer(Talk(tmp_path).request())
    answer.given_back(value)
    assert answer.finish().output == value


@pytest.mark.parametrize(
    ("value", "warning", "calls"),
    [
        (
            {"output": "a", "tool_calls": [{"name": "x"}, {"name": "y"}], "latency_ms": 3},
            "the answer has `latency_ms` beside `output` and `tool_calls`, so all of it is the output",
            2,
        ),
        ({"output": "a", "usage": {}, "k": 1, "l": 2}, "the answer has `k`, `l` beside `output` and `usage`", None),
        ({"output": "a", "tool_calls": [], "k": 1}, "the answer has `k` beside `output` and `tool_calls`", None),
        ({"output": "a", "latency_ms": 3}, None, None),  # nothing that ATP would have read otherwise
        ({"tool_calls": [{"name": "x"}], "latency_ms": 3}, "the answer has `latency_ms` beside `tool_calls`", 1),
    ],
)
def test_an_unknown_key_beside_the_parts_of_a_reply_is_warned_of(
    tmp_path: Path, value: dict[str, Any], warning: str | None, calls: int | None
) -> None:
    answer = Answer(Talk(tmp_path).request())
    answer.given_back(value)
    reply = answer.finish()
    assert (reply.output, reply.tool_calls) == (value, [])
    assert [one.partition(", so")[0] for one in reply.warnings] == ([warning.partition(", so")[0]] if warning else [])
    assert (reply.usage.tool_calls if reply.usage else None) == calls
