"""Servers that speak one of the formats in their own way, and what a format can't say."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.server import raw_server
from tests.agents.support.talk import run
from tests.models.asking import asking
from tests.models.mock_server import Says

from atp.models.connectors.registry import Models
from atp.models.model import BadAnswer, ModelAnswer, ModelError, ModelRequest
from atp.models.openai import OpenAIModel

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def openai(message: dict[str, Any], **more: Any) -> Says:
    return Says(raw=json.dumps({"choices": [{"message": message, **more}]}).encode())


def streamed(format_: str, *events: dict[str, Any] | str) -> ModelAnswer:
    """What comes of a stream, however odd."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in events]

    async def main() -> ModelAnswer:
        stream = HEAD + b"".join(f"data: {line}\n\n".encode() for line in lines)
        async with raw_server(stream) as address, asking(format_, host=address, retries=0) as asked:
            return await asked.ask(on_text=str)

    return run(main())


@pytest.mark.parametrize(
    ("said", "text", "finish"),
    [
        (openai({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "ab", "stop"),
        (
            openai({"content": None, "refusal": "I won't."}, finish_reason="content_filter"),
            "I won't.",
            "content_filter",
        ),
        (openai({"content": "", "refusal": "I won't."}), "I won't.", "stop"),
        (openai({"content": "x", "refusal": "I won't."}), "x\nI won't.", "stop"),
        (
            openai({"content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "I won't."}]}),
            "xI won't.",
            "stop",
        ),
        (openai({"content": "x", "reasoning_content": "hm"}, finish_reason="max_tokens"), "x", "length"),
    ],
)
def test_texts(said: Says, text: str, finish: str) -> None:
    async def main() -> None:
        async with asking("openai", said) as asked:
            answer = await asked.ask()
            assert (answer.text, answer.finish) == (text, finish)

    run(main())


SCHEMA = {"type": "object", "properties": {"passed": {"type": "boolean"}}, "required": ["passed"]}
PASSED = json.dumps({"passed": True})


def anthropic(stop_reason: str) -> Says:
    use = {"type": "tool_use", "id": "1", "name": "final_answer", "input": {"passed": True}}
    return Says(raw=json.dumps({"content": [use], "stop_reason": stop_reason}).encode())


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        ("openai", openai({"content": PASSED, "refusal": "I won't."})),
        ("openai", openai({"content": [{"type": "text", "text": PASSED}, {"type": "refusal", "refusal": "No."}]})),
        ("openai", openai({"content": PASSED}, finish_reason="content_filter")),
        ("anthropic", anthropic("refusal")),
    ],
)
def test_data_in_a_refusal_is_no_answer(format_: str, said: Says) -> None:
    async def main() -> None:
        async with asking(format_, said) as asked:
            error = await asked.fail(schema=SCHEMA)
            assert isinstance(error, BadAnswer)
            assert len(asked.server.requests) == 2

    run(main())


@pytest.mark.parametrize("format_", ["openai", "anthropic"])
@pytest.mark.parametrize("streams", [False, True])
def test_an_answer_that_is_too_large_is_not_read(format_: str, streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atp.models.body.LARGEST", 1024 * 1024)

    async def main() -> None:
        async with asking(format_, "x" * 1024 * 1024, retries=0) as asked:
            error = await asked.fail(on_text=str if streams else None)
            assert "the answer can't be read: it is larger than 1 MB" in str(error)
            assert error.retryable

    run(main())


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ({"function": {"name": "f", "arguments": ""}}, {}),
        ({"function": {"name": "f"}}, {}),
        ({"id": "x", "function": {"name": "f", "arguments": {"a": 1}}}, {"a": 1}),
        ({"id": "x", "function": {"name": "f", "arguments": "[1]"}}, "[1]"),
    ],
)
def test_calls(call: dict[str, Any], arguments: Any) -> None:
    async def main() -> None:
        async with asking("openai", openai({"content": "", "tool_calls": [call]}, finish_reason="stop")) as asked:
            answer = await asked.ask()
            assert ([use.arguments for use in answer.tool_uses], answer.finish) == ([arguments], "tool_calls")
            assert answer.tool_uses[0].id == call.get("id", "call_0")

    run(main())


@pytest.mark.parametrize(
    "message", [{"tool_calls": [{"function": {}}]}, {"tool_calls": [3]}, {"tool_calls": [{"function": {"name": 1}}]}]
)
def test_tool_calls_that_break_the_format(message: dict[str, Any]) -> None:
    async def main() -> None:
        async with asking("openai", openai(message)) as asked:
            assert "`choices[0].message` is missing or not in the format" in str(await asked.fail())

    run(main())


@pytest.mark.parametrize(
    ("format_", "body"),
    [
        ("openai", {"error": {"message": "no credit", "code": 402}}),
        ("openai", {"error": "no credit"}),
        ("anthropic", {"type": "error", "error": {"type": "billing_error", "message": "no credit"}}),
    ],
)
def test_errors_in_responses_with_status_200(format_: str, body: dict[str, Any]) -> None:
    async def main() -> None:
        async with asking(format_, Says(raw=json.dumps(body).encode())) as asked:
            assert str(await asked.fail()).endswith(": no credit")

    run(main())


def test_a_stream_of_whole_calls_without_numbers() -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": {"x": name}}} for name in ("a", "b")]
    chunks = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in calls]
    answer = streamed("openai", *chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]")
    assert [(use.id, use.arguments) for use in answer.tool_uses] == [("a", {"x": "a"}), ("b", {"x": "b"})]


def test_a_stream_of_a_refusal() -> None:
    chunks = [{"choices": [{"delta": {"refusal": piece}}]} for piece in ("I ", "won't.")]
    assert streamed("openai", *chunks, "[DONE]").text == "I won't."


def test_a_stream_with_unknown_events() -> None:
    answer = streamed(
        "anthropic",
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "something_new"},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )
    assert (answer.text, answer.finish, answer.usage.total_tokens) == ("Hi", "refusal", 5)


@pytest.mark.parametrize(
    ("format_", "event"),
    [
        ("openai", "{"),
        ("openai", {"choices": [3]}),
        ("anthropic", "[]"),
        ("anthropic", {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta"}}),
    ],
)
def test_a_stream_that_breaks_the_format(format_: str, event: Any) -> None:
    with pytest.raises(ModelError, match="the answer can't be read"):
        streamed(format_, event)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "a recording in it"),
        (
            {"role": "user", "content": [{"type": "file", "file": {"filename": "a.bin", "file_data": "data:a/b,%ff"}}]},
            "the file a.bin is neither text nor PDF",
        ),
        ({"role": "user", "content": [{"type": "file", "file": {"file_id": "f-1"}}]}, "with its content"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "data:a/b;base64,!"}]}, "can't be read"),
        ({"role": "robot", "content": "x"}, "has the role `robot`"),
    ],
)
def test_what_anthropics_format_can_not_say(message: dict[str, Any], why: str) -> None:
    async def main() -> None:
        async with asking("anthropic") as asked:
            assert why in str(await asked.fail(messages=[message]))

    run(main())


def test_openai_itself_has_a_newer_name_for_the_limit() -> None:
    ours = Models(Path("/nowhere"), {"OPENAI_API_KEY": "sk-0123456"}, {})
    model = ours.get("openai.gpt-5", "a test")
    assert isinstance(model, OpenAIModel)
    body = model._body(ModelRequest(messages=[]), {"max_tokens": 5, "temperature": 0})
    assert body == {"model": "gpt-5", "messages": [], "temperature": 0, "max_completion_tokens": 5}
