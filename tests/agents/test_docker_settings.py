"""What an engine is told of a container, where the tests' own engine can't show it."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.agents.support.docker_talk import boxed

from atp.agents.adapter import AgentError, ConfigurationError
from atp.agents.docker_engine import Engine
from atp.agents.docker_place import Place
from atp.agents.docker_settings import Settings, memory_bytes
from atp.loader import TestLoader
from atp.loader.diagnostics import LoadError


def engine(url: str = "unix:///run/docker.sock") -> Engine:
    """An engine that nobody talks to."""
    return Engine(Place(url), cast("Any", None))


def settings(**config: Any) -> Settings:
    return Settings(boxed(**{"image": "x", **config}).config, Path("/suite"))


def test_limits_that_an_engine_cannot_keep() -> None:
    """Asked for, that is an error; the default's absence is told in each trial."""
    unable = engine()
    unable.unable = frozenset({"memory", "cpus"})
    assert settings(pids=10).check(unable) == [
        "the container engine can't keep the default limit `cpus`",
        "the container engine can't keep the default limit `memory`",
    ]
    with pytest.raises(AgentError, match="can't keep the limit `memory`") as caught:
        settings(memory="1g").check(unable)
    assert caught.value.blame == "environment"


def test_the_caller_is_root_in_a_rootless_engine() -> None:
    rootless = engine()
    rootless.rootless = True
    assert settings().of_turn(rootless, "x", Path("/w"), "")["User"] == "0:0"
    assert settings(user="7").of_turn(rootless, "x", Path("/w"), "")["User"] == "7"


def test_a_port_is_published_where_it_can_be_reached() -> None:
    made = settings(port=80, network="bridge")
    near = made.of_server(engine(), "x")["HostConfig"]["PortBindings"]
    far = made.of_server(engine("tcp://box:2375"), "x")["HostConfig"]["PortBindings"]
    assert near == {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}
    assert far == {"80/tcp": [{"HostIp": "", "HostPort": ""}]}
    assert "PortBindings" not in settings(port=80, network="host").of_server(engine(), "x")["HostConfig"]


def test_what_cannot_be_started() -> None:
    for config in (
        {"command": "a 'b"},
        {"environment": {"A=B": "c"}},
        {"entrypoint": ["a\0"]},
        {"volumes": ["~x~y:/a"]},
    ):
        with pytest.raises(ConfigurationError):
            settings(**config)


@pytest.mark.parametrize(
    ("text", "size"), [("2g", 2**31), ("1.5 GB", 3 * 2**29), ("64M", 2**26), ("10kb", 10240), ("7b", 7), (4096, 4096)]
)
def test_memory(text: str | int, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{image: x, volumes: [data]}", "docker-volume"),
        ("{image: x, volumes: {data: inside}}", "docker-volume"),
        ("{image: x, volumes: ['data:/data:rx']}", "docker-volume"),
        ("{image: x, port: 80}", "`port` needs a `network`"),
        ("{image: x, port: 80, network: host, protocol: text}", "so not with `port`"),
        ("{image: x, health_path: /h}", "`health_path` goes with `port`"),
        ("{image: x, protocol: openai}", "say on which `port`"),
        ("{image: x, port: 80, network: host, protocol: json}", "needs `body`"),
    ],
)
def test_what_a_configuration_may_not_say(config: str, words: str) -> None:
    text = (
        f"test_suite: s\nagents: [{{name: a, type: docker, config: {config}}}]\ntests: [{{id: a, name: a, input: a}}]"
    )
    with pytest.raises(LoadError) as caught:
        TestLoader(env={}).load_string(text)
    (found,) = caught.value.diagnostics
    assert words in f"{found.code}: {found.message}"
