"""MCP servers over HTTP: the same tools, a token, and what becomes of a server that is away."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.mcp_stage import SERVER, McpStage, ask, fail, started
from tests.agents.support.prompts import uses
from tests.agents.support.talk import Talk, run
from tests.waiting import until


class HttpServer:
    """The tests' server on a port of its own, which can be taken away and brought back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self, *mode: str, **environment: str) -> str:
        """Start it; on the same port if there was one."""
        self._number += 1
        port = self._folder / f"port-{self._number}"
        before = {"MCP_PORT": self.url.split(":")[2].partition("/")[0]} if self.url else {}
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), "http", str(port), *mode], env={**os.environ, **before, **environment}
        )
        until(port.exists)
        self.url = f"http://127.0.0.1:{port.read_text()}/mcp"
        return self.url

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def http(tmp_path: Path) -> Iterator[HttpServer]:
    made = HttpServer(tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("mode", ["stateful", "stateless"])
def test_tools_over_http(talk: Talk, http: HttpServer, mode: str) -> None:
    script = [
        uses("ex__add", {"a": 1, "b": 2}),
        uses("ex__forecast", {"city": "Zürich 🌤"}),
        uses("ex__fail", {"why": "no"}),
        uses("ex__huge", {"size": 2_000_000}),
        uses("hasty__hang"),
    ]
    stage = McpStage(talk, *script, "done")
    url = http.start(mode)
    hasty = {"url": url, "timeout": "1s", "tools": ["hang"]}  # only what never answers is waited for so shortly
    run(ask(stage, stage.agent_with(ex={"url": url, "tools": ["add", "f*", "huge"]}, hasty=hasty)))
    assert stage.results[0] == 3
    assert stage.results[1]["city"] == "Zürich 🌤"
    assert stage.results[2:] == ["Error executing tool fail: no", "é" * 2_000_000, "no answer within 1s"]
    assert [one.payload["status"] for one in stage.calls] == ["success", "success", "error", "success", "error"]


def test_a_token(talk: Talk, http: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    url = http.start(HTTP_TOKEN="a-long-token")
    stage = McpStage(talk, uses("ex__add", {"a": 1, "b": 2}), "done")
    talk.around.environment["SHOP_TOKEN"] = "a-long-token"  # type: ignore[index]
    adapter = stage.agent_with(ex={"url": url, "headers": {"Authorization": "Bearer ${SHOP_TOKEN}"}})
    run(ask(stage, adapter))
    assert stage.results == [3]
    assert adapter.secrets == {"a-long-token", "Bearer a-long-token"}

    error = run(fail(stage, stage.agent_with(ex={"url": url})))
    assert str(error) == f"the MCP server `ex` can't be reached: {url}: HTTP 401"
    assert (error.blame, error.retryable) == ("environment", False)


def test_nobody_there(talk: Talk) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex={"url": "http://127.0.0.1:1/mcp"})))
    assert "the MCP server `ex` can't be reached: http://127.0.0.1:1/mcp: " in str(error)
    assert (error.blame, error.retryable) == ("environment", True)


def test_not_an_mcp_server(talk: Talk, http: HttpServer) -> None:
    stage = McpStage(talk)
    error = run(fail(stage, stage.agent_with(ex={"url": f"{http.start()}/elsewhere"})))
    assert "can't be reached" in str(error)
    assert error.blame == "environment"


@pytest.mark.parametrize("mode", ["stateful", "stateless"])
def test_a_server_that_comes_back(talk: Talk, http: HttpServer, mode: str) -> None:
    """It has forgotten the session, so a new one is begun."""
    call: Any = uses("ex__add", {"a": 1, "b": 2})
    stage = McpStage(talk, call, "one", call, "two", call, "three")
    adapter = stage.agent_with(ex={"url": http.start(mode)})

    async def talks() -> None:
        async with started(adapter):
            await adapter.turn(talk.request())
            http.stop()
            http.start(mode)
            await adapter.turn(talk.request())
            http.stop()
            with pytest.raises(Exception, match="the MCP server `ex` can't be reached"):
                await adapter.turn(talk.request())

    run(talks())
    assert stage.results == [3, 3]
