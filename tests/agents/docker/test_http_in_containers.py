"""HTTP agents in a container: started once, shared, and stopped at the end."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_talk import boxed, use
from tests.agents.support.talk import Talk, run
from tests.parts import missing
from tests.waiting import until

from atp.agents.adapter import AgentError
from atp.suite.agent import Agent
from atp.suite.capabilities import Capabilities
from atp.usercode.threads import in_thread


@pytest.fixture(autouse=True)
def nothing_left(talk: Talk, engine: TestEngine) -> Iterator[None]:
    """The engine has no network of its own, so all are on the host's."""
    use(talk, engine)
    yield
    assert engine.containers(f"atp.run={talk.marker}") == []


def serving(*more: str, mode: str = "serves", **config: Any) -> Agent:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    return boxed(mode, str(port), *more, **{"port": port, "network": "host", **config})


def test_one_container_for_all(talk: Talk, engine: TestEngine) -> None:
    async def scene() -> list[Any]:
        adapter = talk.adapter(serving())
        await adapter.start()
        try:
            assert len(engine.containers(f"atp.run={talk.marker}")) == 1
            asked = [adapter.turn(talk.request(f"number {number}")) for number in range(20)]
            return [reply.output for reply in await asyncio.gather(*asked)]
        finally:
            await adapter.close()

    seen = run(scene())
    assert [one["said"] for one in seen] == [f"number {number}" for number in range(20)]
    assert sorted(one["answered"] for one in seen) == list(range(1, 21))


@pytest.fixture
def network(engine: TestEngine) -> Iterator[str]:
    """A network that the engine makes itself, where the system lets it."""
    body = b'{"Name": "atp-test-net", "Driver": "bridge"}'
    try:
        engine.ask("POST", "/networks/create", body)
    except AssertionError as error:
        missing(f"no network can be made here: {error}")
    yield "atp-test-net"
    engine.ask("DELETE", "/networks/atp-test-net")


def test_on_a_network_of_the_engine(talk: Talk, network: str, engine: TestEngine) -> None:
    """There the port is published, to this machine only."""

    async def scene() -> Any:
        adapter = talk.adapter(boxed("serves", "80", port=80, network=network, environment={"LISTEN": "0.0.0.0"}))
        await adapter.start()
        try:
            (found,) = engine.containers(f"atp.run={talk.marker}")
            assert [(one["PrivatePort"], one["IP"]) for one in found["Ports"]] == [(80, "127.0.0.1")]
            return (await adapter.turn(talk.request("Hi"))).output["said"]
        finally:
            await adapter.close()

    assert run(scene()) == "Hi"


def test_openai_and_json(talk: Talk) -> None:
    agent = serving(protocol="openai", path="/v1/chat/completions", model="m")
    assert run(talk.ask(agent, "Hi")).output == "chat: Hi"
    agent = serving(protocol="json", path="/own", body={"prompt": "{{prompt}}"}, output_path="$.answer.text")
    assert run(talk.ask(agent, "Hi")).output == "own: Hi"
    assert talk.adapter(agent).capabilities == Capabilities(
        tool_calls=False, tokens=False, cost=False, steps=False, history=False
    )


def test_waits_until_it_is_well(talk: Talk) -> None:
    agent = serving("0.5", health_path="/health")
    assert run(talk.ask(agent, "Hi")).output["said"] == "Hi"


def test_never_well(talk: Talk) -> None:
    agent = serving("1000", health_path="/health", ready_within=1)
    error = run(talk.fail(agent))
    assert error.blame == "environment"
    url = f"http://127.0.0.1:{agent.config.port}/health"
    assert str(error).startswith(f"the agent isn't ready after 1s: {url}: ")


def test_ends_before_it_is_ready(talk: Talk) -> None:
    error = run(talk.fail(serving(mode="fails_to_serve")))
    assert (error.blame, str(error)) == ("agent", "agent error: the container has ended: exit code 4: no such model")


def test_dies_between_trials(talk: Talk) -> None:
    async def scene() -> list[AgentError]:
        adapter = talk.adapter(serving())
        await adapter.start()
        errors = []
        try:
            for prompt in ("die", "are you there?"):
                with pytest.raises(AgentError) as caught:
                    await adapter.turn(talk.request(prompt))
                errors.append(caught.value)
        finally:
            await adapter.close()
        return errors

    for error in run(scene()):
        assert (error.blame, error.retryable) == ("agent", False)
        assert str(error).startswith("agent error: the container has ended: exit code 5: ")
        assert str(error).endswith("I die")


def test_a_port_that_somebody_has(talk: Talk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        error = run(talk.fail(boxed("serves", str(port), port=port, network="host")))
    assert (error.blame, str(error)) == (
        "environment",
        f"the port {port} is taken by another process on 127.0.0.1",
    )


def test_closed_while_it_starts(talk: Talk, engine: TestEngine) -> None:
    async def scene() -> None:
        adapter = talk.adapter(serving("1000", health_path="/health"))
        starting = asyncio.ensure_future(adapter.start())
        label = f"atp.run={talk.marker}"
        await in_thread(until, lambda: any(one["State"] == "running" for one in engine.containers(label)))
        await adapter.close()
        assert starting.cancelled()
        assert engine.containers(f"atp.run={talk.marker}") == []

    run(scene())
