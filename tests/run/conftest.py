"""What the tests of the engine share. Their helpers are in `support/`, importable from the repository's root."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.run.support.desk import desk as write_desk
from tests.run.support.project import Project
from tests.run.support.server import Server


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A folder with tests and agents, and `atp` to run them. Whatever a test started is ended with it."""
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.fixture
def desk(project: Project) -> Project:
    """A project with an agent, two validators, and nothing else."""
    return write_desk(project)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """An HTTP server on the loopback whose paths are agents of all kinds."""
    with Server() as made:
        yield made
