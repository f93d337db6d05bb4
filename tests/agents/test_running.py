"""A running agent: started once for everyone who asks, and started again after a failure that may pass."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.agents.support.prompts import Scripted, Stage, uses
from tests.agents.support.server import completed
from tests.agents.support.talk import Talk, http, run
from tests.waiting import until_async

from atp.agents import running
from atp.agents.adapter import Adapter, AgentError, Reply, TurnRequest
from atp.agents.http import adapter as http_adapter
from atp.agents.running import RunningAgent
from atp.agents.turns import TurnBuilder
from atp.engine.agent_under_test import AgentUnderTest
from atp.engine.named_agent import NamedAgent
from atp.journal.records import AgentInputs
from atp.roles.ask import AgentClient, RoleCall

Ask = Callable[[], Awaitable[Any]]


class LateServer:
    """An HTTP agent whose port refuses connections until `up` is called."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_post("/", self._turn)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _turn(self, request: web.Request) -> web.Response:
        return web.json_response(completed(await request.json(), output="here I am"))

    async def up(self) -> None:
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def down(self) -> None:
        await self._runner.cleanup()
        self._socket.close()


@asynccontextmanager
async def as_agent_under_test(talk: Talk, url: str) -> AsyncIterator[Ask]:
    agent = http(url, health_endpoint=f"{url}/health")
    tested = AgentUnderTest(NamedAgent(agent, talk.folder), talk.adapter(agent), AgentInputs())

    async def ask() -> Any:
        await tested.begin_trial("trial-1")
        return (await tested.turn(talk.request())).output

    yield ask
    await tested.close()


@asynccontextmanager
async def as_judge(talk: Talk, url: str) -> AsyncIterator[Ask]:
    adapter = talk.adapter(http(url, health_endpoint=f"{url}/health"))
    client = AgentClient(RunningAgent(adapter, "judge"), {}, folder=lambda: talk.folder)

    async def ask() -> Any:
        return (await client.ask(RoleCall(role="assessor", instructions="", payload={}))).text

    yield ask
    await client.close()


@asynccontextmanager
async def as_tool(talk: Talk, url: str) -> AsyncIterator[Ask]:
    model = Scripted(behave=lambda ask: uses("other", {"message": "hi"}) if len(ask.messages) < 3 else "done")
    stage = Stage(talk, model)
    stage.others["other"] = talk.adapter(http(url, health_endpoint=f"{url}/health"))
    adapter = stage.make("---\nagents: [other]\n---\nAsk the other agent.\n")

    async def ask() -> Any:
        await adapter.turn(talk.request())
        return model.results[-1]

    yield ask
    await adapter.close()
    for other in talk.beside:
        await other.close()


@pytest.mark.parametrize("used", [as_agent_under_test, as_judge, as_tool])
def test_a_failed_start_is_tried_again_when_the_agent_is_asked_next(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, used: Callable[[Talk, str], Any]
) -> None:
    monkeypatch.setattr(http_adapter, "READY_SECONDS", 0.1)

    async def asked() -> Any:
        server = LateServer()
        async with used(talk, server.url) as ask:
            for _ in range(2):
                with pytest.raises(Exception, match="the agent isn't ready"):
                    await ask()
            await server.up()
            answer = await ask()
        await server.down()
        return answer

    assert run(asked()) == "here I am"


class Preparing(Adapter):
    """Counts its starts, and starts when it is told to."""

    def __init__(self, *errors: AgentError) -> None:
        self.calls: list[str] = []
        self.go = asyncio.Event()
        self._errors = list(errors)

    async def start(self) -> None:
        self.calls.append("start")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.calls.append("cancelled")
            raise
        if self._errors:
            raise self._errors.pop(0)

    async def begin_trial(self, task_id: str) -> None:
        self.calls.append(f"begin {task_id}")

    async def turn(self, request: TurnRequest) -> Reply:
        self.calls.append("turn")
        return Reply(output=request.context["config"])

    def end_trial(self, task_id: str) -> None:
        self.calls.append(f"end {task_id}")

    async def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize(("retryable", "starts"), [(False, 1), (True, 2)])
def test_everyone_waits_for_one_start_and_shares_its_error(retryable: bool, starts: int) -> None:
    async def asked() -> Preparing:
        adapter = Preparing(AgentError("no license", "environment", retryable=retryable))
        agent = RunningAgent(adapter, "a")
        waiting = [asyncio.ensure_future(agent.ready()) for _ in range(3)]
        await until_async(lambda: adapter.calls)
        adapter.go.set()
        errors = await asyncio.gather(*waiting, return_exceptions=True)
        assert {str(error) for error in errors} == {"no license"}
        assert adapter.calls == ["start"]
        await asyncio.gather(agent.ready(), return_exceptions=True)
        assert not agent.is_ready, "each trial needs its preparation"
        return adapter

    assert run(asked()).calls == ["start"] * starts


def test_a_start_beyond_its_limit_is_an_error_until_the_agent_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked() -> list[str]:
        adapter = Preparing()
        agent = RunningAgent(adapter, "a")
        monkeypatch.setattr(running, "START_LIMIT", 0.0)
        for _ in range(2):
            with pytest.raises(AgentError, match="the agent has not started within"):
                await agent.ready()
        monkeypatch.undo()
        adapter.go.set()
        await agent.ready()
        return adapter.calls

    assert run(asked()) == ["start"]


def test_a_conversation_of_one_turn(talk: Talk) -> None:
    async def asked() -> tuple[Reply, list[str]]:
        adapter = Preparing()
        adapter.go.set()
        agent = RunningAgent(adapter, "a", {"path": "x.md"})
        turns = TurnBuilder(
            agent=agent, task_id="t", context={}, workspace=lambda: talk.folder, emit=talk.events.append, log=print
        )
        reply = await agent.ask_once(turns.request([{"role": "user", "content": "Hello"}]))
        await agent.close()
        return reply, adapter.calls

    reply, calls = run(asked())
    assert reply.output == {"path": "x.md"}
    assert calls == ["start", "begin t", "turn", "end t", "close"]


def test_closing_cancels_a_start_that_is_under_way() -> None:
    async def asked() -> list[str]:
        adapter = Preparing()
        agent = RunningAgent(adapter, "a")
        waiting = asyncio.ensure_future(agent.ready())
        await until_async(lambda: adapter.calls)
        await agent.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return adapter.calls

    assert run(asked()) == ["start", "cancelled", "close"]
