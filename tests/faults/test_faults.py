"""One fault of each kind. `make fuzz` has a thousand, at other points and with all kinds of agents."""

import random

import pytest
from tests.engine.support.project import Project
from tests.faults.harness import FAULTS, Broken


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_run_twice_or_left_behind(project: Project, fault: str) -> None:
    FAULTS[fault](Broken(project), random.Random(1))
