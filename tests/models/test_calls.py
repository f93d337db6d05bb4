"""What is noted of a model's calls: bounded in size, masked, and nothing outside of a trial."""

import json
import time
from typing import Any

import pytest

from atp.base.secrets import Secrets, masking
from atp.models.calls import LONGEST_CALL, LONGEST_TEXT, MOST_IN_TRIAL, CallLog, noted_call, noting_calls
from atp.suite.result import ModelCall, Usage


def log_to(calls: list[ModelCall]) -> CallLog:
    log = CallLog(lambda: ("agent", 1))
    log.start(calls, time.monotonic())
    return log


def note(log: CallLog, body: dict[str, Any], answer: Any = None) -> None:
    with noting_calls(log), noted_call("c", "m", body) as noted:
        noted.answered(answer)
        noted.used(Usage(input_tokens=1))


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def test_nothing_is_noted_outside_of_a_trial() -> None:
    with noted_call("c", "m", {"messages": []}) as noted:
        noted.waited(1)
        noted.failed("x")
        noted.answered({"a": 1})
        noted.used(Usage())


def test_a_long_text_is_cut_and_the_request_stays_json() -> None:
    calls: list[ModelCall] = []
    note(log_to(calls), {"messages": said("a" * 100_000), "stop": ("x",)}, {"text": "b" * 15_000})
    (call,) = calls
    assert len(call.request["messages"][0]["content"]) == LONGEST_TEXT
    assert call.request["messages"][0]["content"].endswith("…")
    assert call.request["stop"] == ["x"]
    assert len(call.answer["text"]) == LONGEST_TEXT


def test_of_a_request_with_many_texts_the_beginning_is_kept() -> None:
    calls: list[ModelCall] = []
    note(log_to(calls), {"messages": said(*["a" * 3000] * 100)})
    assert isinstance(calls[0].request, str)
    assert len(calls[0].request) == LONGEST_CALL


def test_a_value_that_is_too_deep_is_kept_as_text() -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    calls: list[ModelCall] = []
    note(log_to(calls), {"messages": [], "deep": deep})
    assert json.dumps(calls[0].request)


def test_a_trial_has_room_for_so_much() -> None:
    calls: list[ModelCall] = []
    log = log_to(calls)
    for number in range(60):
        note(log, {"messages": said(f"{number}" + "a" * 3000, *["b" * 3900] * 8)})
    kept = [call.request for call in calls if call.request is not None]
    assert 0 < len(kept) < len(calls) == 60
    assert len(json.dumps(kept)) < MOST_IN_TRIAL + 2 * LONGEST_CALL


def test_messages_that_the_call_before_had_are_left_out() -> None:
    calls: list[ModelCall] = []
    log = log_to(calls)
    note(log, {"messages": said("a", "b", "c")})
    note(log, {"messages": said("a", "b", "c", "d")})
    note(log, {"messages": said("a", "b", "c", "d")})
    note(log, {"messages": said("a", "x")})
    assert [call.repeated for call in calls] == [0, 3, 3, 0]
    assert [[one["content"] for one in call.request["messages"]] for call in calls] == [
        ["a", "b", "c"],
        ["d"],
        ["d"],
        ["a", "x"],
    ]


def test_a_secret_is_masked_before_a_text_is_cut() -> None:
    secret = "zQ7xCANARYw9KpL2mN4v"
    calls: list[ModelCall] = []
    with masking(Secrets([secret])):
        note(log_to(calls), {"messages": said("x" * (LONGEST_TEXT - 10) + secret), secret: 1}, {"a": [secret]})
    assert secret[:6] not in json.dumps([calls[0].request, calls[0].answer])


def test_the_error_of_a_call_is_noted() -> None:
    calls: list[ModelCall] = []
    with noting_calls(log_to(calls)), pytest.raises(ValueError, match="broken"), noted_call("c", "m", {}):
        raise ValueError("it is broken")
    with noting_calls(log_to(calls)), pytest.raises(KeyboardInterrupt), noted_call("c", "m", {}):
        raise KeyboardInterrupt
    assert [call.error for call in calls] == ["it is broken", "cancelled before there was an answer"]
    assert all(call.answer is None for call in calls)
