"""What an engine is told of a container, where the tests' own engine can't show it."""

from pathlib import Path
from typing import Any, cast

import pytest
from tests.agents.support.docker_talk import boxed

from atp.agents.adapter import AdapterContext, AgentError
from atp.agents.docker import docker_adapter
from atp.agents.docker.engine import Engine, EngineAddress
from atp.agents.docker.settings import Settings
from atp.base.diagnostics import LoadError
from atp.base.errors import ConfigurationError
from atp.loader import TestLoader
from atp.suite.container import memory_bytes


def engine(url: str = "unix:///run/docker.sock") -> Engine:
    """An engine that nobody talks to."""
    return Engine(EngineAddress(url), cast("Any", None))


def settings(**config: Any) -> Settings:
    return Settings(boxed(**{"image": "x", **config}).config, Path("/suite"))


def test_limits_that_an_engine_cannot_keep() -> None:
    """Asked for, that is an error; the default's absence is told in each trial."""
    unable = engine()
    unable.unable = frozenset({"memory", "cpus"})
    assert settings(pids=10).check(unable) == [
        "the container engine can't enforce the default limit `cpus`",
        "the container engine can't enforce the default limit `memory`",
    ]
    with pytest.raises(AgentError, match="can't enforce the limit `memory`") as caught:
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


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"command": "a 'b"}, "`command` can't be split: No closing quotation"),
        ({"environment": {"A": "b", "C=D": "e"}}, "`environment` has the name 'C=D', which has a `=` in it"),
        ({"environment": {"": "c"}}, "`environment` has a name that is empty"),
        ({"entrypoint": ["a\0"]}, "`command` or `environment` has a NUL character in it"),
        ({"volumes": ["~x~y:/a"]}, "`volumes`: ~x~y:/a: Could not determine home directory."),
        ({"volumes": ["gone:/a"]}, "`volumes`: there is no /suite/gone to mount"),
    ],
)
def test_what_cannot_be_started(config: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings(**config)
    assert str(caught.value) == told


def test_nothing_to_build(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    for folder in ("agent", "gone"):
        with pytest.raises(ConfigurationError) as caught:
            docker_adapter(boxed(build=folder), AdapterContext(base=tmp_path, environment={}))
        assert str(caught.value) == f"`build`: there is no Dockerfile in {tmp_path / folder}"


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
        ("{image: x, volumes: ['a:/']}", "nothing can be mounted on `/`"),
        ("{image: x, volumes: {a: '//..'}}", "nothing can be mounted on `/`"),
        ("{image: x, volumes: ['a:/d', 'b:/d/']}", "2 mounts on `/d`"),
        ("{image: x, volumes: ['a:/d/../workspace/']}", "nothing can be mounted on `/workspace`"),
        ("{image: x, command: '  '}", "`command` is empty"),
        ("{image: x, command: []}", "`command` is empty"),
        ("{image: x, entrypoint: ' '}", "`entrypoint` is empty"),
        ("{image: x, entrypoint: []}", "`entrypoint` is empty"),
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


NO_LIMIT = "`memory` must be an amount such as 512m or 1g, and this means no limit"
NO_AMOUNT = "`memory` must be an amount such as 512m or 1g, and this is no amount of memory"
TOO_MUCH = "`memory` must be an amount such as 512m or 1g, and this is more than there can be"
CPUS = "`cpus` must be from 0.01 to 10000"


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ('memory: "0"', NO_LIMIT),
        ("memory: 0", NO_LIMIT),
        ("memory: 0.00001k", NO_LIMIT),
        ("memory: 0g", NO_LIMIT),
        ("memory: -5", NO_AMOUNT),
        ("memory: lots", NO_AMOUNT),
        ("memory: 0.5", NO_AMOUNT),
        ("memory: true", NO_AMOUNT),
        ("memory: [1g]", NO_AMOUNT),
        ("memory: 9999999999g", TOO_MUCH),
        (f"memory: '{'9' * 400}'", TOO_MUCH),
        ("cpus: 1.0e-10", CPUS),
        ("cpus: 0", CPUS),
        ("cpus: 0.009", CPUS),
        ("cpus: 1.0e+300", CPUS),
    ],
)
def test_a_limit_of_nothing_is_none(limit: str, told: str) -> None:
    """An engine takes 0 for no limit at all, and a container that was to be kept small could use all there is."""
    text = f"""test_suite: s
agents:
  - name: a
    type: docker
    config:
      image: x
      {limit}
tests: [{{id: a, name: a, input: a}}]
"""
    with pytest.raises(LoadError) as caught:
        TestLoader(env={}).load_string(text)
    (found,) = caught.value.diagnostics
    assert (found.message, found.line, found.column) == (told, 7, limit.index(":") + 9)
    assert found.hint is not None
