"""Parts of the system that some tests need: programs, rights, environments that somebody has to make."""

import os
import shutil
from typing import NoReturn

import pytest


def missing(why: str) -> NoReturn:
    """Skip a test that can't run here. In CI everything is there: what isn't is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def needs(program: str) -> None:
    """The test that calls this needs a program."""
    if shutil.which(program) is None:
        missing(f"{program} is not installed")


def needs_root(reason: str) -> None:
    """The test that calls this can only be run by root."""
    if os.geteuid() != 0:
        missing(reason)
