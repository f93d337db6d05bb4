"""From an agent to its adapter."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.agents.support.talk import Talk, custom, make_agent, run

import atp
from atp.agents.adapter import Adapter, Reply, TurnRequest
from atp.agents.registry import make_adapter
from atp.base.errors import ConfigurationError
from atp.base.registry import PluginError
from atp.suite.agent import AGENTS, CONFIGURATIONS, Agent, AgentConfig


class QueueAdapter(Adapter):
    """Puts each turn into a queue."""

    type = "queue"

    class Config(AgentConfig):
        """An agent behind a message queue."""

        queue: str
        """The queue's name."""

    async def turn(self, request: TurnRequest) -> Reply:
        return Reply(output=f"{self.config.queue}: {request.prompt}")


class PlainAdapter(Adapter):
    type = "plain"

    async def turn(self, request: TurnRequest) -> Reply:
        return Reply(output=request.prompt)


@pytest.fixture
def registered() -> Iterator[None]:
    AGENTS.register(QueueAdapter)
    AGENTS.register(PlainAdapter)
    yield
    AGENTS.unregister("queue", "plain")


@pytest.mark.usefixtures("registered")
def test_a_kind_is_one_class(talk: Talk) -> None:
    agent = make_agent({"name": "q", "type": "queue", "config": {"queue": "jobs"}})
    assert isinstance(agent.config, QueueAdapter.Config)
    assert run(talk.ask(agent)).output == "jobs: Hello"


@pytest.mark.usefixtures("registered")
def test_a_kind_without_a_config_takes_what_every_kind_takes(talk: Talk) -> None:
    agent = make_agent({"name": "q", "type": "plain", "config": {"parallel": 2}})
    assert run(talk.ask(agent)).output == "Hello"


@pytest.mark.usefixtures("registered")
def test_the_keys_of_a_plugins_config_are_checked(tmp_path: Path) -> None:
    suite = tmp_path / "s.yaml"
    suite.write_text(
        "test_suite: s\nagents:\n  - { name: q, type: queue, config: { queu: x } }\n"
        "tests: [{ id: a, name: A, input: x }]\n"
    )
    with pytest.raises(atp.LoadError, match=r"s.yaml:3:\d+: error\[unknown-key\]: unknown key `queu`.*`queue`"):
        atp.load(suite)


def test_a_plugin_is_found_by_its_entry_point(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("queue", f"{__name__}:QueueAdapter", "atp.agents")
    monkeypatch.setattr("atp.base.registry.entry_points", lambda group: [entry])
    monkeypatch.setattr(AGENTS, "_discovered", False)
    try:
        agent = make_agent({"name": "q", "type": "queue", "config": {"queue": "jobs"}})
        assert run(talk.ask(agent)).output == "jobs: Hello"
    finally:
        AGENTS.unregister("queue")


def test_a_kind_without_an_adapter(talk: Talk) -> None:
    agent = Agent(name="d", type="queue", config=AgentConfig())
    with pytest.raises(
        ConfigurationError, match="agents of type `queue` need an adapter that isn't installed"
    ) as caught:
        make_adapter(agent, talk.around)
    assert caught.value.hint == f"there are adapters for {AGENTS}"
    assert "`cli`, `crewai`, `custom`, `docker`, `http`" in caught.value.hint


class Nameless(Adapter):
    async def turn(self, request: TurnRequest) -> Reply:
        raise NotImplementedError


class Odd(PlainAdapter):
    Config = dict  # type: ignore[assignment]


@pytest.mark.parametrize(("adapter", "why"), [(Nameless, "has no name"), (Odd, "not derived from `AgentConfig`")])
def test_what_is_no_kind_of_agent_can_not_be_registered(adapter: Any, why: str) -> None:
    with pytest.raises(PluginError, match=why):
        AGENTS.register(adapter)


def test_every_built_in_kind_has_a_configuration() -> None:
    assert list(CONFIGURATIONS) == AGENTS.names[: len(CONFIGURATIONS)]
    for name, config in CONFIGURATIONS.items():
        kind = AGENTS.find(name)  # a class, or a function that chooses between adapters
        assert (getattr(kind, "type", name), getattr(kind, "Config", config)) == (name, config)


def test_adapters_load_lazily(talk: Talk) -> None:
    code = "import sys, atp.agents.registry; print('aiohttp' in sys.modules, 'atp.agents.http.adapter' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    assert run(talk.ask(custom("echo"))).output == "You said: Hello"
