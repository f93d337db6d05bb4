"""What the tests of the engine share. Their helpers are in `support/`, importable from the repository's root."""

from collections.abc import Iterator

import pytest
from tests.engine.support.desk import desk as write_desk
from tests.engine.support.project import Project
from tests.engine.support.server import Server


@pytest.fixture
def desk(project: Project) -> Project:
    """A project with an agent, two validators, and nothing else."""
    return write_desk(project)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """An HTTP server on the loopback whose paths are agents of all kinds."""
    with Server() as made:
        yield made
