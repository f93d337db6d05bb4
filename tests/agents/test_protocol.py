"""The wire protocol: requests in every field, responses and events against every rule."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.agents.support.talk import Talk

from atp.agents.adapter import AgentError, Reply, TurnRequest
from atp.agents.events import read_event, tool_call
from atp.agents.protocol import build_request, encode_request, read_response
from atp.agents.reply import Answer, read_tool_calls
from atp.agents.wire import RAW_LENGTH, ProtocolError


def answer(talk: Talk, *leave_out: str, **fields: Any) -> Reply:
    response = {"version": "1.0", "task_id": "trial-1", "status": "completed", **fields}
    for name in leave_out:
        del response[name]
    return read_response(json.dumps(response).encode(), talk.request())


def broken(talk: Talk, raw: bytes) -> AgentError:
    with pytest.raises(AgentError) as caught:
        read_response(raw, talk.request())
    assert caught.value.blame == "agent"
    assert str(caught.value).startswith("agent error: broke the protocol: ")
    assert caught.value.raw is not None
    assert len(caught.value.raw) <= RAW_LENGTH + 10
    return caught.value


def test_request_of_a_task_has_exactly_the_protocols_fields(talk: Talk) -> None:
    request = talk.request(
        "Do it",
        conversation=False,
        task={"description": "Do it", "input_data": {"a": 1}, "expected_artifacts": ["x.txt"]},
        constraints={"max_steps": 3, "max_tokens": None},
        context={
            "case_id": "c",
            "case_name": "The case",
            "user": "u",
            "team": "t",
            "locale": "en",
            "client_type": "web",
            "client_ip": "127.0.0.1",
            "referer": "r",
            "accept": "a",
            "connector": "k",
            "session_id": "s",
            "run": 2,
            "iteration": 0,
            "agent": "x",
            "config": {"api_key": "secret"},
            "metadata": {"mine": 1, "run": "theirs"},
        },
        options={"mode": "fast"},
        turn=1,
    )
    assert build_request(request, {"A": "b"}) == {
        "version": "1.0",
        "task_id": "trial-1",
        "task": {"description": "Do it", "input_data": {"a": 1}, "expected_artifacts": ["x.txt"]},
        "constraints": {"max_steps": 3},
        "context": {"workspace_path": str(talk.workspace), "tools_endpoint": None, "environment": {"A": "b"}},
        "metadata": {
            "test_id": "c",
            "test_name": "The case",
            "run": 2,
            "iteration": 0,
            "turn": 1,
            "session_id": "s",
            "user_id": "u",
            "team_id": "t",
            "locale": "en",
            "client_type": "web",
            "client_ip": "127.0.0.1",
            "referer": "r",
            "accept": "a",
            "connector": "k",
            "options": {"mode": "fast"},
            "mine": 1,
        },
    }


def test_task_without_data(talk: Talk) -> None:
    task = build_request(talk.request("Do it", conversation=False))["task"]
    assert task == {"description": "Do it", "input_data": None, "expected_artifacts": None}


def test_request_of_a_conversation_carries_all_of_it(talk: Talk) -> None:
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    task = build_request(talk.request("c", messages=said, turn=2, task={"description": "a", "input_data": {"x": 1}}))
    assert task["task"]["description"] == "c"
    assert task["task"]["input_data"] == {"x": 1, "messages": said}
    assert task["metadata"]["turn"] == 2
    assert task["metadata"]["session_id"] == "s-1"


def test_prompt_without_words(talk: Talk) -> None:
    said = [{"role": "user", "content": [{"type": "image", "source": "file://a.png"}]}]
    assert build_request(talk.request("", messages=said))["task"]["description"]


def test_prompt_that_is_too_long_for_the_protocol(talk: Talk) -> None:
    with pytest.raises(AgentError, match="100001 characters; the protocol carries 100000") as caught:
        build_request(talk.request("x" * 100_001))
    assert caught.value.blame == "environment"


def test_request_that_json_cant_say(talk: Talk) -> None:
    with pytest.raises(AgentError, match="can't be written as JSON") as caught:
        encode_request(talk.request("\ud800"))
    assert caught.value.blame == "environment"


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"artifacts": [{"type": "structured", "name": "output", "data": "A"}], "output": "B"}, "A"),
        ({"artifacts": [{"type": "structured", "name": "response", "data": {"a": 1}}], "output": "B"}, {"a": 1}),
        (
            {
                "artifacts": [
                    {"type": "structured", "name": "response", "data": "A"},
                    {"type": "structured", "name": "output", "data": "B"},
                ]
            },
            "B",
        ),
        ({"output": "B"}, "B"),
        ({"output": None, "artifacts": [{"type": "file", "path": "a", "content": "A"}]}, None),
        ({"artifacts": [{"type": "file", "path": "a.md", "content": "A"}]}, "A"),
        (
            {
                "artifacts": [
                    {"type": "file", "path": "a.md", "content": "A"},
                    {"type": "file", "path": "a.png", "content": "AAEC", "encoding": "base64"},
                ]
            },
            "A",
        ),
        (
            {
                "artifacts": [
                    {"type": "file", "path": "a.md", "content": "A"},
                    {"type": "file", "path": "b.md", "content": "B"},
                ]
            },
            None,
        ),
        ({"artifacts": [{"type": "structured", "name": "summary", "data": 1}]}, None),
        ({"artifacts": None}, None),
        ({}, None),
    ],
)
def test_the_answer_in_words(talk: Talk, fields: dict[str, Any], output: Any) -> None:
    assert answer(talk, **fields).output == output


def test_metrics_become_usage(talk: Talk) -> None:
    metrics = {
        "total_tokens": 10,
        "input_tokens": 6,
        "output_tokens": 4.0,
        "cache_creation_tokens": 1,
        "cache_read_tokens": 2,
        "total_steps": 3,
        "tool_calls": 2,
        "llm_calls": 1,
        "wall_time_seconds": 1,
        "cost_usd": 0.01,
        "colour": "red",
    }
    usage = answer(talk, metrics=metrics).usage
    assert usage is not None
    assert (usage.total_tokens, usage.input_tokens, usage.output_tokens, usage.steps) == (10, 6, 4, 3)
    assert (usage.cache_creation_tokens, usage.cache_read_tokens, usage.tool_calls, usage.llm_calls) == (1, 2, 2, 1)
    assert (usage.wall_time_seconds, usage.cost_usd) == (1.0, 0.01)


def test_what_is_left_out_is_unknown(talk: Talk) -> None:
    assert answer(talk).usage is None
    usage = answer(talk, metrics={"total_tokens": None}).usage
    assert usage is not None
    assert usage.total_tokens is None


def test_unknown_fields_are_kept_and_ignored(talk: Talk) -> None:
    artifact = {"type": "structured", "name": "output", "data": 1, "colour": "blue"}
    reply = answer(talk, trace_id="t-1", mood="ok", metrics={"joy": "a", "recall": 1}, artifacts=[artifact])
    assert reply.output == 1
    assert reply.metrics == {"recall": 1.0}
    assert talk.logs == [
        'beside the response: {"trace_id":"t-1","mood":"ok","metrics":{"joy":"a"},"artifacts":{"0":{"colour":"blue"}}}'
    ]


def test_version_may_be_left_out(talk: Talk) -> None:
    assert answer(talk, "version", output="x").output == "x"


@pytest.mark.parametrize("status", ["failed", "timeout", "cancelled", "partial"])
def test_only_completed_is_a_success(talk: Talk, status: str) -> None:
    fields = {"metrics": {"cost_usd": 0.5}, "output": "half"}
    with pytest.raises(AgentError, match=f"^agent error: status `{status}`$") as caught:
        answer(talk, status=status, **fields)
    assert type(caught.value) is AgentError
    assert caught.value.blame == "agent"
    assert caught.value.reply is not None
    assert caught.value.reply.output == "half"
    assert caught.value.reply.usage is not None
    assert caught.value.reply.usage.cost_usd == 0.5


@pytest.mark.parametrize(("error", "text"), [("no luck", "no luck"), ({"code": 3}, '{"code":3}')])
def test_the_agents_own_words(talk: Talk, error: Any, text: str) -> None:
    with pytest.raises(AgentError) as caught:
        answer(talk, status="failed", error=error)
    assert str(caught.value) == f"agent error: {text}"


STATUSES = "it is one of `completed`, `failed`, `timeout`, `cancelled`, `partial`"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "the response is empty"),
        (b" \n", "the response is empty"),
        (b"Hello", "is not JSON"),
        (b"{", "is not JSON"),
        (b'{"a": NaN}', "is not JSON"),
        (b'{"a": "\xff"}', "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (
            b"[]",
            "the response is not an object. stdout begins with `[]`: if it prints plain text, set `protocol: text`",
        ),
        (b"{} {}", "is not JSON"),
        (b'{"status": "completed"}', "`task_id` of the response is missing: copy it from the request"),
        (b'{"task_id": "trial-1"}', f"`status` of the response is missing: {STATUSES}"),
        (b'{"task_id": "trial-2", "status": "completed"}', "about the task `trial-2`, not `trial-1`: copy"),
        (b'{"task_id": 1, "status": "completed"}', "`task_id` of the response is 1: copy it from the request"),
        (b'{"task_id": "trial-1", "status": "done"}', f'`status` of the response is "done": {STATUSES}'),
        (b'{"task_id": "trial-1", "status": ["completed"]}', f'`status` of the response is ["completed"]: {STATUSES}'),
        (
            b'{"task_id": "trial-1", "status": "completed", "version": "2.0"}',
            'is "2.0": it is the text "1.0", or left out',
        ),
        (b'{"task_id": "trial-1", "status": "completed", "metrics": []}', "at `$.metrics`"),
        (b'{"task_id": "trial-1", "status": "completed", "metrics": {"total_tokens": -1}}', "not a number from 0"),
        (b'{"task_id": "trial-1", "status": "completed", "metrics": {"total_tokens": 1.5}}', "not a whole number"),
        (b'{"task_id": "trial-1", "status": "completed", "metrics": {"cost_usd": "3"}}', "`metrics.cost_usd`"),
        (b'{"task_id": "trial-1", "status": "completed", "metrics": {"llm_calls": true}}', "`metrics.llm_calls`"),
        (b'{"task_id": "trial-1", "status": "completed", "artifacts": {}}', "at `$.artifacts`"),
        (b'{"task_id": "trial-1", "status": "completed", "artifacts": [{"type": "zip"}]}', "Invalid value 'zip'"),
        (b'{"task_id": "trial-1", "status": "completed", "artifacts": [{"path": "a"}]}', "field `type`"),
        (b'{"task_id": "trial-1", "status": "completed", "artifacts": [{"type": "file"}]}', "field `path`"),
        (
            b'{"task_id": "trial-1", "status": "completed", "artifacts": [{"type": "structured", "name": "a"}]}',
            "`data`",
        ),
        (
            json.dumps(
                {
                    "task_id": "trial-1",
                    "status": "completed",
                    "artifacts": [{"type": "structured", "name": "a", "data": 1}] * 1001,
                }
            ).encode(),
            "length <= 1000",
        ),
    ],
)
def test_responses_that_break_the_rules(talk: Talk, raw: bytes, words: str) -> None:
    assert words in str(broken(talk, raw))


def test_long_values_are_cut(talk: Talk) -> None:
    error = broken(talk, json.dumps({"task_id": "trial-1", "status": "x" * 10_000}).encode())
    assert len(str(error)) < 300


def test_text_where_a_response_is_due(talk: Talk) -> None:
    for raw in (b"Hello,\n  there", b'INFO up\n{"task_id": "trial-1", "status": "completed"}', b"4"):
        told = str(broken(talk, raw))
        assert f"stdout begins with `{' '.join(raw.decode().split())}`: " in told
        assert "if it prints plain text, set `protocol: text`" in told
        assert "stdout must contain only the response, log to stderr" in told
    assert "x" * 101 not in str(broken(talk, b"x" * 10_000))
    assert "protocol: text" not in str(broken(talk, b"\n"))


def test_byte_order_mark_is_no_breach(talk: Talk) -> None:
    raw = b'\xef\xbb\xbf{"task_id": "trial-1", "status": "completed", "output": 1}\n'
    assert read_response(raw, talk.request()).output == 1


EVENT = {"version": "1.0", "task_id": "trial-1", "timestamp": "2025-01-01T00:00:00Z", "sequence": 0}


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("tool_call", {"tool": "x", "input": {"a": 1}, "output": None, "duration_ms": 1.5, "status": "success"}),
        ("llm_request", {"model": "m", "input_tokens": 3, "output_tokens": None}),
        ("reasoning", {"thought": "t", "step": "first"}),
        ("reasoning", {"step": 2}),
        ("error", {"error_type": "E", "message": "m", "recoverable": True}),
        ("progress", {"current_step": 1, "percentage": 50, "message": "m", "more": 1}),
        ("message", {"role": "assistant", "content": [1]}),
    ],
)
def test_events(talk: Talk, kind: str, payload: dict[str, Any]) -> None:
    event = read_event({**EVENT, "event_type": kind, "payload": payload}, talk.request(turn=3))
    assert (event.type, event.payload, event.turn) == (kind, payload, 3)
    assert talk.logs == []


def test_events_may_have_more_and_less(talk: Talk) -> None:
    read_event({"event_type": "progress", "payload": {}, "node": 7}, talk.request())
    assert talk.logs == ['beside a `progress` event: {"node":7}']


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([0, 1, 2], []),
        ([None, 4, None, 7], []),
        ([0, 0, 0], ["a `progress` event has the sequence 0, after one with 0"]),
        ([0, 3, 2, 1], ["a `progress` event has the sequence 2, after one with 3"]),
    ],
)
def test_numbers_of_events_that_do_not_count_up_are_told_once(
    talk: Talk, numbers: list[int | None], said: list[str]
) -> None:
    request = talk.request()
    for number in numbers:
        read_event({"event_type": "progress", "payload": {}, "sequence": number}, request)
    assert talk.logs == said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event_type": "nonsense"}, "there is no event_type `nonsense`"),
        ({"event_type": 1}, "at `$.event_type`"),
        ({"payload": None}, "at `$.payload`"),
        ({"payload": {}}, "payload of a `tool_call` event: Object missing required field `tool`"),
        ({"payload": {"tool": ""}}, "at `$.tool`"),
        ({"payload": {"tool": "x", "status": "maybe"}}, "Invalid enum value 'maybe'"),
        ({"payload": {"tool": "x", "duration_ms": -1}}, "at `$.duration_ms`"),
        ({"task_id": "other"}, "about the task `other`"),
        ({"sequence": -1}, "at `$.sequence`"),
        ({"version": "0.9"}, "at `$.version`"),
        ({"event_type": "llm_request", "payload": {"input_tokens": "3"}}, "at `$.input_tokens`"),
        ({"event_type": "progress", "payload": {"current_step": True}}, "at `$.current_step`"),
    ],
)
def test_events_that_break_the_rules(talk: Talk, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_event({**EVENT, "event_type": "tool_call", "payload": {"tool": "x"}, **change}, talk.request())
    assert words in str(caught.value)


def test_tool_calls_of_events() -> None:
    call = tool_call({"tool": "a", "input": {"x": 1}, "args": 2, "output": [3], "duration_ms": 4}, 2)
    assert (call.name, call.arguments, call.result, call.error, call.turn, call.duration_ms) == (
        *("a", {"x": 1}, [3], None),
        *(2, 4),
    )
    assert tool_call({"tool": "a", "args": {"y": 1}}, 1).arguments == {"y": 1}
    failed = tool_call({"tool": "a", "output": "no", "status": "error"}, 1)
    assert (failed.result, failed.error) == (None, "no")
    assert tool_call({"tool": "a", "status": "error"}, 1).error == "failed"


def returned(given: Any, request: TurnRequest) -> Any:
    answer = Answer(request)
    answer.given_back({"output": "", "tool_calls": [{"name": "a", "arguments": given}]})
    return answer.finish().tool_calls[0].arguments


ARGUMENTS_BY_WAY: dict[str, Callable[[Any, TurnRequest], Any]] = {
    "event": lambda given, request: tool_call({"tool": "a", "input": given}, request.turn).arguments,
    "returned": returned,
    "chat": lambda given, request: read_tool_calls([{"function": {"name": "a", "arguments": given}}], 1)[0].arguments,
}


@pytest.mark.parametrize("way", ARGUMENTS_BY_WAY)
@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"x": 1}', {"x": 1}),
        ("", {}),
        (" \n", {}),
        ("not JSON", "not JSON"),
        ('{"x": ', '{"x": '),
        ('{"x": 1, "x": 2}', '{"x": 1, "x": 2}'),
        ("[1]", "[1]"),
        ('"x"', '"x"'),
        ("[" * 100_000, "[" * 100_000),
        ("\ud800", "\ud800"),
        ([1], [1]),
        (None, None),
    ],
)
def test_arguments_in_json_are_decoded_whichever_way_a_call_is_reported(
    talk: Talk, way: str, given: Any, read: Any
) -> None:
    assert ARGUMENTS_BY_WAY[way](given, talk.request()) == read


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ('{"task_id": "trial-1", "status": "failed", "status": "completed"}', "status"),
        ('{"task_id": "trial-1", "status": "completed", "output": {"a": [{"b": 1, "c": 2, "b": 3}]}}', "b"),
        ('{"task_id": "trial-1", "status": "completed", "\\u0073tatus": "failed"}', "status"),
        ('{"task_id": "trial-1", "status": "completed", "metrics": {"cost_usd": 1, "cost_usd": 9}}', "cost_usd"),
    ],
    ids=["in the response", "in the output", "written with an escape", "in the metrics"],
)
def test_a_key_that_is_there_twice_breaks_the_protocol(talk: Talk, raw: str, key: str) -> None:
    assert f"the response has the key `{key}` twice in one object" in str(broken(talk, raw.encode()))


def test_numbers_of_any_size_are_read(talk: Talk) -> None:
    assert answer(talk, output=[10**30, -(10**18), 1.5e300]).output == [10**30, -(10**18), 1.5e300]
