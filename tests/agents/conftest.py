"""What the tests of agents share. Their helpers are in `support/`, importable from the repository's root."""

from pathlib import Path

import pytest
from tests.agents.support.docker_engine import engine
from tests.agents.support.talk import Talk

__all__ = ["engine"]  # a fixture; the daemon starts when a test first asks for it


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    """Somebody who talks to agents, with a workspace of their own."""
    return Talk(tmp_path)
