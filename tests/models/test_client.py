"""Both wire formats, against a server that speaks them as strictly as the real ones."""

import asyncio
import base64
import json
import re
from typing import Any

import pytest
from tests.agents.support.server import raw_server
from tests.agents.support.talk import run
from tests.models.asking import FORMATS, asking
from tests.models.mock_server import KEY, Answer, Heard, Says, calls, cut, fails, injected, malformed, slow

from atp.models.client import LONGEST_MESSAGE
from atp.models.model import ModelError, Tool, ToolUse

pytestmark = pytest.mark.parametrize("format_", FORMATS)
SEARCH = Tool(name="search", description="Searches", parameters={"type": "object", "properties": {"q": {}}})
LONG = "A sentence of some length, with ümläuts, 漢字 and \n line breaks."
PICTURE = "data:image/png;base64," + base64.b64encode(b"\x89PNG picture").decode()


def quickly_failing(*answers: Answer) -> list[Answer]:
    """What fails is to be tried again at once."""
    return [Says(**{**vars(one), "headers": {"Retry-After": "0"}}) if isinstance(one, Says) else one for one in answers]


@pytest.mark.parametrize("streamed", [False, True])
def test_it_answers(format_: str, streamed: bool) -> None:
    async def main() -> None:
        async with asking(format_, LONG) as asked:
            pieces: list[str] = []
            answer = await asked.ask(on_text=pieces.append if streamed else None)
            assert (answer.text, answer.finish, answer.model) == (LONG, "stop", "m1-mock")
            assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.llm_calls) == (2, 11, 1)
            assert answer.usage.total_tokens == 13
            assert answer.usage.cost_usd is None
            assert "".join(pieces) == (LONG if streamed else "")
            assert len(pieces) > 5 or not streamed
            assert asked.server.requests[0].stream is streamed

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_model_may_call_tools(format_: str, streamed: bool) -> None:
    wanted = calls(("search", {"q": "rain in Šibenik"}), ("search", {}), ("search", "{broken"), text="Let me see.")

    async def main() -> None:
        async with asking(format_, wanted) as asked:
            answer = await asked.ask(tools=[SEARCH], on_text=str if streamed else None)
            assert (answer.text, answer.finish) == ("Let me see.", "tool_calls")
            assert [use.arguments for use in answer.tool_uses] == [{"q": "rain in Šibenik"}, {}, "{broken"]
            assert len({use.id for use in answer.tool_uses}) == 3
            assert asked.server.requests[0].tools == ["search"]

    run(main())


def test_results_of_tools_go_back(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, [calls(("search", {"q": 1}), ("search", "{broken")), "Sunny."]) as asked:
            first = await asked.ask(tools=[SEARCH])
            said = [
                {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": _text(use)}}
                for use in first.tool_uses
            ]
            results = [
                {"role": "tool", "tool_call_id": use.id, "content": f"result {use.id}"} for use in first.tool_uses
            ]
            messages: list[dict[str, Any]] = [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": None, "tool_calls": said},
                *results,
            ]
            assert (await asked.ask(messages=messages, tools=[SEARCH])).text == "Sunny."
            assert asked.server.requests[1].tool_results == [one["content"] for one in results]

    run(main())


def _text(use: ToolUse) -> str:
    return use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments)


def test_system_messages_and_odd_conversations(format_: str) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Welcome."},
        {"role": "user", "content": [{"type": "text", "text": "One"}]},
        {"role": "user", "content": "Two", "metadata": {"ours": True}},
        {"role": "developer", "content": "Be kind."},
        {"role": "assistant", "content": ""},
    ]

    async def main() -> None:
        async with asking(format_) as asked:
            await asked.ask(messages=messages)
            heard = asked.server.requests[0]
            assert "Be brief." in heard.system
            assert "Be kind." in heard.system
            assert "Two" in heard.prompt
            assert "metadata" not in json.dumps(heard.body)
            assert (await asked.ask(messages=[{"role": "system", "content": "Speak."}])).finish == "stop"

    run(main())


def test_settings_of_the_connector_and_of_the_question(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, temperature=0.5, max_tokens=7, extra_body={"beta": 1}) as asked:
            await asked.ask(settings={"temperature": 0, "stop": "END", "seed": 3})
            body = asked.server.requests[0].body
            assert (body["temperature"], body["max_tokens"], body["beta"], body["model"]) == (0, 7, 1, "m1")
            stop = body["stop"] if format_ == "openai" else body["stop_sequences"][0]
            assert stop == "END"
            assert ("seed" in body) == (format_ == "openai")
            assert asked.model.settings == {"temperature": 0.5, "max_tokens": 7, "beta": 1}

    run(main())


def test_pictures_and_files(format_: str) -> None:
    text = "data:text/plain;base64," + base64.b64encode("a,b\nč,d".encode()).decode()
    pdf = "data:application/pdf;base64," + base64.b64encode(b"%PDF").decode()
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": PICTURE}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"filename": "t.csv", "file_data": text}},
        {"type": "file", "file": {"filename": "t.pdf", "file_data": pdf}},
    ]

    async def main() -> None:
        async with asking(format_) as asked:
            await asked.ask(messages=[{"role": "user", "content": content}])
            sent = asked.server.requests[0].messages[0]["content"]
            if format_ == "openai":
                assert sent == content
                return
            image, address, csv, document = (block["source"] for block in sent[1:])
            assert image == {"type": "base64", "media_type": "image/png", "data": PICTURE.partition(",")[2]}
            assert address == {"type": "url", "url": "https://example.com/a.png"}
            assert csv == {"type": "text", "media_type": "text/plain", "data": "a,b\nč,d"}
            assert document["media_type"] == "application/pdf"
            assert [block.get("title") for block in sent] == [None, None, None, "t.csv", "t.pdf"]

    run(main())


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"type": "image", "source": "file://x.png"}, "of the kind `image`"),
        ({"type": "video"}, "of the kind `video`"),
    ],
)
def test_parts_that_models_do_not_take(format_: str, part: dict[str, Any], message: str) -> None:
    async def main() -> None:
        async with asking(format_) as asked:
            error = await asked.fail(messages=[{"role": "user", "content": [part]}])
            assert message in str(error)
            assert asked.server.requests == []

    run(main())


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_with_a_cache_and_its_price(format_: str, streamed: bool) -> None:
    said = Says(text="one two", input_tokens=1000, cache_read=600, cache_written=0)
    prices = {"input": 2.0, "output": 10.0, "cache_read": 0.5}

    async def main() -> None:
        async with asking(format_, said, prices=prices) as asked:
            usage = (await asked.ask(on_text=str if streamed else None)).usage
            assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (1000, 2, 1002)
            assert usage.cache_read_tokens == 600
            assert usage.cost_usd == pytest.approx((400 * 2 + 600 * 0.5 + 2 * 10) / 1e6)

    run(main())


def test_an_answer_that_is_cut_off_says_so(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, Says(text="And so", finish="length")) as asked:
            assert (await asked.ask()).finish == "length"

    run(main())


def test_what_an_answer_orders_is_only_text(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, injected("Fine.")) as asked:
            answer = await asked.ask()
            assert answer.text.startswith("Fine.")
            assert (answer.data, answer.tool_uses) == (None, [])

    run(main())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_transient_failures_are_retried(format_: str, status: int) -> None:
    async def main() -> None:
        async with asking(format_, quickly_failing(fails(status), fails(status), "There.")) as asked:
            assert (await asked.ask()).text == "There."
            assert len(asked.server.requests) == 3

    run(main())


def test_the_last_retry_raises(format_: str) -> None:
    async def main() -> None:
        said = Says(status=503, message="the server is tired", headers={"Retry-After": "0"})
        async with asking(format_, said, retries=2) as asked:
            error = await asked.fail()
            assert "HTTP 503: the server is tired (tried 3 times)" in str(error)
            # Who retries a failure is one place: here, and so not the caller.
            assert (error.retryable, error.status, error.retry_after) == (False, 503, 0.0)
            assert len(asked.server.requests) == 3
        async with asking(format_, said, retries=0) as asked:
            assert (await asked.fail()).retryable

    run(main())


def test_another_failure_after_a_retry_is_not_retried_by_the_caller(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, quickly_failing(fails(429), malformed())) as asked:
            error = await asked.fail()
            assert "can't be read" in str(error)
            assert (error.retryable, len(asked.server.requests)) == (False, 2)

    run(main())


def test_a_retry_after_beyond_the_longest_wait_is_not_waited_for(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, fails(429, "come back tomorrow", retry_after=86400)) as asked:
            error = await asked.fail()
            assert (error.retry_after, error.status, len(asked.server.requests)) == (86400.0, 429, 1)
            assert not error.retryable
            assert str(error).endswith("; not asked again, because the server asks to wait 86400 s")

    run(main())


@pytest.mark.parametrize("status", [400, 403, 404, 413])
def test_permanent_failures_are_not_retried(format_: str, status: int) -> None:
    async def main() -> None:
        async with asking(format_, fails(status, "no\n  such model")) as asked:
            error = await asked.fail()
            assert str(error).startswith("tested (127.0.0.1:")
            assert str(error).endswith(f": HTTP {status}: no such model")
            assert (error.retryable, len(asked.server.requests)) == (False, 1)

    run(main())


def test_the_key_is_never_shown(format_: str) -> None:
    key = "a-wrong-but-secret-key"

    async def main() -> None:
        async with asking(format_, key=key) as asked:
            error = await asked.fail()
            assert "HTTP 401: Incorrect API key provided" in str(error)
            assert key not in str(error)
            assert key in asked.models.secrets

    run(main())


def test_a_key_is_masked_before_a_long_error_is_cut(format_: str) -> None:
    async def main() -> None:
        lengths = range(LONGEST_MESSAGE - 60, LONGEST_MESSAGE)
        async with asking(format_, [fails(400, "x" * length + KEY) for length in lengths]) as asked:
            for _ in lengths:
                assert not re.search(rf"x{KEY[:4]}", str(await asked.fail()))

    run(main())


def test_a_deadline_for_each_request(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, slow("late", 30), timeout=0.05) as asked:
            error = await asked.fail()
            assert str(error).endswith("no answer within 0.05 s")
            assert error.retryable

    run(main())


def test_malformed_answers(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, [malformed(), Says(raw=b""), Says(raw=b"[1]"), Says(raw=b"{}")]) as asked:
            for why in ("not JSON", "it is empty", "not an object", "is missing or not in the format"):
                error = await asked.fail()
                assert "the answer can't be read" in str(error)
                assert why in str(error)

    run(main())


def test_a_stream_that_ends_early_is_not_sent_twice(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, [cut(LONG * 5), LONG]) as asked:
            pieces: list[str] = []
            error = await asked.fail(on_text=pieces.append)
            assert "the answer ended early" in str(error)
            assert error.retryable
            assert 0 < len("".join(pieces)) < len(LONG * 5)
            assert len(asked.server.requests) == 1

    run(main())


def test_an_answer_that_ends_early_is_asked_for_again(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, [cut(LONG), LONG], retries=1) as asked:
            assert (await asked.ask()).text == LONG
            assert len(asked.server.requests) == 2

    run(main())


def test_an_unreachable_server(format_: str) -> None:
    async def main() -> None:
        async with raw_server(b"") as address:
            pass  # now nobody listens there
        async with asking(format_, host=address, retries=0) as asked:
            error = await asked.fail()
            assert "can't be reached" in str(error)
            assert error.retryable

    run(main())


def test_a_redirect_is_not_followed(format_: str) -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n"

    async def main() -> None:
        async with raw_server(answer) as address, asking(format_, host=address) as asked:
            assert "a redirect to http://elsewhere/: set the connector's `host` to it" in str(await asked.fail())

    run(main())


def test_a_server_that_does_not_stream(format_: str) -> None:
    whole = {
        "openai": {"choices": [{"message": {"content": "Hi."}}]},
        "anthropic": {"content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"},
    }[format_]

    async def main() -> None:
        async with asking(format_, Says(raw=json.dumps(whole).encode())) as asked:
            pieces: list[str] = []
            answer = await asked.ask(on_text=pieces.append)
            assert (answer.text, pieces, answer.finish, answer.model) == ("Hi.", ["Hi."], "stop", "m1")
            assert answer.usage.input_tokens is None

    run(main())


def test_a_setting_that_the_model_refuses_is_left_out(format_: str) -> None:
    def answer(heard: Heard) -> Answer:
        return fails(400, "`temperature` is not supported by this model") if "temperature" in heard.body else "Fine."

    async def main() -> None:
        async with asking(format_, answer) as asked:
            for _ in range(2):
                assert (await asked.ask(settings={"temperature": 0, "top_p": 1})).text == "Fine."
            assert [sorted({"temperature", "top_p"} & one.body.keys()) for one in asked.server.requests] == [
                ["temperature", "top_p"],
                ["top_p"],
                ["top_p"],
            ]
        async with asking(format_, answer, temperature=0.3) as asked:
            assert "is not supported" in str(await asked.fail())

    run(main())


def test_an_error_inside_a_stream(format_: str) -> None:
    stream = {
        "openai": b'data: {"error": {"message": "overloaded", "code": 503}}\n\n',
        "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", '
        b'"message": "overloaded"}}\n\n',
    }[format_]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"

    async def main() -> None:
        async with raw_server(head + stream) as address, asking(format_, host=address, retries=0) as asked:
            error = await asked.fail(on_text=str)
            assert str(error).endswith(": overloaded")
            assert error.status == {"openai": 503, "anthropic": 529}[format_]

    run(main())


def test_who_is_cancelled_leaves_nothing_behind(format_: str) -> None:
    async def main() -> None:
        heard = asyncio.Event()

        def answer(_: Heard) -> Answer:
            heard.set()
            return slow("late", 30)

        async with asking(format_, answer) as asked:
            task = asyncio.create_task(asked.ask())
            await heard.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(main())  # which looks for tasks and connections


def test_too_many_requests_halve_the_limit_for_all_of_a_provider(format_: str) -> None:
    refused = [True] * 5

    def answer(heard: Heard) -> Answer:
        return fails(429, retry_after=0) if refused and refused.pop() else slow("ok", 0.01)

    async def main() -> None:
        async with asking(format_, answer) as asked:
            await asyncio.gather(*(asked.ask() for _ in range(40)))
            assert 5 < asked.server.most_at_once <= 16

    run(main())


def test_headers_and_ways_to_give_the_key(format_: str) -> None:
    async def main() -> None:
        async with asking(format_, headers={"X-Team": "tests"}, auth_mode="api-key") as asked:
            await asked.fail()
            headers = asked.server.requests[0].headers
            assert (headers["X-Team"], headers["api-key"]) == ("tests", KEY)
            assert not {"Authorization", "x-api-key"} & headers.keys()

    run(main())


def test_a_request_that_json_can_not_carry(format_: str) -> None:
    async def main() -> None:
        async with asking(format_) as asked:
            with pytest.raises(ModelError, match="can't be written as JSON"):
                await asked.ask(settings={"metadata": object()})

    run(main())
