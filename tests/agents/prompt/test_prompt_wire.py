"""Prompt agents with models on a real server, in both wire formats."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.agents.support.prompts import Stage
from tests.agents.support.talk import Talk, run
from tests.models.mock_server import Heard, MockModels, Says, calls, fails, malformed, slow

from atp.agents.adapter import AgentError, Reply
from atp.models.connectors.registry import Models
from atp.models.model import Model

TOOLS = """
def tide(place: str) -> dict:
    "The tide."
    return {"place": place, "tide": "high"}
"""
PACKAGE = '{"connector": "%s", "commands": ["tools.py:tide"], "options": {"temperature": 0, "max_tokens": 50}}'
PROMPTS = "- role: system\n  content: You serve $CTX.USER_ID.\n"
BOTH = pytest.mark.parametrize("connector", ["openai.mock", "anthropic.mock"])


class Wired(Stage):
    """Its models are on a server."""

    def __init__(self, talk: Talk, connector: str, server: MockModels) -> None:
        super().__init__(talk)
        self.registry = Models(self.root, server.env, {})
        self.write(
            **{"bot/package.yao": PACKAGE % connector, "bot/prompts.yml": PROMPTS, "bot/tools.py": TOOLS},
        )

    def model(self, connector: str | None, needed_by: str) -> Model:
        return self.registry.get(connector, needed_by)


@asynccontextmanager
async def wired(talk: Talk, connector: str, server: MockModels) -> AsyncIterator[Wired]:
    async with server:
        stage = Wired(talk, connector, server)
        try:
            yield stage
        finally:
            await stage.registry.close()


def context(**more: Any) -> dict[str, Any]:
    return {"user": "ann", "run": 1, **more}


@BOTH
def test_a_chain_of_turns_with_tools(talk: Talk, connector: str) -> None:
    script: list[Any] = [
        calls(("tide", {"place": "Bree"}), ("tide", {}), ("storm", {}), text="I look."),
        "High in Bree.",
        "Still high.",
    ]
    server = MockModels(script)

    async def hold() -> list[Reply]:
        async with wired(talk, connector, server) as stage:
            adapter = talk.adapter(stage.agent("bot"))
            first = await adapter.turn(talk.request("Tide?", context=context()))
            said = [{"role": "user", "content": "Tide?"}, *first.messages, {"role": "user", "content": "And now?"}]
            return [first, await adapter.turn(talk.request("And now?", messages=said, turn=2, context=context()))]

    first, second = run(hold())
    assert (first.output, second.output) == ("High in Bree.", "Still high.")
    assert [one.type for one in talk.events] == ["llm_request", *["tool_call"] * 3, *["llm_request"] * 2]
    assert [one.payload["status"] for one in talk.events if one.type == "tool_call"] == ["success", "error", "error"]
    last = server.requests[-1]
    assert last.system == "You serve ann."
    assert last.prompt == "And now?"
    assert last.tools == ["tide"]
    assert last.tool_results[0] == '{"place":"Bree","tide":"high"}'
    assert "Field required" in last.tool_results[1]
    assert "there is no tool `storm`" in last.tool_results[2]
    assert (last.body["temperature"], last.body["max_tokens"]) == (0, 50)
    assert first.usage is not None
    assert (first.usage.llm_calls, first.usage.tool_calls) == (2, 3)
    used = sum(
        one.payload["input_tokens"] + one.payload["output_tokens"] for one in talk.events[:5] if "model" in one.payload
    )
    assert used == (first.usage.input_tokens or 0) + (first.usage.output_tokens or 0) > 0


@BOTH
def test_a_picture(talk: Talk, connector: str) -> None:
    server = MockModels("A wave.")

    async def hold() -> Reply:
        async with wired(talk, connector, server) as stage:
            (stage.root / "sea.png").write_bytes(b"picture")
            parts = [{"type": "text", "text": "What?"}, {"type": "image", "source": "file://sea.png"}]
            request = talk.request(messages=[{"role": "user", "content": parts}], context=context())
            return await talk.adapter(stage.agent("bot")).turn(request)

    assert run(hold()).output == "A wave."
    assert "cGljdHVyZQ==" in str(server.requests[0].body)


@pytest.mark.parametrize(
    ("behaviour", "blame", "retryable"),
    [
        ([fails(400, "too long")], "agent", False),
        ([fails(403, "no")], "environment", False),
        (malformed(), "environment", True),
        (fails(429, "busy", retry_after=0.01), "environment", False),
        (fails(503, "down", retry_after=0.01), "environment", False),
    ],
)
def test_a_server_that_fails(talk: Talk, behaviour: Any, blame: str, retryable: bool) -> None:
    server = MockModels(behaviour)

    async def hold() -> AgentError:
        async with wired(talk, "openai.mock", server) as stage:
            with pytest.raises(AgentError) as raised:
                await talk.adapter(stage.agent("bot")).turn(talk.request(context=context()))
            return raised.value

    error = run(hold())
    assert (error.blame, error.retryable) == (blame, retryable)
    assert server.key not in str(error)


def test_a_turn_that_is_cancelled_closes_its_request(talk: Talk) -> None:
    async def hold() -> None:
        asked = asyncio.Event()

        def behave(_: Heard) -> Says:
            asked.set()
            return slow("late", 30)

        server = MockModels(behave)
        async with wired(talk, "openai.mock", server) as stage:
            task = asyncio.create_task(talk.adapter(stage.agent("bot")).turn(talk.request(context=context())))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(hold())


def test_a_connector_that_there_is_not(talk: Talk) -> None:
    server = MockModels()

    async def hold() -> str:
        async with wired(talk, "opnai.mock", server) as stage:
            return stage.refuse(path="bot")

    assert "there is no connector `opnai.mock`" in run(hold())
