"""A thousand faults, at every point of a run and with every kind of agent. `make test` has one of each kind."""

import random

import pytest
from tests.engine.support.project import Project
from tests.faults.harness import AGENTS, CASES, FAULTS, Broken

ROUNDS = 27
"""Of each kind of fault and of agent: with those below, more than a thousand."""


@pytest.mark.fuzz
@pytest.mark.no_cover
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_run_twice_or_left_behind(project: Project, fault: str, kind: str, round_: int) -> None:
    chance = random.Random(f"{fault} {kind} {round_}")
    parallel = chance.choice(["1", "2", "4"])
    run = Broken(project, kind=kind, hold=chance.choice(CASES), flags=("--parallel", parallel))
    FAULTS[fault](run, chance)
