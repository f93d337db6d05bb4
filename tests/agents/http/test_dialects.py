"""Agents that speak chat completions, or an interface of their own."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.agents.support.server import sending, serving
from tests.agents.support.talk import Talk, http, run

from atp.agents.adapter import AdapterContext, AgentError, Reply
from atp.base.errors import ConfigurationError
from atp.suite.capabilities import Capabilities

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def chat(content: Any = "Hi", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content, **more}}]}


async def exchange(
    talk: Talk, answer: Any, config: dict[str, Any], **request: Any
) -> tuple[Reply, Any, dict[str, str]]:
    async with serving(sending(answer)) as server:
        reply = await talk.ask(http(server.url, **config), **request)
        return reply, server.bodies[0], server.headers[0]


async def failure(talk: Talk, answer: Any, config: dict[str, Any], **request: Any) -> AgentError:
    async with serving(sending(answer)) as server:
        return await talk.fail(http(server.url, **config), **request)


OPENAI = {"protocol": "openai", "model": "m-1", "api_key": "k"}


def test_chat_completions(talk: Talk) -> None:
    said = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one", "metadata": {"x": 1}},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 3},
    }
    options = {"temperature": 0.5, "connector": "x", "metadata": {"a": 1}}
    reply, body, headers = run(exchange(talk, {**chat(), "usage": usage}, OPENAI, messages=said, options=options))
    assert headers["Accept"] == "application/json"
    assert headers["Authorization"] == "Bearer k"
    assert body == {
        "model": "m-1",
        "temperature": 0.5,
        "messages": [said[0], {"role": "user", "content": "one"}, *said[2:]],
    }
    assert reply.output == "Hi"
    assert reply.tool_calls == []
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (5, 2, 7)
    assert reply.usage.cache_read_tokens == 3


def test_model_may_be_left_out(talk: Talk) -> None:
    _, body, _ = run(exchange(talk, chat(), {"protocol": "openai"}))
    assert body == {"messages": [{"role": "user", "content": "Hello"}]}


def test_tool_calls(talk: Talk) -> None:
    calls = [
        {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
        {"id": "2", "type": "function", "function": {"name": "odd", "arguments": "not json"}},
    ]
    reply, _, _ = run(exchange(talk, chat(None, tool_calls=calls), OPENAI))
    assert reply.output is None
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", {"a": 1}), ("odd", "not json")]
    old = {"name": "add", "arguments": "{}"}
    reply, _, _ = run(exchange(talk, chat(None, function_call=old), OPENAI))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("add", {})]


def test_content_in_parts_and_refusals(talk: Talk) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]
    assert run(exchange(talk, chat(parts), OPENAI))[0].output == "ab"
    assert run(exchange(talk, chat(None, refusal="I won't"), OPENAI))[0].output == "I won't"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": {"message": "quota"}}, "agent error: quota"),
        ({"error": "quota"}, "agent error: quota"),
        ({"error": {"detail": "no\nquota"}}, "agent error: no quota"),
        ({"choices": []}, "no `choices[0].message`"),
        ({"choices": [{"message": "x"}]}, "is not an object"),
        ([], "no `choices[0].message`"),
        (b"data: {}", "is not JSON"),
        ({**chat(), "usage": {"prompt_tokens": "5"}}, "`usage.prompt_tokens` is not a number"),
        (chat(tool_calls={}), "the tool calls are not a list"),
        (chat(tool_calls=[{"function": {}}]), "a tool call has no name"),
        (chat(tool_calls=[3]), "a tool call is not an object"),
    ],
)
def test_chats_that_go_wrong(talk: Talk, answer: Any, words: str) -> None:
    error = run(failure(talk, answer, OPENAI))
    assert error.blame == "agent"
    assert words in str(error)


def test_attachments(talk: Talk) -> None:
    (talk.folder / "fixtures").mkdir()
    (talk.folder / "fixtures/a b.png").write_bytes(PIXEL)
    (talk.folder / "a.pdf").write_bytes(b"%PDF")
    (talk.folder / "a.mp3").write_bytes(b"ID3")
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": "file://./fixtures/a%20b.png"},
        {"type": "image", "source": f"file://{talk.folder}/a.pdf", "mime_type": "image/x"},
        {"type": "image", "source": "https://example.com/a.png"},
        {"type": "image_url", "image_url": "file://fixtures/a b.png"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "source": "file://a.pdf"},
        {"type": "audio", "source": "file://a.mp3"},
    ]
    _, body, _ = run(exchange(talk, chat(), OPENAI, messages=[{"role": "user", "content": parts}]))
    picture = f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    pdf = base64.b64encode(b"%PDF").decode()
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "image_url", "image_url": {"url": f"data:image/x;base64,{pdf}"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{pdf}"}},
        {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"ID3").decode(), "format": "mp3"}},
    ]


def test_attachments_beside_the_test_file(talk: Talk, tmp_path: Path) -> None:
    beside = tmp_path / "suite"
    beside.mkdir()
    (beside / "a.png").write_bytes(PIXEL)
    talk.around = AdapterContext(base=tmp_path / "agents", search=(beside,))
    message = {"role": "user", "content": [{"type": "image", "source": "file://a.png"}]}
    _, body, _ = run(exchange(talk, chat(), OPENAI, messages=[message]))
    (part,) = body["messages"][0]["content"]
    assert part["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"


@pytest.mark.parametrize(
    "part", [{"type": "image", "source": "file://no.png"}, {"type": "file", "source": "https://x/y"}]
)
def test_attachments_that_can_t_be_sent(talk: Talk, part: dict[str, Any]) -> None:
    error = run(failure(talk, chat(), OPENAI, messages=[{"role": "user", "content": [part]}]))
    assert error.blame == "environment"


def test_what_an_agent_said_reads_no_files(talk: Talk) -> None:
    (talk.folder / "secret.txt").write_text("secret")
    said = {"role": "assistant", "content": [{"type": "image", "source": "file://secret.txt"}]}
    _, body, _ = run(exchange(talk, chat(), OPENAI, messages=[said, {"role": "user", "content": "?"}]))
    assert body["messages"][0] == said


JSON = {
    "protocol": "json",
    "body": {
        "text": "{{prompt}}",
        "history": "{{ messages }}",
        "about": "Say {{task.description}} in turn {{turn}} of {{session_id}}: {{options}}",
        "first": "{{messages.0.content}}",
        "nothing": "{{options.missing}}",
        "number": "{{turn}}",
        "list": [1, True, None, {"user": "<{{user}}>"}],
        "{{prompt}}": "keys stay",
    },
    "output_path": "$.answer.text",
    "tool_calls_path": "$.steps[*].tool",
    "usage_path": "answer.usage",
    "state_path": "$.conversation",
}
ANSWER = {
    "answer": {"text": "Hi", "usage": {"input_tokens": 3, "cost_usd": 0.1}},
    "steps": [{"tool": {"name": "a", "args": {"x": 1}, "output": 2}}, {"tool": "b"}, {}],
    "conversation": {"id": "c-1"},
}


def test_template_and_paths(talk: Talk) -> None:
    reply, body, _ = run(exchange(talk, ANSWER, JSON, prompt='"{{turn}}"', options={"a": 1}))
    assert body == {
        "text": '"{{turn}}"',
        "history": [{"role": "user", "content": '"{{turn}}"'}],
        "about": 'Say "{{turn}}" in turn 1 of s-1: {"a":1}',
        "first": '"{{turn}}"',
        "nothing": None,
        "number": 1,
        "list": [1, True, None, {"user": "<>"}],
        "{{prompt}}": "keys stay",
    }
    assert reply.output == "Hi"
    assert [(call.name, call.arguments, call.result) for call in reply.tool_calls] == [
        ("a", {"x": 1}, 2),
        ("b", None, None),
    ]
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cost_usd) == (3, 0.1)
    assert reply.state == {"id": "c-1"}


def test_without_paths_all_is_the_output(talk: Talk) -> None:
    reply, body, _ = run(exchange(talk, [1, 2], {"protocol": "json", "body": "{{prompt}}"}))
    assert (reply.output, body) == ([1, 2], "Hello")


@pytest.mark.parametrize(
    ("path", "output"),
    [("a[*]", [1, 2]), ("$.b[*]", 3), ("$.c", None), ("$..d", {"e": 1})],
)
def test_paths_to_one_place_or_many(talk: Talk, path: str, output: Any) -> None:
    answer = {"a": [1, 2], "b": [3], "c": None, "x": {"d": {"e": 1}}}
    assert run(exchange(talk, answer, {"protocol": "json", "body": 1, "output_path": path}))[0].output == output


def test_calls_and_usage_may_be_absent(talk: Talk) -> None:
    config = {**JSON, "output_path": None, "tool_calls_path": "$.calls"}
    reply, _, _ = run(exchange(talk, {"answer": {"usage": None}}, config))
    assert (reply.tool_calls, reply.usage, reply.state) == ([], None, None)


def test_nothing_at_the_output_path(talk: Talk) -> None:
    error = run(failure(talk, {"other": 1}, JSON))
    assert "the answer has nothing at `$.answer.text`" in str(error)
    assert (error.blame, error.raw) == ("agent", '{"other": 1}')


@pytest.mark.parametrize(
    ("body", "words", "hint"),
    [
        ("{{promt}}", "nothing is called `{{promt}}`", "did you mean `{{prompt}}`?"),
        ([{"a": "x {{ nonsense.a }}"}], "nothing is called `{{nonsense}}`", None),
        ("{{ prompt | upper }}", "begins no placeholder", None),
    ],
)
def test_placeholders_are_checked_before_a_run(talk: Talk, body: Any, words: str, hint: str | None) -> None:
    with pytest.raises(ConfigurationError) as caught:
        talk.adapter(http("http://127.0.0.1/", protocol="json", body=body))
    assert words in str(caught.value)
    assert hint is None or caught.value.hint == hint


def test_what_each_can_observe(talk: Talk) -> None:
    def capabilities(**config: Any) -> Capabilities:
        return talk.adapter(http("http://127.0.0.1/", **config)).capabilities

    nothing = Capabilities(tool_calls=False, tokens=False, cost=False, steps=False, history=False)
    assert capabilities(protocol="json", body=1) == nothing
    assert capabilities(**JSON) == Capabilities()
    assert capabilities(protocol="json", body=1, tool_calls_path="$.a") == Capabilities(
        tokens=False, cost=False, history=False
    )
    assert capabilities(protocol="openai") == Capabilities(cost=False)


def test_state_is_carried_from_turn_to_turn(talk: Talk) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.text())
        state = (body["state"] or 0) + 1
        return web.json_response({"text": f"{body['session']} {body['id']} {state}", "next": state})

    async def scene() -> list[Any]:
        body = {"state": "{{state}}", "session": "{{session_id}}", "id": "{{task_id}}"}
        config = {"protocol": "json", "body": body, "output_path": "$.text", "state_path": "$.next"}
        async with serving(handler) as server:
            adapter = talk.adapter(http(server.url, **config))
            state, outputs = None, []
            for turn in (1, 2, 3):
                reply = await adapter.turn(talk.request(turn=turn, state=state))
                state = reply.state
                outputs.append(reply.output)
            await adapter.close()
            return outputs

    assert run(scene()) == ["s-1 trial-1 1", "s-1 trial-1 2", "s-1 trial-1 3"]
