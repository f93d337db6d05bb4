"""A thousand faults, at every point of a run and with every kind of agent. `make test` has one of each kind."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.support.docker_engine import TestEngine, engine
from tests.agents.support.lost_engine import lose_engine
from tests.engine.support.project import Project
from tests.engine.support.server import Server
from tests.faults.harness import AGENTS, CASES, FAULTS, Broken
from tests.faults.random_servers import fail_at_random, serve_at_random

__all__ = ["engine"]

ROUNDS = 27
"""Of each kind of fault and of agent: with those below, more than a thousand."""

pytestmark = [pytest.mark.fuzz, pytest.mark.no_cover]


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_run_twice_or_left_behind(project: Project, fault: str, kind: str, round_: int) -> None:
    chance = random.Random(f"{fault} {kind} {round_}")
    parallel = chance.choice(["1", "2", "4"])
    run = Broken(project, kind=kind, hold=chance.choice(CASES), flags=("--parallel", parallel))
    FAULTS[fault](run, chance)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.mark.parametrize("round_", range(2, 2 + ROUNDS))
def test_an_agents_server_that_fails_at_random(project: Project, server: Server, round_: int) -> None:
    serve_at_random(project, server, random.Random(f"server {round_}"))


@pytest.mark.parametrize("round_", range(2, 2 + ROUNDS))
def test_a_model_that_fails_at_random(project: Project, round_: int) -> None:
    fail_at_random(project, random.Random(f"model {round_}"))


@pytest.mark.parametrize("pieces", range(1, ROUNDS))
def test_a_container_engine_that_goes_away(tmp_path: Path, engine: TestEngine, pieces: int) -> None:
    lose_engine(Project(tmp_path), engine, "", pieces)
