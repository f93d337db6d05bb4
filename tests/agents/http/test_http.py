"""Agents behind an HTTP address, speaking ATP's own protocol, against a real server."""

import asyncio
import email.utils
import json
import time
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError
from tests.agents.support.server import (
    FOREVER,
    Handler,
    answering,
    completed,
    event,
    raw_server,
    sending,
    serving,
    sse,
    streaming,
)
from tests.agents.support.talk import LimitPassed, Talk, http, run
from tests.waiting import until_async

from atp.agents.adapter import AgentError, AgentTimeout, Finding, Reply
from atp.base.errors import ConfigurationError
from atp.suite.capabilities import Capabilities

DONE = {"version": "1.0", "task_id": "trial-1", "status": "completed", "output": "Grüße 😀"}


async def ask(talk: Talk, handler: Handler, **config: Any) -> Reply:
    async with serving(handler) as server:
        return await talk.ask(http(server.url, **config))


async def fail(talk: Talk, handler: Handler, **config: Any) -> AgentError:
    async with serving(handler) as server:
        return await talk.fail(http(server.url, **config))


def test_json_answer(talk: Talk) -> None:
    async def scene() -> None:
        async with serving(answering(output="Hi", metrics={"total_tokens": 3})) as server:
            reply = await talk.ask(http(f"{server.url}/agent", api_key="key-1", headers={"X-Mine": "1"}))
            assert reply.output == "Hi"
            assert reply.usage is not None
            assert reply.usage.total_tokens == 3
            (headers,), (body,) = server.headers, server.bodies
            assert headers["Accept"] == "text/event-stream, application/json"
            assert headers["Content-Type"] == "application/json"
            assert headers["Authorization"] == "Bearer key-1"
            assert headers["X-Mine"] == "1"
            assert body["task_id"] == "trial-1"
            assert body["task"]["input_data"]["messages"] == [{"role": "user", "content": "Hello"}]
            assert body["context"]["workspace_path"] == str(talk.workspace)

    run(scene())


def test_own_headers_replace_ours(talk: Talk) -> None:
    async def scene() -> None:
        async with serving(answering()) as server:
            headers = {"authorization": "Basic x", "content-type": "application/json; charset=utf-8"}
            await talk.ask(http(server.url, api_key="key-1", headers=headers))
            assert server.headers[0]["Authorization"] == "Basic x"

    run(scene())


STREAM = sse(
    event("tool_call", tool="search", input={"q": "é"}),
    event("progress", current_step=2),
    ("response", DONE),
)


def check_stream(talk: Talk, reply: Reply) -> None:
    assert [(one.type, one.payload) for one in talk.events] == [
        ("tool_call", {"tool": "search", "input": {"q": "é"}}),
        ("progress", {"current_step": 2}),
    ]
    assert reply.output == "Grüße 😀"


def test_stream_cut_at_every_byte(talk: Talk) -> None:
    streams = [
        STREAM,
        STREAM.replace(b"\n", b"\r\n"),
        STREAM.replace(b"\n", b"\r").rstrip(b"\r"),
    ]

    async def scene() -> None:
        pieces: list[bytes] = []

        async def handler(request: web.Request) -> web.StreamResponse:
            return await streaming(list(pieces))(request)

        async with serving(handler) as server:
            adapter = talk.adapter(http(server.url))
            for stream in streams:
                cuts = [[stream[:at], stream[at:]] for at in range(1, len(stream))]
                for cut in [*cuts, [bytes([byte]) for byte in stream]]:
                    pieces[:] = cut
                    talk.events.clear()
                    check_stream(talk, await adapter.turn(talk.request()))
            await adapter.close()

    run(scene())


RESPONSES = pytest.mark.parametrize("response", [DONE, ("response", DONE)], ids=["status", "name"])


@RESPONSES
@pytest.mark.parametrize("end", [b"", b": a comment\n\n", b"event: nothing\n\n", b"data: [DONE]\n\n"])
def test_a_message_with_a_status_and_one_called_response_end_the_stream(talk: Talk, response: Any, end: bytes) -> None:
    assert run(ask(talk, streaming([sse(event("progress"), response) + end]))).output == "Grüße 😀"


@RESPONSES
@pytest.mark.parametrize("chunks", [1, 2], ids=["at once", "later"])
@pytest.mark.parametrize(
    "more",
    [sse(event("tool_call", tool="refund")), sse(DONE), sse(("response", DONE)), b"data: junk\n\n", b"data: junk"],
    ids=["a tool call", "a second response", "a second one by name", "junk", "junk without an end"],
)
def test_what_comes_after_the_response_breaks_the_protocol(talk: Talk, response: Any, more: bytes, chunks: int) -> None:
    first = sse(response)
    error = run(fail(talk, streaming([first + more] if chunks == 1 else [first, more])))
    assert (error.blame, error.retryable) == ("agent", False)
    assert "there is data after the final response" in str(error)
    assert error.raw is not None
    assert error.raw in more.decode()


def test_a_stream_that_stays_open_after_its_response_is_logged(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atp.agents.http_exchange.CLOSE_SECONDS", 0.05)
    assert run(ask(talk, streaming([sse(("response", DONE))], stay=FOREVER))).output == "Grüße 😀"
    assert talk.logs == ["the stream was still open 0.05s after its response; no more of it was read"]


def test_last_message_without_a_blank_line(talk: Talk) -> None:
    lines = json.dumps(DONE, indent=1).splitlines()
    stream = b": hello\n\nevent: response\n" + "\n".join(f"data: {line}" for line in lines).encode()
    assert run(ask(talk, streaming([stream]))).output == "Grüße 😀"


def test_name_of_the_message_may_stand_for_the_event_type(talk: Talk) -> None:
    stream = sse(("tool_call", {"payload": {"tool": "x"}}), ("response", DONE))
    run(ask(talk, streaming([stream])))
    assert [one.type for one in talk.events] == ["tool_call"]


def test_stream_that_fails(talk: Talk) -> None:
    error = run(fail(talk, streaming([sse({**DONE, "status": "failed", "error": "no luck"})])))
    assert (str(error), error.blame) == ("agent error: no luck", "agent")


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"", "the stream ended without a response"),
        (sse(event("progress")), "the stream ended without a response"),
        (b"data: hello\n\n", "a message of the stream is not JSON"),
        (b"data: [DONE]\n\n", "a message of the stream is not JSON"),
        (b"data: [1]\n\n", "a message of the stream is not an object"),
        (sse({"event_type": "nonsense", "payload": {}}), "there is no event_type `nonsense`"),
        (sse({"payload": {}}), "field `event_type`"),
        (sse(("response", {"status": "completed"})), "`task_id` of the response is missing"),
        (STREAM[:-20], "a message of the stream is not JSON"),
    ],
)
def test_streams_that_break_the_rules(talk: Talk, stream: bytes, words: str) -> None:
    error = run(fail(talk, streaming([stream])))
    assert error.blame == "agent"
    assert words in str(error)
    assert not error.retryable


def test_stream_that_breaks_off(talk: Talk) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def scene() -> AgentError:
        async with raw_server(head + b"10\r\ndata: {") as url:
            return await talk.fail(http(url))

    error = run(scene())
    assert (error.blame, error.retryable) == ("agent", False)
    assert "ended early" in str(error)


def test_stopped_at_the_event_that_passes_a_limit(talk: Talk) -> None:
    talk.most_events = 3
    stream = sse(*[event("progress", current_step=step) for step in range(50)])
    with pytest.raises(LimitPassed):
        run(ask(talk, streaming([stream], stay=FOREVER)))
    assert len(talk.events) == 4


def test_stream_endpoint(talk: Talk) -> None:
    async def scene() -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            if request.path == "/stream":
                return await streaming([STREAM])(request)
            return await sending({}, 500)(request)

        async with serving(handler) as server:
            check_stream(talk, await talk.ask(http(server.url, stream_endpoint=f"{server.url}/stream")))

    run(scene())


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_passing_troubles(talk: Talk, status: int) -> None:
    error = run(fail(talk, sending({"error": "slow down"}, status, **{"Retry-After": "7"})))
    assert (str(error), error.blame) == (f"HTTP {status}: slow down", "environment")
    assert (error.retryable, error.retry_after) == (True, 7.0)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1.5", 1.5), ("-3", 0.0), ("nan", None), ("inf", None), ("soon", None), ("", None)]
)
def test_retry_after_in_other_words(talk: Talk, text: str, seconds: float | None) -> None:
    assert run(fail(talk, sending(b"", 429, **{"Retry-After": text}))).retry_after == seconds


def test_retry_after_as_a_date(talk: Talk) -> None:
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    seconds = run(fail(talk, sending(b"", 503, **{"Retry-After": date}))).retry_after
    assert seconds is not None
    assert 50 < seconds <= 60


@pytest.mark.parametrize("status", [400, 401, 422, 500, 501])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such thing"}},
        {"detail": "no such\n  thing"},
        b'\xef\xbb\xbf{"error": "no such thing"}',
        b"no such\n thing",
    ],
)
def test_other_statuses_are_the_agents(talk: Talk, status: int, body: Any) -> None:
    error = run(fail(talk, sending(body, status)))
    hint = "; if the server doesn't speak ATP's protocol, set `protocol: json` or `protocol: openai`"
    hint = hint if status in (400, 422) else ""
    assert (str(error), error.blame) == (f"agent error: HTTP {status}: no such thing{hint}", "agent")
    assert not error.retryable
    assert error.raw


def test_a_request_in_another_protocol_is_not_told_of_atps(talk: Talk) -> None:
    error = run(fail(talk, sending(b"no", 422), protocol="json", body={"q": "{{prompt}}"}))
    assert str(error) == "agent error: HTTP 422: no"


async def fail_at(talk: Talk, handler: Handler, path: str, key: str = "endpoint") -> str:
    """What a turn at a path of the server says, with the server's place left out."""
    async with serving(handler) as server:
        error = await talk.fail(http(**{"endpoint": server.url, key: f"{server.url}{path}"}))
    assert (error.blame, error.retryable, bool(error.raw)) == ("agent", False, True)
    return str(error).replace(server.url, "http://there")


@pytest.mark.parametrize("status", [404, 405])
def test_path_that_is_wrong(talk: Talk, status: int) -> None:
    told = run(fail_at(talk, sending({"detail": "Not Found"}, status), "/agnt?key=s3cret"))
    assert told == (f"agent error: HTTP {status} to POST http://there/agnt?…: Not Found; check the path of `endpoint`")
    told = run(fail_at(talk, sending(b"no", status), "/stream", "stream_endpoint"))
    assert told.endswith(f"HTTP {status} to POST http://there/stream: no; check the path of `stream_endpoint`")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"\n<!DOCTYPE HTML>\n<title>Oh", {}),
        (b"<html><title>Oh", {}),
        (b"<h1>Oh", {"Content-Type": "text/html; charset=utf-8"}),
    ],
)
def test_pages_are_not_quoted(talk: Talk, body: bytes, headers: dict[str, str]) -> None:
    told = run(fail_at(talk, sending(body, 404, **headers), "/agnt"))
    assert told == "agent error: HTTP 404 to POST http://there/agnt; check the path of `endpoint`"
    assert run(fail_at(talk, sending(body, 500, **headers), "/")) == "agent error: HTTP 500"


def test_redirects_are_not_followed(talk: Talk) -> None:
    error = run(fail(talk, sending(b"", 307, Location="http://127.0.0.1:1/x")))
    assert str(error) == "agent error: HTTP 307, a redirect to http://127.0.0.1:1/x: set `endpoint` to it"
    error = run(fail(talk, sending(b"", 307, Location="http://me:s3cret@127.0.0.1:1/x?key=s3cret#a")))
    assert str(error) == "agent error: HTTP 307, a redirect to http://127.0.0.1:1/x?…: set `endpoint` to it"


def free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_unreachable(talk: Talk, host: str) -> None:
    error = run(talk.fail(http(f"http://{host}:{free_port()}/")))
    assert (error.blame, error.retryable) == ("environment", True)
    assert "can't be reached" in str(error)


def test_no_tls_there(talk: Talk) -> None:
    async def scene() -> AgentError:
        async with serving(answering()) as server:
            return await talk.fail(http(server.url.replace("http:", "https:")))

    error = run(scene())
    assert (error.blame, error.retryable) == ("environment", True)


@pytest.mark.parametrize("reset", [True, False])
def test_connection_that_drops_before_an_answer(talk: Talk, reset: bool) -> None:
    async def scene() -> AgentError:
        async with raw_server(b"", reset) as url:
            return await talk.fail(http(url))

    error = run(scene())
    assert (error.blame, error.retryable) == ("environment", True)
    assert str(error) == "the agent closed the connection without an answer; see its log"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"220 smtp.example.com ESMTP\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "ended early"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "the response is empty"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "the response is empty"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<html", "the response is not JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n<html", "ended early"),
    ],
)
def test_answers_that_are_none(talk: Talk, answer: bytes, words: str) -> None:
    async def scene() -> AgentError:
        async with raw_server(answer) as url:
            return await talk.fail(http(url))

    error = run(scene())
    assert (error.blame, error.retryable) == ("agent", False)
    assert words in str(error)


def test_timeout_of_one_request(talk: Talk) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(FOREVER)
        return web.Response()

    error = run(fail(talk, slow, timeout=0.2))
    assert isinstance(error, AgentTimeout)
    assert str(error) == "timeout after 0.2s"


def test_timeout_in_the_middle_of_a_stream(talk: Talk) -> None:
    error = run(fail(talk, streaming([sse(event("progress"))], stay=FOREVER), timeout=0.3))
    assert isinstance(error, AgentTimeout)
    assert len(talk.events) == 1


def test_cancelled(talk: Talk) -> None:
    async def scene() -> None:
        async with serving(streaming([sse(event("progress"))], stay=FOREVER)) as server:
            task = asyncio.ensure_future(talk.ask(http(server.url)))
            await until_async(lambda: talk.events)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert len(talk.events) == 1

    run(scene())


def test_largest_answer(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run(ask(talk, answering(output="x" * 60_000_000))).output) == 60_000_000
    monkeypatch.setattr("atp.models.body.LARGEST", 1024 * 1024)
    error = run(fail(talk, answering(output="x" * 1024 * 1024)))
    assert (str(error), error.blame) == ("agent error: the answer is larger than 1 MB", "agent")
    error = run(fail(talk, streaming([b"data: " + b"x" * 1024 * 1024])))
    assert str(error) == "agent error: the answer is larger than 1 MB"


def test_connections_are_shared(talk: Talk) -> None:
    async def scene() -> None:
        async with serving(answering(output=1)) as server:
            adapter = talk.adapter(http(server.url, parallel=2))
            for _ in range(5):
                await adapter.turn(talk.request())
            assert len(server.connections) == 1
            await asyncio.gather(*[adapter.turn(talk.request()) for _ in range(10)])
            assert len(server.connections) <= 2
            await adapter.close()

    run(scene())


def test_cookies_are_not_carried_over(talk: Talk) -> None:
    async def scene() -> None:
        async with serving(sending(DONE, 200, **{"Set-Cookie": "session=alice"})) as server:
            adapter = talk.adapter(http(server.url))
            for _ in range(2):
                await adapter.turn(talk.request())
            await adapter.close()
            assert "Cookie" not in server.headers[1]

    run(scene())


def test_health(talk: Talk) -> None:
    async def scene() -> None:
        asked = 0

        async def handler(request: web.Request) -> web.StreamResponse:
            nonlocal asked
            if request.path == "/health":
                asked += 1
                return web.Response(status=200 if asked > 2 else 503)
            return await answering(output=asked)(request)

        async with serving(handler) as server:
            reply = await talk.ask(http(server.url, health_endpoint=f"{server.url}/health"))
            assert reply.output == 3

    run(scene())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_health_redirects_are_not_followed(talk: Talk, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr("atp.agents.http.adapter.READY_SECONDS", 0.05)

    async def scene() -> None:
        async with serving(sending(b"", 200)) as other:
            async with serving(sending(b"", status, Location=f"{other.url}/stolen")) as server:
                config = {"health_endpoint": f"{server.url}/health", "headers": {"X-Key": "s3cret"}}
                error = await talk.fail(http(server.url, **config))
                finding = await checked(talk, server.url, **config)
            assert other.headers == []
        told = f"{server.url}/health: HTTP {status}, a redirect to {other.url}/stolen"
        assert str(error) == f"the agent isn't ready: {told}; set `health_endpoint` to it"
        assert (finding.ok, finding.hint) == (False, "set `health_endpoint` to it")

    run(scene())


def test_health_that_never_comes(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atp.agents.http.adapter.READY_SECONDS", 0.3)
    port = free_port()
    error = run(talk.fail(http(f"http://127.0.0.1:{port}/", health_endpoint=f"http://127.0.0.1:{port}/health")))
    assert (error.blame, error.retryable) == ("environment", True)
    assert f"the agent isn't ready: http://127.0.0.1:{port}/health" in str(error)


def test_a_health_request_that_the_deadline_cuts_off_hides_no_answer(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atp.agents.http.adapter.READY_SECONDS", 1.0)

    async def scene() -> AgentError:
        async def handler(request: web.Request) -> web.StreamResponse:
            if len(server.headers) > 1:
                await asyncio.sleep(FOREVER)
            return web.Response(status=401)

        async with serving(handler) as server:
            return await talk.fail(http(server.url, health_endpoint=server.url, api_key="s3cret"))

    assert str(run(scene())).endswith(": HTTP 401; check `api_key` and `headers`")


async def checked(talk: Talk, endpoint: str, **config: Any) -> Finding:
    adapter = talk.adapter(http(endpoint, **config))
    try:
        (finding,) = await adapter.check()
    finally:
        await adapter.close()
    return finding


def test_check_says_what_is_proven(talk: Talk) -> None:
    async def scene(status: int) -> Finding:
        async with serving(sending(b"", status)) as server:
            finding = await checked(talk, f"{server.url}/agent?key=s3cret")
            assert finding.ok
            assert finding.detail == (
                f"{server.url}/agent?…: a server answers (HTTP {status} to HEAD); "
                "only a test shows whether the path takes turns"
            )
            return finding

    assert [run(scene(status)).hint for status in (200, 405, 501)] == [None] * 3
    assert run(scene(404)).hint == "check the path of `endpoint`"


def test_check_of_a_server_that_is_down(talk: Talk) -> None:
    place = f"127.0.0.1:{free_port()}"
    finding = run(checked(talk, f"http://me:s3cret@{place}/agent?key=s3cret"))
    assert (finding.what, finding.ok, finding.hint) == ("connection", False, "start the agent, or fix `endpoint`")
    assert finding.detail == f"http://{place}/agent?…: {place} refused the connection"


def test_check_of_a_server_that_says_nothing_of_use(talk: Talk) -> None:
    async def scene(answer: bytes) -> Finding:
        async with raw_server(answer) as url:
            return await checked(talk, f"{url}?key=s3cret")

    finding = run(scene(b""))
    assert finding.detail.endswith("/?…: it closed the connection without an answer")
    assert (finding.ok, finding.hint) == (False, "see its log")
    finding = run(scene(b"220 smtp.example.com ESMTP\r\n\r\n"))
    assert "/?…: the answer is not HTTP: " in finding.detail
    assert (finding.ok, "s3cret" in finding.detail) == (False, False)


def test_check_without_tls_there(talk: Talk) -> None:
    async def scene() -> Finding:
        async with serving(answering()) as server:
            return await checked(talk, server.url.replace("http:", "https:"))

    finding = run(scene())
    assert (finding.ok, finding.hint) == (False, "check whether `endpoint` is `http` or `https`, and the certificate")


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (404, "check the path of `health_endpoint`"),
        (401, "check `api_key` and `headers`"),
        (503, "start the agent, or wait until it is up"),
    ],
)
def test_health_that_is_no_such_thing(talk: Talk, monkeypatch: pytest.MonkeyPatch, status: int, hint: str) -> None:
    monkeypatch.setattr("atp.agents.http.adapter.READY_SECONDS", 0.3)

    async def scene() -> None:
        async with serving(sending(b"", status)) as server:
            agent = {"endpoint": server.url, "health_endpoint": f"{server.url}/well?key=s3cret"}
            finding = await checked(talk, **agent)
            told = f"the agent isn't ready: {server.url}/well?…: HTTP {status}"
            assert (finding.what, finding.ok, finding.detail, finding.hint) == ("health", False, told, hint)
            error = await talk.fail(http(**agent))
            assert (str(error), error.blame, error.retryable) == (f"{told}; {hint}", "environment", True)

    run(scene())


def test_artifacts_arrive_in_the_workspace(talk: Talk) -> None:
    run(ask(talk, answering(artifacts=[{"type": "file", "path": "a/b.txt", "content": "x"}])))
    assert (talk.workspace / "a/b.txt").read_text() == "x"


def test_conversation(talk: Talk) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        about = body["metadata"]
        said = [message["content"] for message in body["task"]["input_data"]["messages"]]
        return web.json_response(completed(body, output=[about["session_id"], about["turn"], said]))

    async def scene() -> None:
        async with serving(handler) as server:
            adapter = talk.adapter(http(server.url))
            messages: list[dict[str, Any]] = []
            reply = Reply()
            for turn, prompt in enumerate(["one", "two"], 1):
                messages.append({"role": "user", "content": prompt})
                reply = await adapter.turn(talk.request(prompt, messages=list(messages), turn=turn))
                messages.append({"role": "assistant", "content": f"answer {turn}"})
            await adapter.close()
            assert reply.output == ["s-1", 2, ["one", "answer 1", "two"]]

    run(scene())


def test_observes_everything(talk: Talk) -> None:
    assert talk.adapter(http("http://127.0.0.1/")).capabilities == Capabilities()


@pytest.mark.parametrize(
    ("endpoint", "config", "words"),
    [
        ("http://127.0.0.1:99999/", {}, "is not an address"),
        ("http:///path", {}, "is not an address"),
        ("http://127.0.0.1/", {"api_key": "a\nb"}, "the header `Authorization` has a line break"),
        ("http://127.0.0.1/", {"headers": {"X": "a\r\nY: b"}}, "the header `X` has a line break"),
    ],
)
def test_configuration_that_can_t_work(talk: Talk, endpoint: str, config: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        talk.adapter(http(endpoint, **config))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"body": {}}, "`body` goes with `protocol: json`, not with `atp`"),
        ({"model": "m"}, "`model` goes with `protocol: openai`, not with `atp`"),
        ({"protocol": "openai", "stream_endpoint": "http://x/"}, "`stream_endpoint` goes with `protocol: atp`"),
        ({"protocol": "json"}, "`protocol: json` needs `body`"),
        ({"protocol": "json", "body": {}, "output_path": "$["}, "not a JSONPath"),
    ],
)
def test_keys_that_the_protocol_has_no_use_for(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        http("http://127.0.0.1/", **config)
    assert words in str(caught.value)
