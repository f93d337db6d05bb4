"""Talking to agents in containers."""

import os
from typing import Any

from tests.agents.support.docker_engine import TestEngine
from tests.agents.support.docker_images import BUSYBOX, PYTHON
from tests.agents.support.talk import Talk, make_agent

from atp.agents.adapter import AdapterContext
from atp.suite.agent import Agent


def boxed(*command: str, **config: Any) -> Agent:
    """A mode of `docker_agent.py` in a container; with `image` or `build`, another command in another."""
    if "image" not in config and "build" not in config:
        config["image"] = PYTHON
    if command:
        config["command"] = list(command)
    return make_agent({"name": "my agent", "type": "docker", "config": config})


def shell(script: str, **config: Any) -> Agent:
    """A shell script in a container."""
    return boxed("/bin/sh", "-c", script, **{"image": BUSYBOX, **config})


def use(talk: Talk, engine: TestEngine | str) -> Talk:
    """Have somebody's agents run on the tests' own engine, or on one at another address."""
    url = engine if isinstance(engine, str) else engine.url
    talk.around = AdapterContext(base=talk.folder, environment={**os.environ, "DOCKER_HOST": url}, marker=talk.marker)
    return talk
