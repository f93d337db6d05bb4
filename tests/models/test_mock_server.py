"""The mock server refuses what the real ones refuse, so that tests which pass mean something."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.models.mock_server import MockModels, Says, calls, fails
from tests.waiting import WAIT_LIMIT

USER = {"role": "user", "content": "Hi there"}


@pytest.fixture(scope="module")
def server() -> Iterator[MockModels]:
    with MockModels() as running:
        yield running


def post(server: MockModels, path: str, body: dict[str, Any], key: str | None = None) -> tuple[int, dict[str, Any]]:
    key = key or server.key
    headers = {"Authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(
        f"{server.url}{path}", json.dumps(body).encode(), {**headers, "Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=WAIT_LIMIT) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


CALL = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        ("/v1/chat/completions", {"messages": [USER]}, "provide a model"),
        ("/v1/chat/completions", {"messages": [{"role": "robot", "content": ""}]}, "is not one of"),
        ("/v1/chat/completions", {"messages": [{"role": "user"}]}, "expected a string or a list"),
        ("/v1/chat/completions", {"messages": [{"role": "tool", "tool_call_id": "c", "content": ""}]}, "preceding"),
        ("/v1/chat/completions", {"messages": [CALL, USER]}, "did not have response"),
        ("/v1/messages", {"messages": [USER], "max_tokens": None}, "max_tokens"),
        ("/v1/messages", {"messages": []}, "at least one"),
        ("/v1/messages", {"messages": [{"role": "system", "content": "x"}]}, "Unexpected role"),
        ("/v1/messages", {"messages": [{"role": "user", "content": " "}]}, "non-empty"),
        ("/v1/messages", {"messages": [USER, USE, USER]}, "don't match"),
        ("/v1/messages", {"messages": [RESULT]}, "don't match"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "not a known block"),
    ],
)
def test_what_it_refuses(server: MockModels, path: str, body: dict[str, Any], complaint: str) -> None:
    model = {} if "provide" in complaint else {"model": "m"}
    status, said = post(server, path, {**model, "max_tokens": 9, **body})
    assert status == 400
    assert complaint in said["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_it_wants_the_key(server: MockModels, path: str) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [USER]}
    assert post(server, path, body)[0] == 200
    assert post(server, path, body, "wrong")[0] == 401
    assert server.requests[-1].prompt == "Hi there"


def test_scripts_of_all_kinds() -> None:
    body = {"model": "m", "messages": [USER]}
    script = ["text", {"a": 1}, Says(text="x"), fails(418, "tea"), calls(("f", {"x": 1}))]
    with MockModels(script) as server:
        said = [post(server, "/v1/chat/completions", body) for _ in range(6)]
    assert [one[1]["choices"][0]["message"]["content"] for one in said[:3]] == ["text", '{"a": 1}', "x"]
    assert said[3] == (418, {"error": {"message": "tea", "type": "error", "param": None, "code": None}})
    assert said[4][1]["choices"][0]["finish_reason"] == "tool_calls"
    assert (said[5][0], said[5][1]["error"]["message"]) == (400, "the script of the mock server is over")
    with MockModels(lambda heard: f"{heard.number}: {heard.prompt}") as server:
        said = [post(server, "/v1/chat/completions", body) for _ in range(2)]
    assert [one[1]["choices"][0]["message"]["content"] for one in said] == ["0: Hi there", "1: Hi there"]
