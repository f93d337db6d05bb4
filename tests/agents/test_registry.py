"""From an agent to its adapter."""

import subprocess
import sys
from typing import Any, Literal

import pytest
from tests.agents.support.talk import Talk, custom, run

from atp.agents.adapter import Adapter, AdapterContext, Reply, TurnRequest
from atp.agents.registry import _ADAPTERS, Makers, adapter_at, adapter_for, make_adapter
from atp.base.errors import ConfigurationError
from atp.suite.agent import AGENTS, Agent, AgentConfig, DockerAgent


class QueueConfig(AgentConfig):
    queue: str


class QueueAgent(Agent):
    type: Literal["queue"]
    config: QueueConfig


class QueueAdapter(Adapter):
    def __init__(self, agent: Agent, context: AdapterContext) -> None:
        self._config: QueueConfig = agent.config

    async def turn(self, request: TurnRequest) -> Reply:
        return Reply(output=f"{self._config.queue}: {request.prompt}")


@pytest.fixture
def queue() -> Any:
    AGENTS.register(QueueAgent)
    yield QueueAgent.model_validate({"name": "q", "type": "queue", "config": {"queue": "jobs"}})
    AGENTS.shapes.pop("queue")
    _ADAPTERS.pop("queue", None)


def test_plugin_by_decorator(talk: Talk, queue: QueueAgent) -> None:
    adapter_for("queue")(QueueAdapter)
    assert run(talk.ask(queue)).output == "jobs: Hello"


def test_plugin_that_loads_when_needed(talk: Talk, queue: QueueAgent) -> None:
    adapter_at("queue", "tests.agents.test_registry:QueueAdapter")
    assert run(talk.ask(queue)).output == "jobs: Hello"


def test_plugin_by_entry_point(talk: Talk, queue: QueueAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    def discover() -> None:
        adapter_for("queue")(QueueAdapter)

    monkeypatch.setattr(AGENTS, "discover", discover)
    assert run(talk.ask(queue)).output == "jobs: Hello"


def test_kind_without_an_adapter(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = DockerAgent.model_validate({"name": "d", "type": "docker", "config": {"image": "x"}})
    monkeypatch.setattr("atp.agents.registry._ADAPTERS", Makers({"cli": "x:Y", "http": "x:Y"}))
    with pytest.raises(
        ConfigurationError, match="agents of type `docker` need an adapter that isn't installed"
    ) as caught:
        make_adapter(agent, talk.around)
    assert caught.value.hint == "there are adapters for `cli`, `http`"


def test_adapters_load_lazily(talk: Talk) -> None:
    code = "import sys, atp.agents.registry; print('aiohttp' in sys.modules, 'atp.agents.http.adapter' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    assert run(talk.ask(custom("echo"))).output == "You said: Hello"
