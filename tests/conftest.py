"""What tests of all folders share."""

import compileall
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engine.support.project import Project
from tests.starting import run_atp

# A shell has its background jobs ignore SIGINT, and `nohup` SIGHUP, and what tests start would inherit that.
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.pop("GITHUB_ACTIONS", None)  # what tests run is not what our own CI is to annotate
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # no test finds compiled files among its own, or half-written ones
os.environ["PYTEST_ADDOPTS"] = "-p no:langsmith_plugin"  # as in pyproject.toml, for what tests start of pytest

# The same examples in every run; `make fuzz` tries others. How long one takes says nothing where other tests run, too.
settings.register_profile(
    "atp", settings.default, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("atp")


sys.dont_write_bytecode = False  # tests are compiled once, though pytest's workers inherit the variable


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile ATP once: what tests start can't keep what it compiled."""
    if not hasattr(session.config, "workerinput"):
        compileall.compile_dir(Path(__file__).parents[1] / "src", quiet=2)


def pytest_collection_finish() -> None:
    """From here on nothing is compiled to disk: projects of tests are loaded in this process as well."""
    sys.dont_write_bytecode = True


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A folder with tests and agents, and `atp` to run them. Whatever a test started is ended with it."""
    made = Project(tmp_path)
    yield made
    made.end()


@pytest.fixture
def atp() -> Callable[..., CompletedProcess[str]]:
    """Runs `atp` with the arguments given, in a process of its own."""
    return run_atp
